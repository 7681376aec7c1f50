import type { Executor, Statement } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss, sqlStateOf, wasNeverSent } from '../core/sql-state.ts'
import type { LedgerCalls } from '../engines/postgres/ledger.ts'
import { retryDefaults, retrying } from '../tx/retry.ts'
import { answersOf, type LineAnswer } from './answer.ts'
import { type Request, statementFor } from './request.ts'

/** How operations outside a caller's transaction are sent. */
export interface CombinerOptions {
  /**
   * How many calls may be under way at once, each on a connection of the pool. @defaultValue 2
   */
  readonly lanes?: number
  /** Lines in one call at most. @defaultValue 500 */
  readonly batch?: number
  /** Put operations of concurrent callers into one call. @defaultValue true */
  readonly coalesce?: boolean
}

interface Waiting {
  readonly request: Request
  readonly resolve: (answers: LineAnswer[]) => void
  readonly reject: (error: unknown) => void
}

/** Fewer than this are not worth a second call. */
const worthSplitting = 64

/**
 * Puts operations together while earlier calls are under way, and sends them at once when a lane is
 * free: there is no timer, and a single caller waits for nobody. Every operation has its own answer,
 * and one that fails does not take others with it.
 */
export class Combiner {
  readonly #executor: Executor
  readonly #calls: LedgerCalls
  readonly #lanes: number
  readonly #batch: number
  readonly #coalesce: boolean
  #waiting: Waiting[] = []
  #underWay = 0
  #woken = false

  constructor(executor: Executor, calls: LedgerCalls, options: CombinerOptions = {}) {
    const { lanes = 2, batch = 500, coalesce = true } = options
    for (const [option, value] of Object.entries({ lanes, batch })) {
      if (!Number.isSafeInteger(value) || value < 1) {
        throw holdfastError('OPTION_INVALID', { details: { option, subject: option } })
      }
    }
    this.#executor = executor
    this.#calls = calls
    this.#lanes = lanes
    this.#batch = batch
    this.#coalesce = coalesce
  }

  async submit(request: Request): Promise<LineAnswer[]> {
    if (!this.#coalesce) return (await this.#apply([request]))[0] ?? []
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject })
      if (this.#woken || this.#underWay === this.#lanes) return
      this.#woken = true
      // What the same turn of the event loop asks for goes out together.
      queueMicrotask(() => this.#fillLanes())
    })
  }

  #fillLanes(): void {
    this.#woken = false
    while (this.#underWay < this.#lanes && this.#waiting.length > 0) {
      this.#underWay += 1
      // Two calls keep both sides busy: one is worked on while the next is put together.
      const share = Math.ceil(this.#waiting.length / (this.#lanes - this.#underWay + 1))
      const batch = this.#take(Math.min(this.#batch, Math.max(worthSplitting, share)))
      void this.#send(batch).finally(() => {
        this.#underWay -= 1
        this.#fillLanes()
      })
    }
  }

  /** The next batch. An operation id that is already in it waits for the next one. */
  #take(most: number): Waiting[] {
    const batch: Waiting[] = []
    const left: Waiting[] = []
    const ids = new Set<string>()
    let lines = 0
    for (const waiting of this.#waiting) {
      const { id, owner, operation } = waiting.request
      const key = id === undefined ? undefined : `${owner?.base}${id}`
      const fits = lines === 0 || lines + operation.lines.length <= most
      if (!fits || (key !== undefined && ids.has(key))) {
        left.push(waiting)
        continue
      }
      if (key !== undefined) ids.add(key)
      lines += operation.lines.length
      batch.push(waiting)
    }
    this.#waiting = left
    return batch
  }

  /** Never rejects: every operation is told its own outcome. */
  async #send(batch: readonly Waiting[]): Promise<void> {
    try {
      const answers = await this.#apply(batch.map(({ request }) => request))
      batch.forEach(({ resolve }, at) => resolve(answers[at] ?? []))
    } catch (error) {
      // A statement fails as a whole, so the one that made it fail is looked for by halves. If
      // nobody could be reached, that would only multiply the failures.
      if (batch.length > 1 && sqlStateOf(error) !== undefined && !isConnectionLoss(error)) {
        const middle = Math.ceil(batch.length / 2)
        await this.#send(batch.slice(0, middle))
        await this.#send(batch.slice(middle))
      } else {
        for (const { reject } of batch) reject(error)
      }
    }
  }

  async #apply(requests: readonly Request[]): Promise<LineAnswer[][]> {
    return await applyAlone(this.#executor, this.#calls, requests)
  }
}

const outcomeUnknown = 'LEDGER_OUTCOME_UNKNOWN'

/** One call in a transaction of its own. */
async function applyAlone(
  executor: Executor,
  calls: LedgerCalls,
  requests: readonly Request[],
): Promise<LineAnswer[][]> {
  const sizes = requests.map(({ operation }) => operation.lines.length)
  return await sendAlone(executor, statementFor(calls, requests), sizes)
}

/**
 * One statement in a transaction of its own. Run again after a conflict, and after a lost connection
 * too: the operation ids make the second run an answer to the first.
 */
export async function sendAlone(
  executor: Executor,
  statement: Statement,
  sizes: readonly number[],
): Promise<LineAnswer[][]> {
  return await retrying(
    async () => {
      try {
        const [row] = await executor.query(statement)
        return answersOf(row?.['answer'], sizes)
      } catch (error) {
        if (!isConnectionLoss(error)) throw error
        if (wasNeverSent(error)) throw holdfastError('CONNECTION_LOST', { cause: error })
        throw holdfastError(outcomeUnknown, { cause: error })
      }
    },
    { policy: idempotentPolicy, signal: undefined, onRetry: undefined },
  )
}

/** Also run again where the same id was used for two accounts at the same moment: then it is known. */
const uniqueViolation = '23505'

const idempotentPolicy = {
  ...retryDefaults,
  on: [...retryDefaults.on, uniqueViolation, 'CONNECTION_LOST', outcomeUnknown],
}
