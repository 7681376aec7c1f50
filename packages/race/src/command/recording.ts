/** The command's side of a recording: it lets one call be made at a time, in whichever process, and keeps the rows before it. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { differing, type Environment, type KeptEnvironment } from '../hunt/environment.ts'
import type { Heard } from '../hunt/record/heard.ts'
import { openDatabase } from '../hunt/open-database.ts'
import { createTurns, type Numbered, turnNotes, type Turns } from '../hunt/record/turns.ts'
import { createRest } from '../run/state/at-rest.ts'
import type { Control } from '../run/connection/control.ts'
import { type Saved, takeSnapshot } from '../run/state/snapshot.ts'
import { databaseUrl } from '../run/connection/url.ts'
import { createWatch } from '../run/connection/watch.ts'
import { type Database, databaseWords, isAnother } from './databases.ts'
import { talk } from './frames.ts'
import type { FromProcess, Go, RecordedCall } from './messages.ts'
import { witnessed } from './witness.ts'

/** How long somebody else's lock may stand in the way of a look at the rows. */
const patienceMs = 5_000

/** What a command did, as plain data. */
export interface Recording {
  readonly calls: readonly Numbered<RecordedCall>[]
  readonly heard: readonly Heard[]
  readonly notes: readonly string[]
  /** Missing in one that was kept by an older version. */
  readonly environment?: KeptEnvironment
  /** No process of the command has talked to a database, as far as sockets show. */
  readonly isWithoutDatabase?: boolean
}

/** Where a recording was made. It may hold passwords, and is written down nowhere. */
export interface Origin {
  readonly url: string
  /** Of the process that made the first call. */
  readonly environment: Environment
}

export interface Recorder extends AsyncDisposable {
  /** The socket for the processes of the command. */
  readonly path: string
  /** Undefined until the first call. */
  readonly origin: Origin | undefined
  /** Why no more can be recorded. */
  readonly trouble: Error | undefined
  recorded(): Recording
  /** What the processes of the command did, for a message that nothing was recorded. */
  instead(): string
}

export interface RecorderOptions {
  /** The database; by default that of the process which makes the first call. */
  readonly url: string | undefined
  /** Calls that are kept. */
  readonly most: number
  /** Told at once why nothing more is recorded: the suite may run for a long time. */
  warn(error: unknown): void
}

/** In a folder that nobody else can look into. */
export async function openRecorder({ url, most, warn }: RecorderOptions): Promise<Recorder> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-hunt-'))
  await chmod(folder, 0o700)
  const path = join(folder, 'socket')
  const heard: Heard[] = []
  const sockets = new Set<Socket>()
  let control: Control | undefined
  let opened: Promise<(() => Promise<Saved>) | undefined> | undefined
  let origin: Origin | undefined
  let trouble: Error | undefined
  let hasDatabase = false
  const turns: Turns<RecordedCall> = createTurns(async () => {
    const take = await opened
    if (take === undefined) throw trouble ?? new Error('no database')
    return take()
  }, most)

  /** The first call says which database it is. */
  async function open(environment: Origin['environment']): Promise<() => Promise<Saved>> {
    const found = databaseUrl('hunt', url ?? environment['DATABASE_URL'])
    origin = { url: found, environment }
    const own = await openDatabase(found)
    control = own
    const watch = createWatch(found, own, patienceMs)
    const rest = createRest(own)
    let last: Saved | undefined
    return async () => {
      // The call before may have answered before its COMMIT.
      await rest()
      last = await watch.over({
        name: 'The look at the rows',
        do: () => takeSnapshot(own.client, last),
      })
      return last
    }
  }

  function fail(error: unknown): undefined {
    if (trouble === undefined) warn(error)
    trouble ??= error instanceof Error ? error : new Error(String(error))
  }

  function serve(socket: Socket): void {
    sockets.add(socket)
    const under = new Map<number, End>()
    let own: Environment = {}
    const send: (go: Go) => void = talk(socket, (value) => {
      hear(value as FromProcess).catch(fail)
    })
    socket.on('error', () => undefined)
    // Whoever ends in the midst of a call makes way for the others.
    socket.once('close', () => {
      sockets.delete(socket)
      for (const end of under.values()) end(undefined, [])
    })

    async function hear(message: FromProcess): Promise<void> {
      if (message.kind === 'heard') heard.push(message.one)
      else if (message.kind === 'database') hasDatabase = true
      else if (message.kind === 'end') under.get(message.turn)?.(message.call, message.databases)
      else await begin(message)
    }

    async function begin({
      turn,
      environment,
    }: Extract<FromProcess, { readonly kind: 'begin' }>): Promise<void> {
      own = environment ?? own
      const mineNow = own
      opened ??= open(own).catch(fail)
      const mine = trouble === undefined ? await turns.begin().catch(fail) : undefined
      if (socket.destroyed) return mine?.end(undefined)
      if (mine) {
        under.set(turn, (call, databases) => {
          under.delete(turn)
          const changed = differing(mineNow, origin?.environment ?? {})
          const others = othersOf(databases, origin?.url)
          mine.end(
            call && {
              ...call,
              ...(changed.length > 0 && { differing: changed }),
              ...(others.length > 0 && { others }),
            },
          )
        })
      }
      send({ turn, recorded: mine !== undefined })
    }
  }

  const server = createServer(serve)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  return {
    path,
    get origin() {
      return origin
    },
    get trouble() {
      return trouble
    },
    instead: () => witnessed(path),
    recorded: () => ({
      calls: turns.calls,
      heard,
      notes: turnNotes(turns),
      isWithoutDatabase: !hasDatabase,
    }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await control?.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

type End = (call: RecordedCall | undefined, databases: readonly Database[]) => void

/** Those that were talked to, if the one that is meant is not among them. */
function othersOf(databases: readonly Database[], url: string | undefined): readonly string[] {
  if (url === undefined || databases.some((one) => !isAnother(one, url))) return []
  return databases.map(databaseWords)
}
