/**
 * Loaded into a process before anything else: its clock is wrong and its timers are late, as they are on
 * real machines, where it takes months until somebody sees it.
 */
const skewMs = Number(process.env['SKEW_MS'] ?? 0)
const lateMs = Number(process.env['LATE_MS'] ?? 0)
const RealDate = Date
const realTimeout = setTimeout

globalThis.Date = class extends RealDate {
  constructor(...args: []) {
    if (args.length === 0) super(RealDate.now() + skewMs)
    else super(...args)
  }
  static override now(): number {
    return RealDate.now() + skewMs
  }
} as DateConstructor

const late = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
  realTimeout(callback, ms + lateMs, ...args)
globalThis.setTimeout = Object.assign(late, realTimeout) as unknown as typeof setTimeout
