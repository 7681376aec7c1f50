import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import type { LineAnswer } from './answer.ts'
import { tellFailed, type Told } from './ledger-events.ts'
import { isPlain, type Request } from './request.ts'
import { timeoutOf, unknown } from './send-alone.ts'
import type { Blocker } from '../../core/events/event-map.ts'

/** By which function an operation goes when it is sent with others; what one leaves out goes by the next. */
export const ways = {
  /** `apply_new`: one that is as plain as can be, and whose id is thought to be new. */
  fresh: 2,
  /** `apply_plain`. */
  plain: 1,
  /** `apply`. */
  whole: 0,
} as const

export type Way = (typeof ways)[keyof typeof ways]

/** An operation that somebody waits for. */
export abstract class Waiting implements Told {
  /** When it was asked for; 0 if nobody listens. */
  readonly since: number
  /** When it came. */
  readonly arrived: number = performance.now()
  readonly #waitMs: number
  way: Way
  /** How often it was sent. */
  tries = 0
  /**
   * The answer of a call was lost, and the second time this one was left out: perhaps because its id is known from
   * the first. Until there is an answer, no failure says that it was not applied.
   */
  doubted = false
  /** In a statement that is under way. */
  protected sent = false
  #over = false

  constructor(way: Way, since: number, waitMs: number) {
    this.way = way
    this.since = since
    this.#waitMs = waitMs
  }

  abstract get request(): Request
  /** The id in the database, if it has one. */
  abstract get id(): string | undefined
  abstract get lines(): number
  /** The account of its first line, if its key says which. */
  abstract get base(): string | undefined
  abstract get about(): Told['about']

  /** When nobody waits for it any longer, unless it has been sent. */
  get ends(): number {
    return this.arrived + this.#waitMs
  }

  /** It has its answer, or was taken back: there is nothing to send. */
  get over(): boolean {
    return this.#over
  }

  /** Nobody waits for it any longer, and it has not been sent. */
  isLate(now: number): boolean {
    return !this.sent && !this.#over && now >= this.ends
  }

  send(): void {
    this.sent = true
    this.tries += 1
  }

  /** It has to be sent again. */
  setBack(): void {
    this.sent = false
  }

  /** From here on it is not sent any more; what it is told comes later. */
  leave(): void {
    this.#over = true
  }

  resolve(answers: LineAnswer[]): void {
    this.#over = true
    this.answer(answers)
  }

  reject(error: unknown): void {
    this.#over = true
    const isKnown = !this.doubted || isHoldfastError(error, unknown)
    this.fail(isKnown ? error : holdfastError(unknown, { cause: error }))
  }

  protected abstract answer(answers: LineAnswer[]): void
  protected abstract fail(error: unknown): void
}

/** One that was put together as a whole before it came here. */
export class WaitingRequest extends Waiting {
  readonly request: Request
  readonly answered: Promise<LineAnswer[]>
  readonly #settle: PromiseWithResolvers<LineAnswer[]>

  constructor(request: Request, since: number, limitMs: number) {
    super(isPlain(request) ? ways.plain : ways.whole, since, request.operation.waitMs ?? limitMs)
    this.request = request
    this.#settle = Promise.withResolvers()
    this.answered = this.#settle.promise
    const { signal } = request.operation
    if (signal === undefined) return
    const onAbort = (): void => {
      if (!this.sent) this.reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    const unlisten = (): void => signal.removeEventListener('abort', onAbort)
    this.answered.then(unlisten, unlisten)
  }

  get id(): string | undefined {
    return this.request.id
  }

  get lines(): number {
    return this.request.operation.lines.length
  }

  get base(): string | undefined {
    return this.request.accounts[0]?.base
  }

  get about(): Told['about'] {
    return this.request.operation
  }

  /** Its signal may have come meanwhile. */
  override setBack(): void {
    super.setBack()
    const { signal } = this.request.operation
    if (signal?.aborted === true) this.reject(signal.reason)
  }

  protected answer(answers: LineAnswer[]): void {
    this.#settle.resolve(answers)
  }

  protected fail(error: unknown): void {
    this.#settle.reject(error)
  }
}

/**
 * The next batch: those that go the same way as the first in line. An operation id that is already in
 * it waits for the next one.
 */
export function nextBatch(
  line: readonly Waiting[],
  most: number,
): readonly [batch: Waiting[], left: Waiting[]] {
  const batch: Waiting[] = []
  const left: Waiting[] = []
  const ids = new Set<string>()
  let way: Way | undefined
  let lines = 0
  for (const waiting of line) {
    if (waiting.over) continue
    way ??= waiting.way
    const { id } = waiting
    const fits = lines === 0 || lines + waiting.lines <= most
    if (!fits || waiting.way !== way || (id !== undefined && ids.has(id))) {
      left.push(waiting)
      continue
    }
    if (id !== undefined) ids.add(id)
    lines += waiting.lines
    batch.push(waiting)
  }
  return [batch, left]
}

export function requestsOf(batch: readonly Waiting[]): readonly Request[] {
  return batch.map(({ request }) => request)
}

/** Of those who wait for one account, groups that wait for nothing else: one look is enough for each. */
export function whoWaitAlike(late: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const isSingle = ({ lines }: Waiting): boolean => lines === 1
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
