import type { Call, Command } from '../command.ts'
import { done, failureOf } from '../failure.ts'
import { secondsOf } from '../number-flag.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { renderFrame } from '../top/top-frame.ts'
import { atFirst, pressed, seen } from '../top/top-state.ts'
import { watching } from '../watching.ts'

export const top: Command = {
  name: 'top',
  about: 'The same, live and full-screen',
  needsDatabase: true,
  onMysql: true,
  flags: {
    every: {
      type: 'string',
      value: '<seconds>',
      about: 'How often to query; default: every second',
    },
  },
  async run(call) {
    const everyMs = secondsOf(call.flags['every'], 'every') ?? 1_000
    const { openScreen } = call.around.terminal
    if (openScreen === undefined || call.asJson) {
      await oneFrame(call)
      return done
    }
    await live(call, everyMs, openScreen)
    return done
  },
}

/** Not on a terminal: what would be on the screen, once. */
async function oneFrame(call: Call): Promise<void> {
  const { terminal } = call.around
  call.tell('top needs a terminal to be live; this is one frame. See also holdfast locks --watch.')
  await call.observe(async (observer) => {
    const tree = await observer.locks()
    const size = { columns: terminal.size().columns, rows: tree.sessions.length + 8 }
    const state = { ...seen(atFirst, tree, size), selected: undefined }
    const lines = renderFrame(state, size, terminal.paint).slice(0, -1)
    call.printPainted(tree, `${lines.join('\n').trimEnd()}\n`)
  })
}

async function live(
  call: Call,
  everyMs: number,
  openScreen: NonNullable<Terminal['openScreen']>,
): Promise<void> {
  const { terminal } = call.around
  const stop = new AbortController()
  const signalled = call.around.stopSignal()
  signalled.addEventListener('abort', () => stop.abort(), { once: true })
  await call.observe(async (observer) => {
    let state = seen(atFirst, await observer.locks(), terminal.size())
    const draw = (): void => screen.draw(renderFrame(state, terminal.size(), terminal.paint))
    const look = async (): Promise<void> => {
      try {
        const tree = await observer.locks()
        // Only now: keys were pressed meanwhile.
        state = seen(state, tree, terminal.size())
      } catch (error) {
        state = { ...state, trouble: failureOf(error).message }
      }
      draw()
    }
    const screen = openScreen((key) => {
      const [next, effect] = pressed(state, key, terminal.size())
      state = next
      if (effect === 'quit') stop.abort()
      else if (effect === 'look') void look()
      draw()
    }, draw)
    try {
      draw()
      await watching(everyMs, stop.signal, look)
    } finally {
      screen.close()
    }
  })
}
