import type { Observer } from 'holdfast/observe'
import type { Call, Command } from '../command.ts'
import { done, failureOf } from '../failure.ts'
import { secondsOf } from '../number-flag.ts'
import { renderLocks } from '../render/lock-tree.ts'
import { lookOf } from '../render/look.ts'
import { watching } from '../watching.ts'

export const locks: Command = {
  name: 'locks',
  about: 'Who blocks whom, by name, right now',
  needsDatabase: true,
  onMysql: true,
  flags: {
    watch: {
      type: 'string',
      value: '<seconds>',
      bare: '1',
      about: 'Query again and again; default: every second',
    },
  },
  async run(call) {
    const everyMs = secondsOf(call.flags['watch'], 'watch')
    if (everyMs === undefined) {
      await call.observe(async (observer) => print(call, await observer.locks()))
      return done
    }
    const stop = call.around.stopSignal()
    await call.observe((observer) => watch(call, observer, everyMs, stop))
    return done
  },
}

function print(call: Call, tree: Awaited<ReturnType<Observer['locks']>>, before = ''): void {
  const { terminal } = call.around
  const look = lookOf(terminal)
  call.printPainted(tree, `${before}${renderLocks(tree, look).join('\n')}\n`)
}

/** To the top of the screen, and nothing below what is printed next. */
const anew = '\u001B[H\u001B[2J\u001B[3J'

/** The first look must succeed; later ones may fail for a while, as long as a server restarts. */
async function watch(
  call: Call,
  observer: Observer,
  everyMs: number,
  stop: AbortSignal,
): Promise<void> {
  const { isTerminal } = call.around.terminal
  let looked = false
  await watching(everyMs, stop, async () => {
    try {
      const tree = await observer.locks()
      print(call, tree, isTerminal ? anew : looked ? '\n' : '')
      looked = true
    } catch (error) {
      if (!looked) throw error
      call.tell(failureOf(error).message)
    }
  })
}
