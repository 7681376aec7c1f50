const RealDate = globalThis.Date
let offByMs = 0

/**
 * The wall clock of this process as its code sees it: `Date` is replaced. Timers, `performance.now()` and
 * the history go by the monotonic clock, which no jump of the wall clock moves on a real machine either.
 */
export function jumpClock(byMs: number): void {
  offByMs += byMs
  globalThis.Date = offByMs === 0 ? RealDate : (JumpedDate as DateConstructor)
}

export function rightClock(): void {
  jumpClock(-offByMs)
}

class JumpedDate extends RealDate {
  constructor(...args: []) {
    if (args.length === 0) super(RealDate.now() + offByMs)
    else super(...args)
  }

  static override now(): number {
    return RealDate.now() + offByMs
  }
}
