import type { Isolation } from '../core/driver.ts'
import { type RetryInfo, type RetryPolicy, retryTerms } from './retry.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import type { Scope } from '../core/bucket.ts'
import { assertFunction, assertSignal, assertTexts, objectGiven } from '../core/options/given.ts'
import type { Engine } from '../core/engine.ts'
import { holdfastError } from '../core/errors.ts'
import { assertOneOf, type KnownOptions } from '../core/options/known-options.ts'

/** How a transaction that Holdfast opens is run. */
export interface RunOptions {
  /** The server's default level unless named. */
  readonly isolation?: Isolation
  /** Limit for all attempts together, from the call. */
  readonly deadline?: Duration
  /** @deprecated Say `deadline`. */
  readonly deadlineMs?: number
  /** Cancels the running statement on the server and rolls back. */
  readonly signal?: AbortSignal
  /** `false` runs once. @defaultValue five attempts, within 10 s, after a conflict or a lost connection */
  readonly retry?: RetryPolicy | false
  /**
   * What the body has read survives a failover once this resolves, also if it wrote nothing: COMMIT waits
   * for the synchronous standby. For looking whether something that ended as COMMIT_UNKNOWN is there.
   * @defaultValue false
   */
  readonly durable?: boolean
  /** Called before each pause; throwing from it ends the retries. */
  readonly onRetry?: (info: RetryInfo) => void
  /** Routing keys for a sharded driver; guard() fills them in from its lock keys. */
  readonly scopes?: readonly string[]
}

/** The same from inside, where a scope may be known by its bucket. */
export interface RoutedOptions extends Omit<RunOptions, 'scopes'> {
  readonly scopes?: readonly Scope[]
}

/** Defaults of `RunOptions`, for every transaction that Holdfast opens for a caller's body. */
export type TxOptions = Pick<RunOptions, 'deadline' | 'retry' | 'onRetry'>

export const txOptions: KnownOptions<TxOptions> = {
  deadline: 'checked',
  retry: 'checked',
  onRetry: 'function',
}

export const runOptions: KnownOptions<RunOptions> = {
  ...txOptions,
  isolation: 'checked',
  deadlineMs: 'checked',
  signal: 'signal',
  durable: 'boolean',
  scopes: 'texts',
}

/** What a call says, and the defaults where it says nothing; `undefined` says nothing. */
export function withTxDefaults<O extends RunOptions>(
  defaults: TxOptions | undefined,
  given: O | undefined,
): O {
  const options = objectGiven(given, 'options')
  assertSignal(options.signal)
  assertTexts(options.scopes, 'scopes')
  if (options.onRetry !== undefined) assertFunction(options.onRetry, 'onRetry')
  if (defaults === undefined) return options
  const { deadline, deadlineMs, retry, onRetry } = options
  return {
    ...options,
    deadline: deadline ?? (deadlineMs === undefined ? defaults.deadline : undefined),
    retry: retry ?? defaults.retry,
    onRetry: onRetry ?? defaults.onRetry,
  }
}

/** Those of any engine. */
const isolations: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

/**
 * The values of options that were read by their table already, before there is a transaction that would read them.
 *
 * @throws OPTION_INVALID
 */
export function assertRunOptions(options: RunOptions): void {
  withTxDefaults(undefined, options)
  deadlineMsOf(options)
  retryTerms(options.retry)
  assertIsolation({ isolations }, options.isolation)
}

/** @throws OPTION_INVALID */
export function assertIsolation(
  { isolations }: Pick<Engine, 'isolations'>,
  isolation: Isolation | undefined,
): void {
  if (isolation === undefined || isolations.includes(isolation)) return
  const subject = `isolation must be ${isolations.map((each) => `'${each}'`).join(', ')}`
  throw holdfastError('OPTION_INVALID', { details: { option: 'isolation', subject } })
}

/** The deadline as it was asked for. @throws OPTION_INVALID */
export function deadlineMsOf(
  options: Pick<RunOptions, 'deadline' | 'deadlineMs'>,
): number | undefined {
  const { deadline } = options
  if (deadline !== undefined && options.deadlineMs !== undefined)
    assertOneOf(options, 'deadline', 'deadlineMs')
  const ms = deadline === undefined ? options.deadlineMs : durationMs(deadline, 'deadline')
  if (ms === undefined || (Number.isFinite(ms) && ms > 0)) return ms
  throw holdfastError('OPTION_INVALID', {
    details: {
      option: 'deadlineMs',
      subject: 'deadlineMs must be a number of milliseconds above 0',
    },
  })
}
