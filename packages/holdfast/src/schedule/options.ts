import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { isName, mostNameBytes } from '../core/storable.ts'
import { nowait, waitTerms } from '../core/options/wait.ts'
import { type Rule, ruleOf, ruleText, type When } from './rule.ts'
import { assertFunction, objectGiven } from '../core/options/given.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** What a handler is told about its tick. */
export interface Tick {
  /** The scheduled instant; of `runNow` the moment it was asked for, by the database's clock. */
  readonly at: Date
  /** From 1. */
  readonly attempt: number
  /** Milliseconds between the scheduled instant and the start, by the database's clock. */
  readonly lateMs: number
  /** Started by `runNow`. */
  readonly manual: boolean
  /**
   * Aborted when the tick is no longer ours: another process may be at it. Of a transactional tick,
   * when its deadline has passed.
   */
  readonly signal: AbortSignal
}

/** A tick under a lease. */
export interface LeasedTick<Tx> extends Tick {
  /**
   * Throws unless the tick is still ours, and keeps it so until this transaction ends: what is written in
   * it is written by one process only, also if that was stopped longer than its lease.
   *
   * @example await hf.transaction(async (tx) => { await tick.guard(tx); await write(tx) })
   * @throws SCHEDULE_TICK_LOST, SCHEDULE_OUTSIDE_TRANSACTION
   */
  guard(tx: Tx): Promise<void>
}

/**
 * What is done about a tick while another of the same schedule is at work: `skip` drops it, `wait`
 * begins it afterwards, `allow` lets both work.
 */
export type Overlap = 'skip' | 'wait' | 'allow'

/**
 * What is done about ticks that nobody took in time: `skip` drops those that are older than `grace`,
 * `latest` runs the latest of them, `{ all: n }` the latest n, oldest first.
 */
export type Missed = 'skip' | 'latest' | { readonly all: number }

/** What every schedule has. */
export interface CommonOptions {
  /** Names the schedule in the database: the same in every process, and for ever. */
  readonly name: string
  /** @defaultValue 'latest' */
  readonly missed?: Missed
  /** How late a tick may be before `missed: 'skip'` drops it. @defaultValue '1 min' */
  readonly grace?: Duration
  /** Each tick begins up to this much later, by the same delay in every process. @defaultValue none */
  readonly jitter?: Duration
  /**
   * How long `fire`, `fireAt`, `runNow`, `pause` and `resume` wait while another tick is at work; `'nowait'`
   * does not. @defaultValue '10 s', of `runNow` '2 s'
   */
  readonly wait?: Duration | 'nowait'
  /** How many ticks the history keeps. @defaultValue 100 */
  readonly keep?: number
  /** Shown in the history. @defaultValue host name and process id */
  readonly holder?: string
}

interface LeasedOptions<Tx> {
  /** @defaultValue 'skip' */
  readonly overlap?: Overlap
  /** For how long a process that says nothing is taken to be at work. Renewed. @defaultValue '30 s' */
  readonly lease?: Duration
  readonly handler: (tick: LeasedTick<Tx>) => unknown
}

interface RetriedOptions {
  /** Attempts in all. @defaultValue 5 */
  readonly attempts?: number
  /** Pause after the first failure; it doubles from there, up to five minutes. @defaultValue '1 s' */
  readonly retryAfter?: Duration
}

/** Each tick is begun by one process, once. If that dies, the tick is lost. */
export interface AtMostOnce<Tx> extends LeasedOptions<Tx> {
  readonly guarantee: 'at-most-once'
}

/** Each tick is begun again until one attempt succeeds, also after a crash. Effects may come twice. */
export interface AtLeastOnce<Tx> extends LeasedOptions<Tx>, RetriedOptions {
  readonly guarantee: 'at-least-once'
}

/**
 * The handler's writes and the end of the tick commit together: what it does in its transaction
 * happens exactly once. Effects elsewhere may come twice.
 */
export interface Transactional<Tx> extends RetriedOptions {
  readonly guarantee: 'transactional'
  /** @defaultValue 'skip' */
  readonly overlap?: Exclude<Overlap, 'allow'>
  /** Longest time for the transaction; an attempt that takes longer has failed. */
  readonly deadline?: Duration
  readonly handler: (tx: Tx, tick: Tick) => unknown
}

const commonOptions: KnownOptions<CommonOptions & When> = {
  name: 'checked',
  missed: 'checked',
  grace: 'checked',
  jitter: 'checked',
  wait: 'checked',
  keep: 'checked',
  holder: 'checked',
  cron: 'checked',
  timeZone: 'checked',
  every: 'checked',
}

const atMostOnceOptions: KnownOptions<CommonOptions & When & AtMostOnce<never>> = {
  ...commonOptions,
  guarantee: 'checked',
  overlap: 'checked',
  lease: 'checked',
  handler: 'function',
}

const atLeastOnceOptions: KnownOptions<CommonOptions & When & AtLeastOnce<never>> = {
  ...atMostOnceOptions,
  attempts: 'checked',
  retryAfter: 'checked',
}

