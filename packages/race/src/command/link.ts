/** In a process of the suite: its calls are told to the command, one after the other, and made when it says so. */
import { subscribe } from 'node:diagnostics_channel'
import { createConnection, type Socket } from 'node:net'
import { type NamedCall, namedCalls } from '../hunt/record/call.ts'
import { watchElsewhere } from '../hunt/record/elsewhere.ts'
import { createServers } from '../hunt/record/http-server.ts'
import { createRecorder, type Ended, type Turn } from '../hunt/record/record-calls.ts'
import { saidBy, saidByError } from '../run/answer/said.ts'
import { sqlstateOf } from '../run/answer/error-layers.ts'
import { listenForDatabases } from './databases.ts'
import { talk } from './frames.ts'
import type { FromProcess, Go } from './messages.ts'

/** Records this process until it ends. */
export function recordProcess(path: string): void {
  const { begin, tell } = linkTo(path)
  const recorder = createRecorder(begin)
  createServers().record(recorder, answered)
  watchElsewhere({
    isWithin: recorder.isWithin,
    ownMachine: false,
    heard: { all: [], push: (one) => tell({ kind: 'heard', one }) },
  })
  subscribe(namedCalls.name, (message) => {
    const named = message as NamedCall
    const { name, run, values } = named
    const copy = plain(values)
    // What has no copy cannot be called again.
    if (copy === undefined) return
    const input = { kind: 'arguments', values: copy } as const
    const send = (): Promise<never> => Promise.reject(new Error('it is recorded only'))
    named.result = recorder.around(
      () => ({ name, input, send }),
      () => run(...values),
      { answered, threw },
    )
  })
}

function answered(answer: unknown): Ended {
  return { answer: plain(answer), said: saidBy(answer) }
}

function threw(error: unknown): Ended {
  const said = error instanceof Error ? saidByError(error, sqlstateOf(error)) : saidBy(error)
  return { answer: undefined, said }
}

/** What cannot be sent to another process is not needed there. */
function plain<T>(value: T): T | undefined {
  try {
    return structuredClone(value)
  } catch {
    return undefined
  }
}

interface Link {
  begin(): Promise<Turn | undefined>
  tell(message: FromProcess): void
}

/** If the command is gone, calls are made as ever. */
function linkTo(path: string): Link {
  const waiting = new Map<number, (go: Go | undefined) => void>()
  let send: ((value: unknown) => void) | undefined
  let isGone = false
  let turns = 0
  let told = ''
  let hasDatabase = false
  const databases = listenForDatabases(() => {
    hasDatabase = true
    tell({ kind: 'database' })
  })

  /** Undefined if it is as it was told last. */
  function environment(): Readonly<Record<string, string | undefined>> | undefined {
    const now = JSON.stringify(process.env)
    if (now === told) return undefined
    told = now
    return { ...process.env }
  }

  function connect(): (value: unknown) => void {
    const socket: Socket = createConnection(path)
    // What is recorded ends when its own work is over.
    socket.unref()
    socket.on('error', () => undefined)
    socket.once('close', () => {
      isGone = true
      for (const go of waiting.values()) go(undefined)
      waiting.clear()
    })
    return talk(socket, (value) => {
      const go = value as Go
      waiting.get(go.turn)?.(go)
      waiting.delete(go.turn)
    })
  }

  const tell = (message: FromProcess): void => send?.(message)
  return {
    tell,
    async begin() {
      if (isGone) return undefined
      if (send === undefined) {
        send = connect()
        if (hasDatabase) tell({ kind: 'database' })
      }
      turns += 1
      const turn = turns
      const { promise: answer, resolve } = Promise.withResolvers<Go | undefined>()
      waiting.set(turn, resolve)
      const changed = environment()
      tell({ kind: 'begin', turn, ...(changed && { environment: changed }) })
      if ((await answer)?.recorded !== true) return undefined
      const spoken = databases.listen()
      return {
        end(made) {
          const call = made && {
            name: made.name,
            input: made.input,
            answer: made.answer,
            said: made.said,
          }
          tell({ kind: 'end', turn, call, databases: spoken() })
        },
      }
    },
  }
}
