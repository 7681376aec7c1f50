import { holdfastError } from '../core/errors.ts'
import type { TickOutcome } from './attempt.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** The part of a schedule that a platform's cron needs. */
export interface FiredByRequest {
  fireAt(at: Date | string | number): Promise<TickOutcome>
}

/** The part of a request that is read; a Fetch API `Request` has it. */
export interface CronRequest {
  readonly headers: { get(name: string): string | null }
}

/** Headers in which platforms say for when a request was scheduled. */
const headers: readonly string[] = [
  // Google Cloud Scheduler.
  'x-cloudscheduler-scheduletime',
  // CloudEvents, as Knative and Azure Event Grid send them.
  'ce-time',
]

/**
 * The scheduled time that a request carries, if its platform sends one. Compare it with nothing: it is
 * the name of a tick, and not a clock.
 */
export function scheduledTimeOf(request: CronRequest): string | undefined {
  for (const name of headers) {
    const value = request.headers.get(name)
    if (value !== null && value !== '') return value
  }
  return undefined
}

/** Settings of `cronHandler`. */
export interface CronHandlerOptions<R extends CronRequest> {
  /** Where the scheduled time is, if not in a header that `scheduledTimeOf` knows. */
  readonly scheduledAt?: (request: R) => Date | string | number | undefined
}

const cronHandlerOptions: KnownOptions<CronHandlerOptions<never>> = {
  scheduledAt: 'function',
}

/**
 * A Fetch API handler for the request of a platform's cron. However often the platform sends it, the
 * tick runs once. Answers 200 if there is nothing more to do, and 503 if the platform should try again.
 * Who may call it is for you to check before.
 *
 * @example export const POST = cronHandler(nightly)
 * @throws OPTION_INVALID if the request carries no scheduled time
 */
export function cronHandler<R extends CronRequest>(
  schedule: FiredByRequest,
  given: CronHandlerOptions<R> = {},
): (request: R) => Promise<Response> {
  const options = optionsGiven(given, cronHandlerOptions as KnownOptions<typeof given>)
  const { scheduledAt = scheduledTimeOf } = options
  return async (request) => {
    const at = scheduledAt(request)
    if (at === undefined) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'scheduledAt', subject: 'the request carries no scheduled time' },
      })
    }
    const { outcome, attempt } = await schedule.fireAt(at)
    const status = again.has(outcome) ? 503 : 200
    return Response.json({ outcome, attempt }, { status })
  }
}

const again: ReadonlySet<TickOutcome['outcome']> = new Set(['busy', 'waiting', 'unknown'])
