import { type Ended, endedInside } from '../../core/errors/ended-inside.ts'
import { type HoldfastError, holdfastError, isHoldfastError } from '../../core/errors.ts'
import { openTransactions } from '../../core/open-transactions.ts'
import { sqlStateOf, wasRaisedInside } from '../../core/sql-state.ts'
import {
  beginText,
  commitText,
  endProbe,
  markerProbe,
} from '../../engines/postgres/tx/transaction.ts'
import { controlIn, rollbacksToSavepoints } from '../../engines/postgres/tx/transaction-control.ts'

/** The error says already that the transaction was ended, and how. */
function isEndedInside(error: unknown): boolean {
  return isHoldfastError(error, 'TX_ENDED_INSIDE') && error.details['ended'] !== 'refused'
}

const depthLimit = 5

/** Also if the client has made another error of ours: MikroORM copies its fields, the details among them. */
function wraps(error: unknown, inner: HoldfastError, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > depthLimit) return false
  const { details, cause, original } = error as Readonly<Record<string, unknown>>
  // Sequelize 6 has a name of its own for the cause.
  return error === inner || details === inner.details || wraps(cause ?? original, inner, depth + 1)
}

/** Outside a transaction block: COMMIT AND CHAIN, SAVEPOINT. */
const noTransaction = '25P01'

/** The same, where a statement that needs the transaction says that there is none. */
export function endedIfNone(error: unknown): unknown {
  // A trigger may raise it too, at COMMIT.
  const none = sqlStateOf(error) === noTransaction && !wasRaisedInside(error)
  return none ? endedInside('unknown', error) : error
}

/**
 * Who may send: the body; we, to look at what it left; the client, until its COMMIT or ROLLBACK; only another ROLLBACK
 * of the client, if COMMIT failed; nobody.
 */
type Stage = 'body' | 'looking' | 'client' | 'ending' | 'over'

/** What the client itself runs around its COMMIT is not part of any body. */
function isOutside(): boolean {
  return openTransactions.getStore() === undefined
}

function isControl(text: string | undefined): boolean {
  return text !== undefined && controlIn(text) !== undefined
}

const byClient = /^\s*(?:commit|rollback)\s*;?\s*$/i

/**
 * Holds a body to the transaction it was given. Every statement that a body sends passes here first:
 * what would begin or end a transaction is not sent, and once the body has returned nothing is.
 *
 * A body that ignores the refusal fails all the same, in `end`. What slips past the reading of texts is
 * seen by the tag that the server answers with, where a driver sees tags.
 */
export class Leash {
  readonly #strict: boolean
  #stage: Stage = 'body'
  #fault: HoldfastError | undefined
  /** The same, of what an ORM may have sent because the transaction had failed. */
  #faultOfFailed: HoldfastError | undefined
  #ended: Ended | undefined
  #pending = 0

  /** `strict`: the client itself sends nothing but COMMIT or ROLLBACK once the body has returned. */
  constructor(strict = true) {
    this.#strict = strict
  }

  /** Set if the transaction was ended by somebody else in spite of everything. */
  get ended(): Ended | undefined {
    return this.#ended
  }

  /** The body has not ended yet. */
  get isHeld(): boolean {
    return this.#stage === 'body'
  }

  /** The client has sent its COMMIT or ROLLBACK. */
  get ending(): boolean {
    return this.#stage === 'ending'
  }

