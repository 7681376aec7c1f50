import { anyOf, closingSignal } from '../core/activity.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { nowait, waitTerms } from '../core/options/wait.ts'
import { type ResolveOptions, resolveOptions } from '../tx/ask-again.ts'
import { assertNotNested } from '../tx/run.ts'
import { tryLease, type WantedLease, waitForLease } from './acquire-lease.ts'
import type { LeaseEngine, LeaseReading } from './engine.ts'
import { type Lease, leaseOn } from './lease.ts'
import { leaseName } from './lease-name.ts'
import { type LeaseOptions, leaseOptions, leaseTerms } from './lease-terms.ts'
import { assertSignal, objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Settings of the room. */
export interface LeasesOptions extends ResolveOptions {
  /** Where its tables are. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** Options of `acquire`. */
export interface AcquireLeaseOptions extends LeaseOptions {
  /** Longest wait; `Infinity` waits for as long as it takes, `'nowait'` not at all. @defaultValue '10 s' */
  readonly wait?: Duration | 'nowait'
  /** Pause between two looks at a lease that is held. @defaultValue '500 ms' */
  readonly retryEvery?: Duration
  /** Ends the wait. */
  readonly signal?: AbortSignal
}

/** Exclusion that outlives a transaction, with a fence for those who lost it and do not know yet. */
export interface Leases<Tx> {
  /**
   * Takes a lease, waiting until it is free. It is renewed in the background until it is released.
   *
   * @example
   * await using lease = await hf.leases.acquire('nightly-report', { ttl: '30 s' })
   * await work({ signal: lease.signal })
   * @throws LEASE_TIMEOUT, LEASE_NAME_INVALID, OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  acquire(name: string, options?: AcquireLeaseOptions): Promise<Lease<Tx>>
  /**
   * Takes a lease if it is free, and gives nothing if it is not.
   *
   * @example
   * await using lease = await hf.leases.tryAcquire('nightly-report')
   * if (lease === undefined) return 'somebody else is at it'
   * @throws LEASE_NAME_INVALID, OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  tryAcquire(name: string, options?: LeaseOptions): Promise<Lease<Tx> | undefined>
  /**
   * `lease.guard` for who was handed a token instead of the lease: another process, a job.
   *
   * @throws LEASE_LOST, LEASE_OUTSIDE_TRANSACTION, LEASE_NAME_INVALID
   */
  guard(tx: Tx, held: { name: string; token: bigint; scope?: string }): Promise<void>
  /** Who holds it and until when; nothing if it was never held. A look, not a right. */
  read(name: string, options?: { readonly scope?: string }): Promise<LeaseReading | undefined>
  /**
   * Deletes rows of leases that nobody has held for so long, and says how many. Tokens do not start
   * again. Only needed where names are made up as you go.
   *
   * @throws OPTION_INVALID
   */
  forget(options: { readonly idleFor: Duration; readonly limit?: number }): Promise<number>
}

export const leasesOptions: KnownOptions<LeasesOptions> = {
  ...resolveOptions,
  schema: 'text',
}

const acquireLeaseOptions: KnownOptions<AcquireLeaseOptions> = {
  ...leaseOptions,
  wait: 'checked',
  retryEvery: 'checked',
  signal: 'signal',
}

const readOptions: KnownOptions<Parameters<Leases<never>['read']>[1] & object> = {
  scope: 'checked',
}

const forgetOptions: KnownOptions<Parameters<Leases<never>['forget']>[0]> = {
  idleFor: 'checked',
  limit: 'checked',
}

/** Stands for a wait without end; the timer takes what it can. */
function waitOf(wait: Duration | 'nowait'): number {
  if (wait === Number.POSITIVE_INFINITY) return wait
  return waitTerms(wait, nowait, ['nowait']).limitMs ?? 0
}

/** Leases over a driver, as its engine has them. */
export function leasesOver<Tx>(
  engine: LeaseEngine,
  driver: Driver<Tx>,
  given: LeasesOptions = {},
): Leases<Tx> {
  assertDriver(driver, 'createLeases', engine.of)
  const options = optionsGiven(given, leasesOptions)
  const schema = options.schema ?? 'holdfast'
  const calls = engine.alone(driver, options)
  const place = { engine, driver, schema }
  const wantedOf = (name: string, asked: LeaseOptions): WantedLease => ({
    schema,
    name: leaseName(name, asked.scope),
    terms: leaseTerms(asked),
    note: asked.note,
    sessionLock: undefined,
  })
  return {
    async acquire(name, given) {
      const asked = optionsGiven(given, acquireLeaseOptions)
      const { wait = '10 s', retryEvery = '500 ms', signal, ...terms } = asked
      assertSignal(signal)
      const wanted = wantedOf(name, terms)
      const waiting = {
        waitMs: waitOf(wait),
        retryMs: durationMs(retryEvery, 'retryEvery'),
        // Nobody begins something that is to end at once.
        signal: anyOf(signal, closingSignal()),
      }
      assertNotNested(driver)
      return leaseOn(place, await waitForLease(wanted, calls, waiting))
    },
    async tryAcquire(name, given) {
      const wanted = wantedOf(name, optionsGiven(given, leaseOptions))
      assertNotNested(driver)
      const outcome = await tryLease(wanted, calls)
      if (typeof outcome !== 'number') return leaseOn(place, outcome)
      publish(channels.leaseBusy, { name, freeInMs: outcome })
      return undefined
    },
    async guard(tx, held) {
      const { name, token, scope } = objectGiven(held, 'held')
      assertToken(token)
      const asked = { ...leaseName(name, scope), token }
      const reason = await engine.within(driver, tx).guard(schema, asked)
      if (reason === 'held') return
      throw holdfastError('LEASE_LOST', { about: reason, details: { subject: name, reason } })
    },
    async read(name, given) {
      const { scope } = optionsGiven(given, readOptions)
      return await calls.read(schema, leaseName(name, scope))
    },
    async forget(given) {
      const { idleFor, limit = 1_000 } = optionsGiven(given, forgetOptions)
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > mostForgotten)
        throw invalid('limit', `limit must be a whole number from 1 to ${mostForgotten}`)
      return await engine.forget(driver, schema, durationMs(idleFor, 'idleFor'), limit)
    },
  }
}

const mostForgotten = 1_000_000

/** It may have come through a job or a message, as a number or a text. */
function assertToken(token: unknown): void {
  const isNumber = typeof token === 'bigint' || Number.isSafeInteger(token)
  const isDigits = typeof token === 'string' && /^\d{1,19}$/.test(token)
  if (
    (isNumber || isDigits) &&
    BigInt.asIntN(64, BigInt(token as bigint)) === BigInt(token as bigint)
  )
    return
  throw invalid('token', 'token must be that of a lease')
}

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
