import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import type { LineAnswer } from './answer.ts'
import { tellFailed } from './ledger-events.ts'
import { isPlain, type Request } from './request.ts'
import { timeoutOf, unknown } from './send-alone.ts'
import type { Blocker } from '../../core/events/event-map.ts'

/** An operation that somebody waits for. */
export class Waiting {
  readonly request: Request
  /** When it was asked for; 0 if nobody listens. */
  readonly since: number
  /** When it came. */
  readonly arrived: number = performance.now()
  /** When nobody waits for it any longer, unless it has been sent. */
  readonly ends: number
  readonly answered: Promise<LineAnswer[]>
  /** May go with others that are plain. Not one that was sent that way and left out. */
  plain: boolean
  /** How often it was sent. */
  tries = 0
  /**
   * The answer of a plain call was lost, and the second time this one was left out: perhaps because its id is known from
   * the first. Until there is an answer, no failure says that it was not applied.
   */
  doubted = false
  /** In a statement that is under way. */
  #sent = false
  #over = false
  readonly #settle: PromiseWithResolvers<LineAnswer[]>

  constructor(request: Request, since: number, limitMs: number) {
    this.request = request
    this.since = since
    this.ends = this.arrived + (request.operation.waitMs ?? limitMs)
    this.plain = isPlain(request)
    this.#settle = Promise.withResolvers()
    this.answered = this.#settle.promise
    const { signal } = request.operation
    if (signal === undefined) return
    const onAbort = (): void => {
      if (!this.#sent) this.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const unlisten = (): void => signal.removeEventListener('abort', onAbort)
    this.answered.then(unlisten, unlisten)
  }

  /** It has its answer, or was taken back: there is nothing to send. */
  get over(): boolean {
    return this.#over
  }

  /** Nobody waits for it any longer, and it has not been sent. */
  isLate(now: number): boolean {
    return !this.#sent && !this.#over && now >= this.ends
  }

  send(): void {
    this.#sent = true
    this.tries += 1
  }

  /** It has to be sent again, unless its signal came meanwhile. */
  setBack(): void {
    this.#sent = false
    const { signal } = this.request.operation
    if (signal?.aborted === true) this.reject(signal.reason)
  }

  /** From here on it is not sent any more; what it is told comes later. */
  leave(): void {
    this.#over = true
  }

  resolve(answers: LineAnswer[]): void {
    this.#over = true
    this.#settle.resolve(answers)
  }

  reject(error: unknown): void {
    this.#over = true
    const isKnown = !this.doubted || isHoldfastError(error, unknown)
    this.#settle.reject(isKnown ? error : holdfastError(unknown, { cause: error }))
  }
}

/** Of those who wait for one account, groups that wait for nothing else: one look is enough for each. */
export function whoWaitAlike(late: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const isSingle = ({ request }: Waiting): boolean => request.operation.lines.length === 1
  const singles = late.filter(isSingle)
  const others = late.filter((waiting) => !isSingle(waiting)).map((waiting) => [waiting])
  return singles.length === 0 ? others : [singles, ...others]
}

/** Tells each that its time is up, and who is in its way. */
export function refuseLate(late: readonly Waiting[], blockers: readonly Blocker[]): void {
  for (const waiting of late) {
    const error = timeoutOf(waiting.request, blockers)
    tellFailed([waiting], error, waiting.since, false)
    waiting.reject(error)
  }
}
