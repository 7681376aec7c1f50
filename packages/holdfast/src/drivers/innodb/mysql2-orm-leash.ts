import { ending, givingBack, leashedConnection, sending, textOf } from './innodb-handle.ts'
import type { InnodbLeash } from './innodb-leash.ts'
import type { Mysql2Connection } from './mysql2-connection.ts'

/** A connection of `mysql2` with callbacks, as ORMs use it. */
export interface Mysql2Core {
  readonly threadId: number
  query(...args: unknown[]): unknown
  execute(...args: unknown[]): unknown
  promise(): Mysql2Connection
  release(): void
  destroy(): void
}

type Call = (...args: unknown[]) => unknown
type Callback = (error: unknown, ...answer: unknown[]) => void

/** What an ORM sends to begin its transaction. */
const begins = /^\s*(?:set transaction\b|begin\b|start transaction\b)/i
/** And to end it. */
const ends = /^\s*(?:commit|rollback)\s*;?\s*$/i
const commits = /^\s*commit\b/i

/**
 * The leash of a body whose handle an ORM has made: what the ORM itself sends to begin and to end its transaction is
 * not sent, because ours is around it; at its COMMIT ours is committed.
 */
export class OrmLeash {
  readonly leash: InnodbLeash
  readonly #commit: () => Promise<void>
  #stage: 'opening' | 'body' | 'over' = 'opening'

  constructor(leash: InnodbLeash, commit: () => Promise<void>) {
    this.leash = leash
    this.#commit = commit
  }

  begun(): void {
    if (this.#stage === 'opening') this.#stage = 'body'
  }

  over(): void {
    this.#stage = 'over'
    this.leash.close()
  }

  /** Whether this is what the ORM itself says. */
  isOrms(text: string | undefined): boolean {
    if (this.#stage === 'body' || text === undefined) return false
    return (this.#stage === 'opening' ? begins : ends).test(text)
  }

  /** Of all that the ORM says COMMIT alone means something: it is told how ours has gone. */
  async doOrms(text: string | undefined): Promise<void> {
    if (this.#stage === 'over' && commits.test(text ?? '')) await this.#commit()
  }

  /** The ORM gives back what it was lent. @throws TX_ENDED_INSIDE where it is the body that does */
  giveBack(): void {
    if (this.#stage === 'body') this.leash.assertMayEnd()
  }
}

/** As `mysql2` answers a statement that has changed nothing. */
const done = {
  affectedRows: 0,
  insertId: 0,
  changedRows: 0,
  info: '',
  serverStatus: 1,
  warningStatus: 0,
}

/** The connection with callbacks that is beneath one with promises, for a body; whoever uses it is held as well. */
export function coreOf(native: Mysql2Connection, leash: InnodbLeash): Mysql2Core | undefined {
  const { connection } = native as { readonly connection?: Mysql2Core }
  if (connection === undefined) return undefined
  const held = new OrmLeash(leash, async () => undefined)
  held.begun()
  return leashedCore(connection, held)
}

/** A connection as an ORM uses it: with callbacks, with promises, for streams. */
export function leashedCore(core: Mysql2Core, held: OrmLeash): Mysql2Core {
  const promised = leashedPromises(core.promise(), held, () => proxy)
  const proxy: Mysql2Core = new Proxy(core, {
    get(target, property) {
      if (property === 'promise') return () => promised
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function' || property === 'constructor') return value
      const call = (value as Call).bind(target)
      if (givingBack.has(property)) return () => held.giveBack()
      if (property === 'prepare') return (...args: unknown[]) => prepare(held, call, args)
      if (sending.has(property)) return (...args: unknown[]) => send(held, call, args)
      if (property === 'beginTransaction') return () => held.leash.assertMayBegin()
      return ending.has(property) ? () => held.leash.assertMayEnd() : call
    },
  })
  return proxy
}

function leashedPromises(
  native: Mysql2Connection,
  held: OrmLeash,
  core: () => Mysql2Core,
): Mysql2Connection {
  const inBody = leashedConnection(native, held.leash)
  return new Proxy(inBody, {
    get(target, property) {
      if (property === 'connection') return core()
      const value: unknown = Reflect.get(target, property)
      if (givingBack.has(property)) return () => held.giveBack()
      if (typeof value !== 'function' || (property !== 'query' && property !== 'execute'))
        return value
      return async (...args: unknown[]) => {
        const text = textOf(args[0])
        if (!held.isOrms(text)) return await (value as Call)(...args)
        await held.doOrms(text)
        return [done, undefined]
      }
    },
  })
}

/** The statement that the callback is given is held like the connection. */
function prepare(held: OrmLeash, call: Call, args: readonly unknown[]): unknown {
  const callback = args.at(-1)
  const given: Callback = (error, statement, ...rest) => {
    const text = textOf(args[0])
    const isThere = typeof statement === 'object' && statement !== null
    const leashed = isThere ? leashedRuns(held, statement, text) : statement
    if (typeof callback === 'function') (callback as Callback)(error, leashed, ...rest)
  }
  return send(held, call, [args[0], given])
}

function leashedRuns(held: OrmLeash, native: object, text: string | undefined): object {
  return new Proxy(native, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      const call = (value as Call).bind(target)
      if (property !== 'execute') return call
      return (...args: unknown[]) => send(held, call, args, text)
    },
  })
}

function send(
  held: OrmLeash,
  call: Call,
  args: readonly unknown[],
  text: string | undefined = textOf(args[0]),
): unknown {
  const { leash } = held
  const callback = args.at(-1)
  // Without one it is read as a stream.
  if (typeof callback !== 'function') return streamed(leash, text, () => call(...args))
  const answer = callback as Callback
  if (held.isOrms(text)) {
    held.doOrms(text).then(() => answer(null, done), answer)
    return undefined
  }
  try {
    leash.assertMay(text)
  } catch (error) {
    return process.nextTick(answer, error)
  }
  leash.sent()
  const heard: Callback = (error, ...rest) => {
    leash.answered(error)
    answer(error, ...rest)
  }
  return call(...args.slice(0, -1), heard)
}

interface Command {
  on(event: 'end' | 'error', listener: (error?: unknown) => void): unknown
  stream(...args: unknown[]): { once(event: 'close', listener: () => void): unknown }
}

/** Under way until the server has sent all of it, or nobody reads it any more: then the client reads it to its end. */
function streamed(leash: InnodbLeash, text: string | undefined, call: () => unknown): unknown {
  leash.assertMay(text)
  const command = call() as Command
  const { stream } = command
  leash.sent()
  let open = true
  const over = (): void => {
    if (open) leash.answered()
    open = false
  }
  command.on('end', over)
  command.on('error', (error) => {
    leash.failed(error)
    over()
  })
  command.stream = (...args) => {
    const rows = stream.apply(command, args)
    rows.once('close', over)
    return rows
  }
  return command
}
