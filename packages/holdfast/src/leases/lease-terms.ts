import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { renewalsPerLease } from '../core/lease-keeper.ts'
import { assertText } from '../core/options/given.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** For how long a lease is taken and what happens towards its end. */
export interface LeaseOptions {
  /**
   * How long it lasts unless it is renewed, by the server's clock: how long others wait if the
   * holder dies. From 100 ms to 7 days. @defaultValue '30 s'
   */
  readonly ttl?: Duration
  /** Whether it is renewed in the background, every third of its `ttl`. @defaultValue true */
  readonly renew?: boolean
  /**
   * How long before it expires `signal` is aborted if no renewal has got through: the time the work
   * has to stop. @defaultValue a quarter of `ttl`
   */
  readonly stopBefore?: Duration
  /**
   * How long nobody else gets it after it expired without being released, for effects that no fence
   * can refuse. @defaultValue none
   */
  readonly delayAfterLoss?: Duration
  /** Words for people, shown by `leases.read`: a host, a process. */
  readonly note?: string
  /** What stays together on one server. @defaultValue the name itself */
  readonly scope?: string
}

export const leaseOptions: KnownOptions<LeaseOptions> = {
  ttl: 'checked',
  renew: 'boolean',
  stopBefore: 'checked',
  delayAfterLoss: 'checked',
  note: 'text',
  scope: 'checked',
}

/** The same in milliseconds. */
export interface LeaseTerms {
  readonly ttlMs: number
  readonly renewMs: number | undefined
  readonly stopBeforeMs: number
  readonly delayMs: number
}

const leastTtlMs = 100
const mostTtlMs = 7 * 86_400_000

/** Checked so that a renewal, and a second one if it fails, fit before the work has to stop. */
export function leaseTerms(options: LeaseOptions, defaultTtl: Duration = '30 s'): LeaseTerms {
  const { ttl = defaultTtl, renew = true, delayAfterLoss = 0 } = options
  assertText(options.note, 'note')
  const ttlMs = durationMs(ttl, 'ttl')
  if (ttlMs < leastTtlMs || ttlMs > mostTtlMs) throw invalid('ttl', 'ttl must be 100 ms to 7 days')
  const stopBeforeMs =
    options.stopBefore === undefined ? ttlMs / 4 : durationMs(options.stopBefore, 'stopBefore')
  const renewMs = ttlMs / renewalsPerLease
  if (stopBeforeMs > ttlMs / 2)
    throw invalid('stopBefore', 'stopBefore must be at most half of ttl')
  const delayMs = delayAfterLoss === 0 ? 0 : durationMs(delayAfterLoss, 'delayAfterLoss')
  return { ttlMs, renewMs: renew ? renewMs : undefined, stopBeforeMs, delayMs }
}

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