const transactionalOptions: KnownOptions<CommonOptions & When & Transactional<never>> = {
  ...commonOptions,
  guarantee: 'checked',
  overlap: 'checked',
  attempts: 'checked',
  retryAfter: 'checked',
  deadline: 'checked',
  handler: 'function',
}

/** What a schedule is: when, what, and how surely. */
export type ScheduleOptions<Tx> = CommonOptions &
  When &
  (AtMostOnce<Tx> | AtLeastOnce<Tx> | Transactional<Tx>)

/** The options, checked and in milliseconds. */
export interface Settings<Tx> {
  readonly name: string
  readonly rule: Rule | undefined
  /** The rule as observers read it. */
  readonly ruleText: string | null
  readonly work: AtMostOnce<Tx> | AtLeastOnce<Tx> | Transactional<Tx>
  readonly overlap: Overlap
  readonly missed: Missed
  readonly graceMs: number
  readonly jitterMs: number
  readonly leaseMs: number
  readonly attempts: number
  readonly retryAfterMs: number
  readonly deadlineMs: number | undefined
  readonly keep: number
  readonly holder: string
  /** `undefined`: by what is asked for. */
  readonly waitMs: number | undefined
}

const overlaps: readonly Overlap[] = ['skip', 'wait', 'allow']
const knownBy = {
  'at-most-once': atMostOnceOptions,
  'at-least-once': atLeastOnceOptions,
  transactional: transactionalOptions,
} as const
const guarantees: readonly string[] = Object.keys(knownBy)
const mostTicks = 10_000
/** A timer that is half a second late must not cost the lease. */
const leastLeaseMs = 2_000

export function settingsOf<Tx>(given: ScheduleOptions<Tx>, holder: string): Settings<Tx> {
  const { guarantee } = objectGiven(given, 'options')
  if (!guarantees.includes(guarantee)) throw invalid('guarantee', guarantees.join(', '))
  const options = optionsGiven(given, knownBy[guarantee] as KnownOptions<typeof given>)
  assertFunction(options.handler, 'handler')
  assertOneOf(options, 'cron', 'every')
  assertOneOf(options, 'every', 'timeZone')
  const { missed = 'latest', overlap = 'skip', keep = 100, grace = '1 min', jitter } = options
  if (!overlaps.includes(overlap)) throw invalid('overlap', 'skip, wait or allow')
  // A transactional tick keeps the schedule locked until it commits.
  if (options.guarantee === 'transactional' && (overlap as Overlap) === 'allow')
    throw invalid(
      'overlap',
      'skip or wait: transactional ticks keep the schedule locked, one by one',
    )
  if (typeof missed === 'object' && missed !== null) countOf(missed.all, 'missed.all')
  else if (missed !== 'skip' && missed !== 'latest')
    throw invalid('missed', 'skip, latest, { all }')
  const leased: Pick<AtMostOnce<Tx>, 'lease'> = options.guarantee === 'transactional' ? {} : options
  const retried: RetriedOptions = options.guarantee === 'at-most-once' ? { attempts: 1 } : options
  const deadline = options.guarantee === 'transactional' ? options.deadline : undefined
  const leaseMs = durationMs(leased.lease ?? '30 s', 'lease')
  if (leaseMs < leastLeaseMs) throw invalid('lease', 'at least two seconds')
  const jitterMs = jitter === undefined ? 0 : durationMs(jitter, 'jitter')
  return {
    name: nameOf(options.name, 'name'),
    rule: ruleOf(options),
    ruleText: ruleText(options, jitterMs),
    work: options,
    overlap,
    missed,
    graceMs: durationMs(grace, 'grace'),
    jitterMs,
    leaseMs,
    attempts: countOf(retried.attempts ?? 5, 'attempts'),
    retryAfterMs: durationMs(retried.retryAfter ?? '1 s', 'retryAfter'),
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline, 'deadline'),
    keep: countOf(keep, 'keep'),
    waitMs: options.wait === undefined ? undefined : waitMsOf(options.wait),
    holder: nameOf(options.holder ?? holder, 'holder'),
  }
}

/**
 * Checks options of a schedule before there is one: for whoever takes them in advance, as a decorator does.
 *
 * @throws OPTION_INVALID
 */
export function assertScheduleOptions<Tx>(options: ScheduleOptions<Tx>): void {
  settingsOf(options, 'nobody')
}

/** Milliseconds; none at all for `nowait`. */
function waitMsOf(wait: Duration | 'nowait'): number {
  const { how, limitMs = 0 } = waitTerms(wait, nowait, ['nowait'])
  return how === 'nowait' ? 0 : limitMs
}

/** A number of ticks or attempts. */
export function countOf(value: number, option: string): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= mostTicks) return value
  throw invalid(option, `a whole number from 1 to ${mostTicks}`)
}

function nameOf(value: unknown, option: string): string {
  if (isName(value)) return value
  throw invalid(option, `a text of 1 to ${mostNameBytes} bytes without NUL`)
}

function invalid(option: string, wanted: string): Error {
  return holdfastError('OPTION_INVALID', {
    details: { option, subject: `${option} must be ${wanted}` },
  })
}
