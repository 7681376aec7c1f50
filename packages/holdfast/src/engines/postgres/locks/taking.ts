import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { isTrue } from '../../../core/is-true.ts'
import { sqlStateOf, wasCanceled } from '../../../core/sql-state.ts'
import type { WantedLock } from '../../../core/locks/wanted-lock.ts'
import { firstOf } from '../../../core/within.ts'
import type {
  Contended,
  FailedWait,
  LockAnswer,
  LockEngine,
  LockRefusal,
  LockTerms,
  Taking,
} from '../../../locks/engine.ts'
import { ownTimeouts } from '../tx/wait-limit.ts'
import { heldStatement, locksAreReal, markerStatement, stillHeld } from './lock-holders.ts'
import { seenLocks } from './lock-order.ts'
import { isShort, lockAnswer, type LockRequest, lockStatement } from './locks.ts'
import { holdersOf, lookAtHolders } from './look-at-holders.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

const lockNotAvailable = '55P03'
const queryCanceled = '57014'

/** Servers whose advisory locks were seen in the lock table; asked once per driver. */
const provenDrivers = new WeakSet<object>()

/** Advisory locks that end with the transaction. */
class AdvisoryTaking<Tx> implements Taking<Tx> {
  readonly #driver: Driver<Tx>
  readonly #wanted: readonly WantedLock[]
  /** Of the transaction, where it has limits of its own. */
  #ownTimeouts: Row | undefined

  constructor(driver: Driver<Tx>, wanted: readonly WantedLock[]) {
    this.#driver = driver
    this.#wanted = wanted
  }

  opening(terms: LockTerms): Statement {
    return lockStatement({ ...this.#request(terms), budgetMs: undefined, first: true })
  }

  async take(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer> {
    if (opened === undefined) return await this.#ask(transaction, this.#request(terms))
    // What was sent together with BEGIN is in the transaction that BEGIN opened.
    const rows = await opened
    const answer = { ...answerIn(rows), withBegin: true }
    if (answer.refused !== undefined || terms.attempt || answer.complete)
      return await this.#proven(transaction, answer)
    const request = this.#request(terms)
    return isShort(rows)
      ? await this.#ask(transaction, request)
      : await this.#heeding(transaction, request)
  }

  #request(terms: LockTerms): LockRequest {
    return { ...terms, wanted: this.#wanted, first: false, brief: !terms.attempt }
  }

  async #ask(transaction: Transaction<Tx>, request: LockRequest): Promise<LockAnswer> {
    const state = transaction.state()
    if (state === 'none') return refused('LOCK_OUTSIDE_TRANSACTION')
    const taking = transaction.query(lockStatement(request))
    const unsure = state === 'unknown'
    // A client that pipelines spends no round trip on a statement sent right behind.
    const together = unsure && this.#driver.capabilities.pipelines === true
    const marked = together ? hasMarker(transaction) : undefined
    const rows = await firstOf(taking, marked)
    await marked?.catch(() => undefined)
    const answer = answerIn(rows)
    if (answer.refused !== undefined) return answer
    // It is busy, and there may be settings to be heeded.
    if (request.brief && !answer.complete) return await this.#heeding(transaction, request)
    // A lock function that returns without a grant and without an error is no lock function.
    if (!request.attempt && !answer.complete) return refused('ENGINE_LOCKS_ARE_STUBS')
    // In autocommit the marker, like the lock, was gone as soon as the statement ended.
    if (unsure && answer.granted.length > 0 && !(await (marked ?? hasMarker(transaction))))
      return refused('LOCK_OUTSIDE_TRANSACTION')
    return await this.#proven(transaction, answer)
  }

  /** Where the transaction has limits of its own; they are asked for now, because afterwards it may be lost. */
  async #heeding(transaction: Transaction<Tx>, request: LockRequest): Promise<LockAnswer> {
    const [own] = await transaction.query(ownTimeouts)
    this.#ownTimeouts = own
    return await this.#ask(transaction, { ...request, brief: false })
  }

  /** Once per driver: an engine that only pretends has no such row. */
  async #proven(transaction: Transaction<Tx>, answer: LockAnswer): Promise<LockAnswer> {
    if (answer.granted.length === 0 || provenDrivers.has(this.#driver)) return answer
    const [row] = await transaction.query(locksAreReal)
    if (isTrue(row?.['alone'])) return { ...answer, refused: 'ENGINE_ONE_SESSION' }
    if (!isTrue(row?.['real'])) return { ...answer, refused: 'ENGINE_LOCKS_ARE_STUBS' }
    provenDrivers.add(this.#driver)
    return answer
  }

  async ended(
    error: unknown,
    { limitMs, yields }: LockTerms,
    { transaction, kept, joined, opened, waitedMs }: FailedWait<Tx>,
  ): Promise<Contended | undefined> {
    const state = sqlStateOf(error)
    // One that was sent with BEGIN leaves its end to statement_timeout.
    const isLimit = state === queryCanceled && opened && !wasCanceled(error)
    if (state !== lockNotAvailable && !isLimit) return undefined
    const { budgetMs } = transaction
    const canceled = isLimit ? { message: String(error) } : undefined
    // Those of another connection would tell something that need not be so.
    const isUnknown = joined && !kept && budgetMs === undefined
    const own = this.#ownTimeouts ?? (isUnknown ? {} : undefined)
    // A usable transaction can be asked itself; after an abort another connection has to.
    const executor = kept ? transaction : (transaction.beside ?? this.#driver.alone)
    const wait = { limitMs, yields, budgetMs, waitedMs, canceled, own }
    const contended = await lookAtHolders(executor, this.#wanted, wait, kept)
    // If no setting did, somebody has cancelled it.
    return isLimit && contended.endedBy === undefined ? undefined : contended
  }

  async inTheWay(transaction: Transaction<Tx>): Promise<readonly Blocker[]> {
    const wait = { limitMs: undefined, yields: false, budgetMs: undefined, waitedMs: 0 }
    return (await lookAtHolders(transaction, this.#wanted, wait, true)).blockers
  }
}

function answerIn([row]: readonly Row[]): LockAnswer {
  return row === undefined ? refused('DRIVER_HANDLE_INVALID') : lockAnswer(row)
}

function refused(code: LockRefusal): LockAnswer {
  return { refused: code, before: [], rowsBefore: [], granted: [], complete: false, pid: 0 }
}

/** The marker is set by every grant, for as long as the transaction lasts. */
async function hasMarker<Tx>(transaction: Transaction<Tx>): Promise<boolean> {
  const [row] = await transaction.query(markerStatement)
  return isTrue(row?.['held'])
}

/** PostgreSQL's part of named locks. */
export const postgresLocks: LockEngine = {
  of: 'postgres',
  taking: (driver, wanted) => new AdvisoryTaking(driver, wanted),
  async isHeld(transaction, key, mode) {
    const [row] = await transaction.query(heldStatement(key, mode))
    return isTrue(row?.['held'])
  },
  holdsAny: hasMarker,
  async stillHeld(executor, holds) {
    const asked = holds.map(({ pid, token: { space, id } }) => ({ pid, space, id }))
    const rows = await executor.query(stillHeld(asked))
    return new Set(rows.map((row) => Number(row['pid'])))
  },
  holders: (executor, key) => holdersOf(executor, [{ key, mode: 'exclusive' }]),
  seen: seenLocks,
}
