import type { Executor, Statement } from '../core/driver.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { LedgerCalls } from '../engines/postgres/ledger.ts'
import { askAgain, type ResolveOptions, resolveMs } from '../tx/ask-again.ts'
import { answersOf, type LineAnswer } from './answer.ts'
import { heardSince, tellAnswered, tellFailed } from './ledger-events.ts'
import {
  isPlain,
  type PlainRequest,
  plainStatementFor,
  type Request,
  statementFor,
} from './request.ts'

/** How operations outside a caller's transaction are sent. */
export interface CombinerOptions extends ResolveOptions {
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
  /** When it was asked for; 0 if nobody listens. */
  readonly since: number
  /** When it began to wait for a lane. */
  readonly waits: number
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
  readonly #forMs: number
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
    this.#forMs = resolveMs(options)
  }

  async submit(request: Request): Promise<LineAnswer[]> {
    if (!this.#coalesce) return await this.#submitAlone(request)
    return await new Promise((resolve, reject) => {
      const plain = this.#goesWithPlain(request)
      const waits = performance.now()
      this.#waiting.push({ request, plain, since: heardSince(), waits, resolve, reject })
      if (this.#woken || this.#underWay === this.#lanes) return
      this.#woken = true
      // What the same turn of the event loop asks for goes out together.
      queueMicrotask(() => this.#fillLanes())
    })
  }

  async #submitAlone(request: Request): Promise<LineAnswer[]> {
    const since = heardSince()
    try {
      const answers = await applyAlone(this.#executor, this.#calls, [request], this.#forMs)
      tellAnswered([{ request, since }], answers, since, false)
      return answers[0] ?? []
    } catch (error) {
      tellFailed([{ request, since }], error, since, false)
      throw error
    }
  }

  #goesWithPlain(request: Request): boolean {
    if (this.#leftOut.size > 0) this.#forgetLeftOut()
    return isPlain(request) && !this.#leftOut.has(request.accounts[0]?.base ?? '')
  }

  /** After a while, also if nothing is left out any more. */
  #forgetLeftOut(): void {
    const now = performance.now()
    if (now <= this.#leftOutSince + leftOutForMs) return
    this.#leftOut.clear()
    this.#leftOutSince = now
  }

  /** Sends back to the queue what `apply_plain` left out: new, short or special accounts, known ids. */
  #sendToApply(left: readonly Waiting[]): void {
    if (left.length === 0) return
    this.#forgetLeftOut()
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
    const sentAt = heardSince()
    try {
      const plain = batch.length > 1 && batch[0]?.plain === true
      let doubt = false
      const answers = await this.#apply(batch, plain, () => {
        doubt = true
      })
      tellAnswered(batch, answers, sentAt, false)
      const left: Waiting[] = []
      batch.forEach((waiting, at) => {
        const answer = answers[at] ?? []
        if (plain && answer.length === 0) left.push(doubt ? doubted(waiting) : waiting)
        else waiting.resolve(answer)
      })
      this.#sendToApply(left)
    } catch (error) {
      // A statement fails as a whole, so the one that made it fail is looked for by halves. If
      // nobody could be reached, that would only multiply the failures.
      if (batch.length > 1 && sqlStateOf(error) !== undefined && !isHoldfastError(error)) {
        const middle = Math.ceil(batch.length / 2)
        await this.#send(batch.slice(0, middle))
        await this.#send(batch.slice(middle))
      } else {
        tellFailed(batch, error, sentAt, false)
        for (const { reject } of batch) reject(error)
        this.#giveUpWaiting(error)
      }
    }
  }

  /** Nobody waits for a database that cannot be reached much longer than was agreed. */
  #giveUpWaiting(error: unknown): void {
    if (!isHoldfastError(error, 'CONNECTION_UNAVAILABLE', 'CONNECTION_LOST', unknown)) return
    const since = performance.now() - this.#forMs
    const late = this.#waiting.filter(({ waits }) => waits < since)
    if (late.length === 0) return
    this.#waiting = this.#waiting.filter(({ waits }) => waits >= since)
    const unsent = holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
    tellFailed(late, unsent, 0, false)
    for (const { reject } of late) reject(unsent)
  }

  async #apply(
    batch: readonly Waiting[],
    plain: boolean,
    onDoubt: () => void,
  ): Promise<LineAnswer[][]> {
    const requests = batch.map(({ request }) => request)
    const { length } = requests
    if (!plain) return await applyAlone(this.#executor, this.#calls, requests, this.#forMs)
    const statement = plainStatementFor(this.#calls, requests as PlainRequest[])
    return await sendAlone(this.#executor, statement, Array(length).fill(1), this.#forMs, onDoubt)
  }
}

/**
 * The answer of a plain call was lost, and the second time this one was left out: perhaps because its id is
 * known from the first. Until there is an answer, no failure says that it was not applied.
 */
function doubted(waiting: Waiting): Waiting {
  return {
    ...waiting,
    reject: (error) =>
      waiting.reject(
        isHoldfastError(error, unknown) ? error : holdfastError(unknown, { cause: error }),
      ),
  }
}

/** One call in a transaction of its own. */
async function applyAlone(
  executor: Executor,
  calls: LedgerCalls,
  requests: readonly Request[],
  forMs: number,
): Promise<LineAnswer[][]> {
  const sizes = requests.map(({ operation }) => operation.lines.length)
  return await sendAlone(executor, statementFor(calls, requests), sizes, forMs)
}

const unknown = 'LEDGER_OUTCOME_UNKNOWN'

/** Also run again where the same id was used for two accounts at the same moment: then it is known. */
const uniqueViolation = '23505'

/**
 * One statement in a transaction of its own. Run again after a conflict, and after a lost connection
 * too: the operation ids make the second run an answer to the first.
 */
export async function sendAlone(
  executor: Executor,
  statement: Statement,
  sizes: readonly number[],
  forMs: number,
  onDoubt?: () => void,
): Promise<LineAnswer[][]> {
  return await askAgain(
    async () => {
      const [row] = await executor.query(statement)
      return answersOf(row?.['answer'], sizes)
    },
    { forMs, unknown, on: [uniqueViolation], ...(onDoubt && { onDoubt }) },
  )
}
