/** How much of the mean is a new one. */
const share = 1 / 8
/**
 * More than the mean, because about half of them take longer than that. It also makes the mean follow work that has
 * become slower: what is cut off had at least this much.
 */
const margin = 1.25

/**
 * How long transactions take once they have a connection: the mean of the last ones, for each driver and for deadlines
 * of about the same length, which are most often those of the same kind of work.
 */
export class UsualTime {
  static readonly #known = new WeakMap<object, Map<number, UsualTime>>()
  #meanMs: number | undefined
  #notedMs = 0

  static of(driver: object, deadlineMs: number): UsualTime {
    const known = UsualTime.#known.get(driver) ?? new Map<number, UsualTime>()
    UsualTime.#known.set(driver, known)
    const magnitude = Math.round(Math.log2(deadlineMs))
    const usual = known.get(magnitude) ?? new UsualTime()
    known.set(magnitude, usual)
    return usual
  }

  /** What has less time than this will most likely be cut off. */
  get needMs(): number {
    return (this.#meanMs ?? 0) * margin
  }

  /**
   * One was not begun, so nobody knows how long it would have taken. Where none has been for a whole deadline, what is
   * known is from another time: without doubt none would ever be begun again.
   */
  doubt(deadlineMs: number): void {
    if (this.#meanMs === undefined || performance.now() - this.#notedMs < deadlineMs) return
    this.#meanMs /= 2
    this.#notedMs = performance.now()
  }

  note(tookMs: number): void {
    const meanMs = this.#meanMs ?? tookMs
    this.#meanMs = meanMs + (tookMs - meanMs) * share
    this.#notedMs = performance.now()
  }
}