  /**
   * Before a statement is sent; `failed` where the server has said that the transaction has failed.
   *
   * @throws TX_ENDED_INSIDE, TX_NESTED, TX_HANDLE_ENDED
   */
  assertMay(text: string | undefined, failed = false): void {
    if (this.#stage === 'body') this.#assertKeeps(text, failed)
    else if (!this.#isByClient(text)) throw holdfastError('TX_HANDLE_ENDED')
  }

  #assertKeeps(text: string | undefined, failed: boolean): void {
    const control = text === undefined ? undefined : controlIn(text)
    if (control === undefined) return
    const details = {
      subject: 'the statement was not sent, and nothing is saved',
      ended: 'refused',
    } as const
    const fault = holdfastError(control === 'begin' ? 'TX_NESTED' : 'TX_ENDED_INSIDE', { details })
    if (!failed || control === 'begin') throw this.#faulty(fault)
    // TypeORM rolls everything back if it cannot set its savepoint: not the body's doing.
    this.#faultOfFailed ??= fault
    throw fault
  }

  #isByClient(text: string | undefined): boolean {
    if (this.#stage === 'over') return false
    if (text === endProbe || text === markerProbe.text) return true
    // What the body has left behind may still want to end what it takes for its own.
    if (this.#stage === 'looking') return false
    if (!byClient.test(text ?? '')) return !this.#strict && isOutside() && !isControl(text)
    this.#stage = 'ending'
    return true
  }

  /** The connection must not be given back by a body either. */
  assertMayRelease(): void {
    if (this.#stage === 'over' || this.#stage === 'looking') throw holdfastError('TX_HANDLE_ENDED')
    if (this.#stage !== 'body') return
    const details = {
      subject: 'the connection was not released, and nothing is saved',
      ended: 'refused',
    } as const
    throw this.#faulty(holdfastError('TX_ENDED_INSIDE', { details }))
  }

  /** Before a call of the client's own that ends the transaction, also if its statement would not be let through. */
  assertMayEnd(): void {
    if (this.#stage === 'body') this.#assertKeeps(commitText, false)
    else this.assertMayRelease()
  }

  /** Before a call of the client's own that begins another transaction. */
  assertMayBegin(): void {
    this.assertMay(beginText(undefined))
  }

  #faulty(fault: HoldfastError): Error {
    this.#fault ??= fault
    return fault
  }

  /** A text of the body was answered with this tag, for the so-many-eth time. */
  tagged(tag: string, text: string | undefined, times: number): void {
    if (this.#stage !== 'body') return
    if (tag === 'COMMIT') this.#ended ??= 'committed'
    else if (tag === 'PREPARE TRANSACTION') this.#ended ??= 'unknown'
    // Of a savepoint the tag is the same.
    else if (tag === 'ROLLBACK' && (text === undefined || times > rollbacksToSavepoints(text)))
      this.#ended ??= 'rolled back'
    else if (tag === 'BEGIN' || tag === 'START TRANSACTION') this.#ended ??= 'unknown'
  }

  /** Counts a statement until it is answered, for drivers that cannot ask their client. */
  async during<T>(send: () => PromiseLike<T>): Promise<T> {
    this.#pending += 1
    try {
      return await send()
    } finally {
      this.#pending -= 1
    }
  }

  sent(): void {
    this.#pending += 1
  }

  answered(): void {
    this.#pending -= 1
  }

  /**
   * The body has returned: its handle is of no use any more. `busy` says that the client knows of statements
   * under way, `failed` that the transaction is told to be rolled back anyhow.
   *
   * @throws TX_ENDED_INSIDE, TX_NESTED, TX_UNAWAITED
   */
  end(busy = false, failed = false): void {
    if (this.#stage === 'body') this.#stage = 'looking'
    if (this.#ended !== undefined) throw endedInside(this.#ended)
    if (this.#fault !== undefined) throw this.#fault
    if (this.#faultOfFailed !== undefined && !failed) throw this.#faultOfFailed
    if (busy || this.#pending > 0) throw holdfastError('TX_UNAWAITED')
  }

  /** The body has failed with this error; what the caller gets to know of it. */
  failed(error: unknown): unknown {
    if (this.#stage === 'body') this.#stage = 'looking'
    // A client may wrap what its own call threw.
    if (this.#ended === undefined && this.#fault !== undefined && wraps(error, this.#fault))
      return this.#fault
    return this.#ended === undefined || isEndedInside(error)
      ? error
      : endedInside(this.#ended, error)
  }

  /** What happens next is up to the client: it sends its COMMIT or ROLLBACK. */
  handOver(): void {
    if (this.#stage === 'looking') this.#stage = 'client'
  }

  /** COMMIT or ROLLBACK was sent: nobody owns the handle. */
  close(): void {
    this.#stage = 'over'
  }
}
