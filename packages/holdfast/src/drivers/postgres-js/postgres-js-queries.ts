import { holdfastError } from '../../core/errors.ts'
import { within } from '../../core/within.ts'
import { isConnectionLoss, sqlStateOf, wasCanceled } from '../../core/sql-state.ts'
import type { Leash } from '../parts/leash.ts'
import { leftoverMs } from '../pg/pg-leash.ts'

/** A query of postgres.js: a promise that is sent when `handle` is called, by whoever waits for it first. */
interface Query extends Promise<unknown> {
  strings: readonly string[]
  readonly args: readonly unknown[]
  executed: boolean
  readonly active: boolean
  /** Set if it is read row by row; then the promise itself never settles. */
  cursorFn?: CursorFn | undefined
  handle(): Promise<void>
  /** Which backend it was sent to. */
  readonly state: unknown
  /** Cancels what is `active` on the backend that `state` names. */
  readonly canceller: ((query: Pick<Query, 'state' | 'active'>) => Promise<unknown>) | null
  /** A function of the query's own, that settles it. */
  readonly reject: (error: unknown) => void
}

type CursorFn = (rows: unknown) => unknown

const writes = /^\s*(?:insert|update|delete|merge|call)\b/i

/** What COPY gives instead of rows. The connection takes no statement until it is over. */
interface CopyStream {
  once(event: 'finish' | 'end' | 'close', listener: () => void): unknown
  on(event: 'error', listener: () => void): unknown
  destroy(): unknown
  /** Only of one that is read from. */
  push?: (chunk: unknown) => boolean
  _read?(size: number): void
}

/** The queries that a body sends through one transaction handle, and through its savepoints. */
export class LeashedQueries {
  readonly #leash: Leash
  readonly #isLost: (error: unknown) => void
  readonly #pending = new Set<Query>()
  /** Made and not sent, nor a part of what was. */
  readonly #unsent = new Set<Query>()
  readonly #copies = new Map<CopyStream, Query>()
  readonly #givenUp = Promise.withResolvers<never>()
  readonly #idle = Promise.withResolvers<void>()

  /** `isLost` hears of a closed connection before the body does, which would go on and write to it. */
  constructor(leash: Leash, isLost: (error: unknown) => void) {
    this.#leash = leash
    this.#isLost = isLost
    // Most bodies leave nothing behind.
    this.#givenUp.promise.catch(() => undefined)
  }

