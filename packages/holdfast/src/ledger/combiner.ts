import type { Executor, Statement } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss, sqlStateOf, wasNeverSent } from '../core/sql-state.ts'
import type { LedgerCalls } from '../engines/postgres/ledger.ts'
import { retryDefaults, retrying } from '../tx/retry.ts'
import { answersOf, type LineAnswer } from './answer.ts'
import {
  isPlain,
  type PlainRequest,
  plainStatementFor,
  type Request,
  statementFor,
} from './request.ts'

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
  /** May go with others that are plain. Not one that was sent that way and left out. */
  readonly plain: boolean
  readonly resolve: (answers: LineAnswer[]) => void
  readonly reject: (error: unknown) => void
}

/** Fewer than this are not worth a second call. */
const worthSplitting = 64
/** How long an account that was left out is not tried as a plain one again. */
const leftOutForMs = 1_000

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
  /** Accounts of which something was left out lately: these go to `apply` right away. */
  #leftOut = new Set<string>()
  #leftOutSince = 0
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
    if (!this.#coalesce) return (await applyAlone(this.#executor, this.#calls, [request]))[0] ?? []
    return await new Promise((resolve, reject) => {
      this.#waiting.push({ request, plain: this.#goesWithPlain(request), resolve, reject })
      if (this.#woken || this.#underWay === this.#lanes) return
      this.#woken = true
      // What the same turn of the event loop asks for goes out together.
      queueMicrotask(() => this.#fillLanes())
    })
  }

  #goesWithPlain(request: Request): boolean {
    return isPlain(request) && !this.#leftOut.has(request.accounts[0]?.base ?? '')
  }

  /** Sends back to the queue what `apply_plain` left out: new, short or special accounts, known ids. */
  #sendToApply(left: readonly Waiting[]): void {
    if (left.length === 0) return
    const now = performance.now()
    if (now > this.#leftOutSince + leftOutForMs) {
      this.#leftOut.clear()
      this.#leftOutSince = now
    }
    for (const { request } of left) this.#leftOut.add(request.accounts[0]?.base ?? '')
    // They have waited longest.
    this.#waiting = left.map((waiting) => ({ ...waiting, plain: false })).concat(this.#waiting)
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

  /**
   * The next batch: plain ones or others, as the first in line is. An operation id that is already in
   * it waits for the next one.
   */
  #take(most: number): Waiting[] {
    const batch: Waiting[] = []
    const left: Waiting[] = []
    const ids = new Set<string>()
    const plain = this.#waiting[0]?.plain
    let lines = 0
    for (const waiting of this.#waiting) {
      const { id, operation } = waiting.request
      const fits = lines === 0 || lines + operation.lines.length <= most
      if (!fits || waiting.plain !== plain || (id !== undefined && ids.has(id))) {
        left.push(waiting)
        continue
      }
      if (id !== undefined) ids.add(id)
      lines += operation.lines.length
      batch.push(waiting)
    }
    this.#waiting = left
    return batch
  }

  /** Never rejects: every operation is told its own outcome. */
  async #send(batch: readonly Waiting[]): Promise<void> {
    try {
      const plain = batch.length > 1 && batch[0]?.plain === true
      const answers = await this.#apply(batch, plain)
      const left: Waiting[] = []
      batch.forEach((waiting, at) => {
        const answer = answers[at] ?? []
        if (plain && answer.length === 0) left.push(waiting)
        else waiting.resolve(answer)
      })
      this.#sendToApply(left)
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

  async #apply(batch: readonly Waiting[], plain: boolean): Promise<LineAnswer[][]> {
    const requests = batch.map(({ request }) => request)
    if (!plain) return await applyAlone(this.#executor, this.#calls, requests)
    const statement = plainStatementFor(this.#calls, requests as PlainRequest[])
    return await sendAlone(
      this.#executor,
      statement,
      requests.map(() => 1),
    )
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
