import type { BothAnswers, Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf, waitedForRow, wasCanceled } from '../../../core/sql-state.ts'
import type { WaitTerms } from '../../../core/options/wait.ts'
import { firstOf } from '../../../core/within.ts'
import { displayName, type TableName } from '../../../core/table-name.ts'
import { tableText } from '../sql/identifier.ts'
import { rowsToken } from '../locks/locks.ts'
import type { Waiter } from './row-blockers.ts'
import { clockMs, limitWait, type WaitLimit, waitLimitFrom } from '../tx/wait-limit.ts'
import { contention, type Questions } from './contention.ts'
import { isTrue } from '../../../core/is-true.ts'
import type { EndedBy } from '../../../core/errors/error-details.ts'

const lockNotAvailable = '55P03'
const queryCanceled = '57014'
/** How long what does not wait takes all the same, for one lock and in all. */
const atOnce = {
  /** The shortest lock_timeout there is. */
  lock: { limitMs: 1, moreMs: 'each' },
  /**
   * A change has no NOWAIT, and the server itself takes locks for moments, such as to make a file longer. Foreign keys
   * are looked at when the timeouts have been put back, so that only the end of the statement ends these waits.
   */
  change: { limitMs: 50, moreMs: 450 },
} as const

/** What waits, and for how long. */
export interface Waiting {
  readonly table: TableName
  readonly wait: WaitTerms
  readonly does: keyof typeof atOnce
  /** The transaction is one of ours, so that it is open. @defaultValue false */
  readonly ours?: boolean
}

/** Why a lock was not granted. */
export interface NotGranted {
  readonly code: 'ROWS_TIMEOUT' | 'ROWS_BUSY'
  readonly endedBy: EndedBy | undefined
}

/**
 * One statement that may wait for rows or a table, and how to read its failure. The limit is set by a
 * statement before it: a table that is locked as a whole is waited for before a statement has begun to
 * run. Both go out together where the client can.
 */
export class LimitedWait<Tx> {
  readonly #driver: Driver<Tx>
  readonly #waiting: Waiting
  /** Of the caller's transaction; the one inside a savepoint need not know. */
  readonly #budgetMs: number | undefined
  readonly #unsure: boolean
  readonly #called: number = performance.now()
  #limit: WaitLimit | undefined
  #began = 0

  constructor(driver: Driver<Tx>, transaction: Transaction<Tx>, waiting: Waiting) {
    this.#driver = driver
    this.#waiting = waiting
    this.#budgetMs = transaction.budgetMs
    this.#unsure = waiting.ours !== true && transaction.state() === 'unknown'
  }

  get #subject(): string {
    return displayName(this.#waiting.table)
  }

  /**
   * Runs the statement, which has to put the timeouts back. With `unsure` it must do nothing unless they were
   * set, and every row of its answer says whether they were.
   */
  async query(
    transaction: Transaction<Tx>,
    statementOf: (unsure: boolean) => Statement,
  ): Promise<readonly Row[]> {
    this.#began = performance.now()
    const [limiting, answering] = this.#send(transaction, statementOf(this.#unsure))
    this.#limit = waitLimitFrom(await firstOf(limiting, answering))
    const rows = await answering
    if (this.#unsure && !isTrue(rows[0]?.['#limited'])) throw this.#outside()
    return rows
  }

  #send(transaction: Transaction<Tx>, statement: Statement): BothAnswers {
    // NOWAIT and SKIP LOCKED are about rows: a lock on the whole table is waited for all the same.
    const { wait, does } = this.#waiting
    const budgetMs = this.#budgetMs
    const limit = isAtOnce(wait)
      ? limitWait({ limitMs: atOnce[does].limitMs, yields: false, budgetMs }, atOnce[does].moreMs)
      : limitWait({ ...wait, budgetMs })
    // What is sent with one Sync is one transaction, so that it would tell nothing to who is not sure.
    if (transaction.both !== undefined && !this.#unsure) return transaction.both(limit, statement)
    const limiting = transaction.query(limit)
    const { pipelines, queues } = this.#driver.capabilities
    // Right behind each other where the client keeps the order: nothing of the caller's comes between them.
    const behind = pipelines === true || queues === true
    return [
      limiting,
      behind ? transaction.query(statement) : limiting.then(() => transaction.query(statement)),
    ]
  }

  #outside(): Error {
    return holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject: this.#subject } })
  }

  /**
   * What to throw when `query` failed: if a lock was not granted, an error with whoever is in the way, and
   * otherwise what it failed with. `usable` is the transaction if that outlived it.
   */
  async failure(error: unknown, questions: Questions, usable?: Transaction<Tx>): Promise<unknown> {
    const refused = notGranted(error, this.#waiting, this.#limit, this.#began)
    if (refused === undefined) return error
    return contention(this.#driver, {
      ...refused,
      cause: error,
      subject: this.#subject,
      called: this.#called,
      waiter: waiterOf(error, this.#limit, this.#waiting.table),
      usable,
      questions,
    })
  }
}

/** Who waits, as far as the limit's answer tells. */
export function waiterOf(
  error: unknown,
  limit: WaitLimit | undefined,
  table: TableName,
): Omit<Waiter, 'waitedMs'> {
  const held = limit?.held ?? ''
  const tokens = (['exclusive', 'shared'] as const).map((mode) => rowsToken(tableText(table), mode))
  const hasTable = waitedForRow(error) || tokens.some((token) => held.includes(`,${token},`))
  return { pid: limit?.pid, hasTable }
}

/** Whether it waits for nothing at all, not even for a table that is locked as a whole. */
function isAtOnce({ how, limitMs }: WaitTerms): boolean {
  return how === 'nowait' || limitMs === 0
}

/**
 * It is a timeout of ours only if our timer has run out: otherwise somebody has cancelled the statement, or a trigger
 * has limits of its own.
 */
export function notGranted(
  error: unknown,
  { wait, does }: Pick<Waiting, 'wait' | 'does'>,
  limit: WaitLimit | undefined,
  began: number,
): NotGranted | undefined {
  const state = sqlStateOf(error)
  if ((state !== queryCanceled && state !== lockNotAvailable) || wasCanceled(error))
    return undefined
  const passedMs = performance.now() - began + clockMs
  if (isAtOnce(wait)) {
    const { limitMs, moreMs } = atOnce[does]
    const isOurs = state === lockNotAvailable || (moreMs !== 'each' && passedMs >= limitMs + moreMs)
    return isOurs ? { code: 'ROWS_BUSY', endedBy: undefined } : undefined
  }
  if (limit === undefined || passedMs < limit.limitMs) return undefined
  return { code: 'ROWS_TIMEOUT', endedBy: limit.endedBy }
}