  /** Some were sent and have no answer. */
  get busy(): boolean {
    for (const query of this.#pending) if (query.cursorFn === undefined || query.active) return true
    return this.#copies.size > 0
  }

  /**
   * The body has made a query that writes, and nobody has waited for it, which would have sent it. One that only reads
   * may be a part of a query that was not needed.
   */
  get forgotten(): boolean {
    for (const query of this.#unsent) if (writes.test(textOf(query))) return true
    return false
  }

  #used(part: unknown): void {
    if (Array.isArray(part)) for (const each of part) this.#used(each)
    else if (isQuery(part)) {
      this.#unsent.delete(part)
      this.#used(part.args)
    }
  }

  /**
   * The body is over: gives up what it has left open, which ROLLBACK would wait behind for ever, or which makes
   * postgres.js refuse to send it. What still runs after a while is cancelled. Until this resolves nobody else uses the
   * connection.
   */
  async giveUp(): Promise<void> {
    if (!this.busy) return
    this.#givenUp.reject(holdfastError('TX_HANDLE_ENDED'))
    for (const [stream] of this.#copies)
      endCopy(stream, () => this.#gone(() => this.#copies.delete(stream)))
    if (!this.#waits()) return
    await within(this.#idle.promise, leftoverMs)
    if (!this.#waits()) return
    await this.cancel()
    await within(this.#idle.promise, leftoverMs)
  }

  /** Has the server end what runs, by the client's own cancel request. All of them have one backend. */
  async cancel(): Promise<void> {
    const sent = [...this.#pending, ...this.#copies.values()].find(({ state }) => state !== null)
    if (sent === undefined) return
    const { canceller, state } = sent
    const told = async (): Promise<unknown> => await canceller?.({ state, active: true })
    // Over TLS postgres.js never says that its request was taken; the statement does.
    const heard = new Promise<void>((resolve) => {
      const listen = (error: unknown): void => {
        if (wasCanceled(error)) resolve()
      }
      void Promise.prototype.then.call(sent, undefined, listen)
    })
    await within(Promise.race([told(), heard]), leftoverMs)
  }

  /** For something whose end is seen; that of a cursor is not. */
  #waits(): boolean {
    for (const { cursorFn } of this.#pending) if (cursorFn === undefined) return true
    return this.#copies.size > 0
  }

  #gone(forget: () => void): void {
    forget()
    if (!this.#waits()) this.#idle.resolve()
  }

  /** The body has not ended yet. */
  get isHeld(): boolean {
    return this.#leash.isHeld
  }

  assertMay(text: string): void {
    this.#leash.assertMay(text)
  }

  /** A savepoint counts as under way until it is over: what it does after its body is lost or half undone. */
  during<T>(savepoint: () => Promise<T>): Promise<T> {
    return this.#leash.during(savepoint)
  }

  /** Puts what a handle has made on the leash, if it is a query; other things are parts of one. */
  hold(made: unknown): unknown {
    if (isQuery(made)) {
      this.#closable(made)
      this.#unsent.add(made)
      const send = made.handle
      made.handle = async () => {
        this.#used(made)
        if (made.executed || this.#passes(made)) await send.call(made)
      }
    }
    return made
  }

  /** Before it asks for more rows, postgres.js waits for what this returns: a rejection makes it ask no more. */
  #closable(query: Query): void {
    let given: CursorFn | undefined
    void Object.defineProperty(query, 'cursorFn', {
      get: () => given,
      set: (fn: CursorFn) => {
        given = (rows) => {
          const next = Promise.race([fn(rows), this.#givenUp.promise])
          // Nobody waits after the last rows.
          next.catch(() => undefined)
          return next
        }
      },
    })
  }

  #copying(stream: CopyStream, query: Query): void {
    this.#copies.set(stream, query)
    const over = (): void => this.#gone(() => this.#copies.delete(stream))
    stream.once('finish', over)
    stream.once('end', over)
    // One that is read from and was closed early is not over: nobody reads what still comes.
    if (stream.push === undefined) stream.once('close', over)
  }

  /** Nobody answers them any more. */
  lose(error: unknown): void {
    for (const { reject } of this.#pending) reject(error)
  }

  #passes(query: Query): boolean {
    try {
      this.#leash.assertMay(textOf(query))
    } catch (error) {
      const { reject } = query
      query.executed = true
      reject(error)
      return false
    }
    this.#pending.add(query)
    const gone = (): void => this.#gone(() => this.#pending.delete(query))
    // Not `query.then`, which would send it.
    void Promise.prototype.then.call(
      query,
      (result) => {
        if (isCopyStream(result)) this.#copying(result, query)
        gone()
        this.#tagged(result, query)
      },
      (error: unknown) => {
        gone()
        if (sqlStateOf(error) === undefined && isConnectionLoss(error)) this.#isLost(error)
      },
    )
    return true
  }

  /** Of several statements in one text there is one result each; a result is an array with a tag. */
  #tagged(result: unknown, query: Query): void {
    if (!Array.isArray(result)) return
    const times = new Map<string, number>()
    for (const each of Array.isArray(result[0]) ? (result as unknown[]) : [result]) {
      const { command } = each as { readonly command?: unknown }
      if (typeof command !== 'string') continue
      times.set(command, (times.get(command) ?? 0) + 1)
      this.#leash.tagged(command, textOf(query), times.get(command) ?? 1)
    }
  }
}

function isCopyStream(result: unknown): result is CopyStream {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  return typeof (result as Partial<CopyStream>).destroy === 'function'
}

/** What is sent is ended by an error; what is read is thrown away until the server has sent it all. */
function endCopy(stream: CopyStream, over: () => void): void {
  // Nobody need listen to a stream that is given up.
  stream.on('error', () => undefined)
  if (stream.push === undefined) {
    stream.destroy()
    return
  }
  stream.once('close', over)
  stream.push = (chunk) => {
    if (chunk === null) over()
    return true
  }
  stream._read?.(0)
}

function isQuery(made: unknown): made is Query {
  return made instanceof Promise && typeof (made as Partial<Query>).handle === 'function'
}

/** The text as it will be sent, but for values and identifiers; empty while a file has not been read. */
function textOf({ strings, args }: Pick<Query, 'strings' | 'args'>): string {
  let text = strings[0] ?? ''
  for (let at = 1; at < strings.length; at += 1) {
    text += `${textBetween(args[at - 1])}${strings[at]}`
  }
  return text
}

/** A part of a text may be a query itself, or several. */
function textBetween(part: unknown): string {
  if (Array.isArray(part)) return part.map(textBetween).join(' ')
  return isQuery(part) ? textOf(part) : ' ? '
}
