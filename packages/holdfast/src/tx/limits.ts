import { timerMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { UsualTime } from './usual-time.ts'
import { deadlineMsOf, type RunOptions } from './run-options.ts'

/** The part of the deadline that a connection may be waited for before it counts as a sign of too much work. */
const queuedShare = 0.1

/** The caller's signal and the deadline as one signal. */
export class Limits {
  readonly signal: AbortSignal
  readonly #timeUp: AbortController | undefined
  readonly #deadlineMs: number | undefined
  readonly #ends: number
  readonly #timer: NodeJS.Timeout | undefined
  readonly #usual: UsualTime | undefined

  private constructor(
    driver: object,
    signal: AbortSignal | undefined,
    deadlineMs: number | undefined,
  ) {
    this.#deadlineMs = deadlineMs
    this.#ends = performance.now() + (deadlineMs ?? Infinity)
    if (deadlineMs === undefined) {
      this.signal = signal as AbortSignal
      return
    }
    const timeUp = new AbortController()
    this.#timeUp = timeUp
    this.#timer = setTimeout(() => timeUp.abort(holdfastError('TX_DEADLINE')), timerMs(deadlineMs))
    this.#usual = UsualTime.of(driver, deadlineMs)
    this.signal = signal === undefined ? timeUp.signal : AbortSignal.any([signal, timeUp.signal])
  }

  /** Nothing at all if neither was given. */
  static of(
    driver: object,
    options: Pick<RunOptions, 'deadline' | 'deadlineMs' | 'signal'>,
  ): Limits | undefined {
    const { signal } = options
    const deadlineMs = deadlineMsOf(options)
    if (deadlineMs === undefined && signal === undefined) return undefined
    return new Limits(driver, signal, deadlineMs)
  }

  remainingMs(): number | undefined {
    if (this.#deadlineMs === undefined) return undefined
    return Math.max(1, Math.ceil(this.#ends - performance.now()))
  }

  /** It was ended by the deadline, and not by the caller. */
  get isLate(): boolean {
    const { signal } = this.#timeUp ?? {}
    return signal?.aborted === true && this.signal.reason === signal.reason
  }

  /** Says so if the time is over: the server, which has the same limit, may have been faster than our timer. */
  look(): void {
    if (performance.now() >= this.#ends) this.#timeUp?.abort(holdfastError('TX_DEADLINE'))
  }

  /**
   * For how long it is worth waiting for a connection, since then: what gets one later would be cut off, while others
   * have more time left. Where all begin too late nobody ends in time.
   */
  worthMs(startedMs: number): number {
    if (this.#deadlineMs === undefined) return Infinity
    const latest = this.#ends - this.#needMs
    return Math.max(latest, startedMs + this.#deadlineMs * queuedShare) - performance.now()
  }

  /** Whatever the last ones took, there is no more than the whole deadline before its end. */
  get #needMs(): number {
    return Math.min(this.#usual?.needMs ?? 0, this.#deadlineMs ?? Infinity)
  }

  notBegun(): Error {
    const needMs = Math.round(this.#needMs)
    this.#usual?.doubt(this.#deadlineMs ?? 0)
    const subject = `it was not begun: it had no connection ${needMs} ms before its end, and would take about that long`
    return holdfastError('TX_DEADLINE', { details: { subject } })
  }

  /** How long a body took since then. One that the caller has stopped tells nothing. */
  took(since: number): void {
    if (this.signal.aborted && !this.isLate) return
    this.#usual?.note(performance.now() - since)
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
