import { endedInside } from '../../core/errors/ended-inside.ts'
import { type HoldfastError, holdfastError } from '../../core/errors.ts'
import { controlIn } from '../../engines/sqlite/tx/transaction-control.ts'

/** Names what stays with a connection when its transaction is over. */
const outlasts = /\b(?:pragma|temp|temporary|attach|detach)\b/i

/**
 * Holds a body to the transaction it was given, on SQLite. Every statement that it sends passes here first: what would
 * begin or end a transaction is not sent, nor is anything once SQLite has rolled the transaction back by itself (INSERT
 * OR ROLLBACK, a full disk): it would be saved at once. A body that ignores that fails all the same, in `end`.
 */
export class SqliteLeash {
  readonly #isOpen: () => boolean
  #stage: 'body' | 'over' = 'body'
  #fault: HoldfastError | undefined
  /** The error with which SQLite has rolled everything back. */
  #rolledBack: { readonly cause: unknown } | undefined
  /** The transaction was over after a statement that had succeeded. */
  #isGone = false
  /** It may have left something on the connection: a setting, a table of its own, another file. */
  #leavesMore = false
  /** Calls that are under way, one inside of the other. */
  #running = 0
  #sent = 0
  /** Ends of results that somebody has begun to read. */
  readonly #unread = new Set<() => void>()

  constructor(isOpen: () => boolean) {
    this.#isOpen = isOpen
  }

  /** @throws TX_ENDED_INSIDE, TX_NESTED, TX_HANDLE_ENDED */
  assertMay(text: unknown): void {
    this.#sent += 1
    this.assertHeld()
    const control = typeof text === 'string' ? controlIn(text) : undefined
    if (control === 'begin') throw this.#faulty('TX_NESTED')
    if (control === 'end') throw this.#faulty('TX_ENDED_INSIDE')
    this.#leavesMore ||= typeof text !== 'string' || outlasts.test(text)
  }

  /** Whether the next body would find something on this connection that it knows nothing of. */
  get leavesMore(): boolean {
    return this.#leavesMore
  }

  /** Before a call of the client's own that would end the connection. */
  assertMayEnd(): void {
    this.assertHeld()
    throw this.#faulty('TX_ENDED_INSIDE')
  }

  assertHeld(): void {
    if (this.#stage === 'over') throw holdfastError('TX_HANDLE_ENDED')
  }

  /** Runs a text, if the transaction is still there, and looks whether it is there afterwards. */
  during<T>(send: () => T): T {
    return this.#counted(send, false)
  }

  /**
   * Runs a call of the client's own that is no text. It may write in several steps, the rest of which SQLite saves where one
   * of them has rolled back: then nobody knows what is saved.
   */
  calling<T>(call: () => T): T {
    return this.#counted(call, true)
  }

  /** Runs a function of the body in a savepoint of the client's: what it sends passes here by itself. */
  around<T>(run: () => T): T {
    return this.#watched(run, false)
  }

  #counted<T>(send: () => T, hasSteps: boolean): T {
    // Of a text that is sent by a function which another one calls: that one goes on, and what comes next in it is saved.
    const isInner = this.#running > 0
    this.#running += 1
    try {
      return this.#watched(send, hasSteps || isInner)
    } finally {
      this.#running -= 1
    }
  }

  #watched<T>(send: () => T, mayGoOn: boolean): T {
    this.assertHeld()
    if (this.#rolledBack !== undefined || this.#isGone || !this.#isOpen()) throw this.#over()
    let answer: T
    try {
      answer = send()
    } catch (error) {
      if (!this.#isOpen()) {
        this.#rolledBack ??= { cause: error }
        this.#isGone ||= mayGoOn
      }
      throw error
    }
    if (!this.#isOpen()) this.#isGone = true
    return answer
  }

  /** Somebody has begun to read a result; the answer tells that it was read to its end. */
  reading(leave: () => void): () => void {
    this.#unread.add(leave)
    return () => this.#unread.delete(leave)
  }

  /** The body has returned. @throws TX_ROLLED_BACK, TX_ENDED_INSIDE, TX_NESTED */
  end(): void {
    this.close()
    if (this.#fault !== undefined) throw this.#fault
    if (this.#rolledBack !== undefined || this.#isGone || !this.#isOpen()) throw this.#over()
  }

  /** The body has failed with this error; what its caller is told. */
  failed(error: unknown): unknown {
    this.close()
    return this.#isGone ? this.#over() : error
  }

  /** How many texts have come by here. */
  get sent(): number {
    return this.#sent
  }

  get isOver(): boolean {
    return this.#stage === 'over'
  }

  /** What nobody reads any further would keep the connection from going on: an old view of the file stays with it. */
  close(): void {
    this.#stage = 'over'
    for (const leave of this.#unread) leave()
    this.#unread.clear()
  }

  #over(): Error {
    if (this.#isGone) return endedInside('unknown')
    return holdfastError('TX_ROLLED_BACK', { cause: this.#rolledBack?.cause })
  }

  #faulty(code: 'TX_NESTED' | 'TX_ENDED_INSIDE'): HoldfastError {
    const subject = 'the statement was not sent, and nothing is saved'
    this.#fault ??= holdfastError(code, { details: { subject, ended: 'refused' } })
    return this.#fault
  }
}
