import type { Row } from '../../core/driver.ts'
import { type HoldfastError, holdfastError, isHoldfastError } from '../../core/errors.ts'
import { layersOf } from '../../core/sql-state.ts'
import type { ServerFacts } from '../../engines/innodb/server.ts'
import { quotesAfter } from '../../engines/innodb/driver.ts'
import {
  controlIn,
  isOpaque,
  type Quotes,
  setsQuotes,
} from '../../engines/innodb/tx/transaction-control.ts'

/**
 * Holds a body to the transaction it was given, on MariaDB and MySQL. Every statement that it sends passes here first:
 * what would begin, end or commit a transaction is not sent, nor is anything once the server has ended it. A body that
 * ignores that fails all the same, in `end`.
 */
export class InnodbLeash {
  readonly #hasEnded: (error: unknown) => boolean
  /** Plain reads show what is committed by then. */
  readonly readsFresh: boolean
  #stage: 'body' | 'over' = 'body'
  #fault: HoldfastError | undefined
  /** The server's error that ended the transaction. */
  #ended: { readonly error: unknown } | undefined
  /** Something was run that may have committed where nobody saw it. */
  #isOpaque = false
  /** What quotes and backslashes mean on this session, as far as it is known. */
  #quotes: Quotes = {}
  #pending = 0
  readonly #own = new Set<unknown>()

  /** `hasEnded` says of an error whether the server has ended the transaction with it. */
  constructor(hasEnded: (error: unknown) => boolean, readsFresh: boolean) {
    this.#hasEnded = hasEnded
    this.readsFresh = readsFresh
  }

  /** @throws TX_ENDED_INSIDE, TX_NESTED, TX_HANDLE_ENDED, TX_ROLLED_BACK */
  assertMay(text: string | undefined): void {
    this.#assertHeld()
    const control = text === undefined ? undefined : controlIn(text, this.#quotes)
    if (control === 'begin') throw this.#faulty('TX_NESTED')
    if (control === 'end') throw this.#faulty('TX_ENDED_INSIDE')
    if (this.#ended !== undefined) throw this.#noted(rolledBack(this.#ended.error))
    const mayEnd = text === undefined || isOpaque(text, this.#quotes)
    this.#isOpaque ||= mayEnd
    if (mayEnd || setsQuotes(text)) this.#quotes = {}
  }

  /** A statement of ours was answered. */
  hear(rows: readonly Row[], dialect: ServerFacts['dialect'] | undefined): void {
    this.#quotes = quotesAfter(rows, dialect) ?? this.#quotes
  }

  /** Before a call of the client's own that begins another transaction. */
  assertMayBegin(): void {
    this.#assertHeld()
    throw this.#faulty('TX_NESTED')
  }

  /** Before a call of the client's own that ends the transaction, or gives its connection away. */
  assertMayEnd(): void {
    this.#assertHeld()
    throw this.#faulty('TX_ENDED_INSIDE')
  }

  #assertHeld(): void {
    if (this.#stage === 'over') throw holdfastError('TX_HANDLE_ENDED')
  }

  /** Counts a statement until it is answered. */
  async during<T>(send: () => PromiseLike<T>): Promise<T> {
    this.sent()
    try {
      const answer = await send()
      this.answered()
      return answer
    } catch (error) {
      this.answered(error)
      throw error
    }
  }

  sent(): void {
    this.#pending += 1
  }

  answered(error?: unknown): void {
    this.#pending -= 1
    this.failed(error)
  }

  /** A statement has failed with this. */
  failed(error: unknown): void {
    if (this.#hasEnded(error)) this.#ended ??= { error }
  }

  /** What is saved nobody knows, unless the tripwire is still there. */
  get isOpaque(): boolean {
    return this.#isOpaque
  }

  /** The server has rolled back all that the body had done. */
  get isRolledBack(): boolean {
    return this.#ended !== undefined && !this.#isOpaque
  }

  /** The body has returned. @throws TX_ROLLED_BACK, TX_ENDED_INSIDE, TX_NESTED, TX_UNAWAITED */
  end(): void {
    this.close()
    if (this.#fault !== undefined) throw this.#fault
    if (this.isRolledBack) throw rolledBack(this.#ended?.error)
    if (this.#pending > 0) throw holdfastError('TX_UNAWAITED')
  }

  close(): void {
    this.#stage = 'over'
  }

  /** A call of ours has found out that the transaction is another one; here it is known what has become of the first. */
  known(error: unknown): unknown {
    const isUnknown = isHoldfastError(error, 'TX_ENDED_INSIDE') && error.details.ended === 'unknown'
    return isUnknown && this.isRolledBack ? rolledBack(this.#ended?.error) : error
  }

  #faulty(code: 'TX_NESTED' | 'TX_ENDED_INSIDE'): HoldfastError {
    const subject = 'the statement was not sent, and nothing is saved'
    this.#fault ??= holdfastError(code, { details: { subject, ended: 'refused' } })
    return this.#noted(this.#fault)
  }

  #noted<E extends Error>(error: E): E {
    this.#own.add(error)
    return error
  }

  /** What the body was told here, also where its client has wrapped that in an error of its own. */
  ownIn(error: unknown): unknown {
    for (const layer of layersOf(error)) if (this.#own.has(layer)) return layer
    return error
  }
}

function rolledBack(cause: unknown): HoldfastError {
  return holdfastError('TX_ROLLED_BACK', { cause })
}
