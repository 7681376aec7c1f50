import { anyOf, closingSignal } from '../core/activity.ts'
import { type Duration, durationMs } from '../core/duration.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { nowait, waitTerms } from '../core/wait.ts'
import { forgetLeases, readLease } from '../engines/postgres/leases/leases.ts'
import { sumOverPrimaries } from '../engines/postgres/sql/call-function.ts'
import type { ResolveOptions } from '../tx/ask-again.ts'
import { assertNotNested } from '../tx/run.ts'
import { tryLease, type WantedLease, waitForLease } from './acquire-lease.ts'
import { fence, type Lease, leaseOn } from './lease.ts'
import { leaseName } from './lease-name.ts'
import { type LeaseOptions, leaseTerms } from './lease-terms.ts'
import { runAlone } from './run-call.ts'
import { assertSignal, objectGiven } from '../core/given.ts'
import { optionsGiven } from '../core/known-options.ts'
import {
  acquireLeaseOptions,
  forgetOptions,
  leaseOptions,
  leasesOptions,
  readOptions,
} from './known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

export type { LeaseLostEvent, LossReason, RenewalFailedEvent } from '../core/event-map.ts'
export {
  createLeader,
  type Leader,
  type LeaderOptions,
  type LeadOptions,
  type Term,
} from './leader.ts'
export type { Lease } from './lease.ts'
export type { LeaseOptions } from './lease-terms.ts'

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

/** What is known about a lease. */
export interface LeaseReading {
  /** `delayed`: it expired, and `delayAfterLoss` is not over yet. */
  readonly state: 'held' | 'delayed' | 'free'
  /** Of the holder, or of the last one. */
  readonly token: bigint
  readonly note: string | undefined
  /** By the server's clock. */
  readonly acquiredAt: Date | undefined
  readonly expiresAt: Date | undefined
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

/** Stands for a wait without end; the timer takes what it can. */
function waitOf(wait: Duration | 'nowait'): number {
  if (wait === Number.POSITIVE_INFINITY) return wait
  return waitTerms(wait, nowait, ['nowait']).limitMs ?? 0
}

/** Leases over a driver. */
export function createLeases<Tx>(driver: Driver<Tx>, given: LeasesOptions = {}): Leases<Tx> {
  assertDriver(driver, 'createLeases')
  const options = optionsGiven(given, leasesOptions)
  const schema = options.schema ?? 'holdfast'
  const run = runAlone(driver, options)
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
      return leaseOn(driver, schema, await waitForLease(wanted, run, waiting))
    },
    async tryAcquire(name, given) {
      const wanted = wantedOf(name, optionsGiven(given, leaseOptions))
      assertNotNested(driver)
      const outcome = await tryLease(wanted, run)
      if (typeof outcome !== 'number') return leaseOn(driver, schema, outcome)
      publish(channels.leaseBusy, { name, freeInMs: outcome })
      return undefined
    },
    async guard(tx, held) {
      const { name, token, scope } = objectGiven(held, 'held')
      assertToken(token)
      const reason = await fence(driver, schema, tx, { ...leaseName(name, scope), token })
      if (reason === undefined) return
      throw holdfastError('LEASE_LOST', { about: reason, details: { subject: name, reason } })
    },
    async read(name, given) {
      const { scope } = optionsGiven(given, readOptions)
      const answer = await run(readLease(schema, leaseName(name, scope)))
      return answer === null ? undefined : readingOf(answer)
    },
    async forget(given) {
      const { idleFor, limit = 1_000 } = optionsGiven(given, forgetOptions)
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > mostForgotten)
        throw invalid('limit', `limit must be a whole number from 1 to ${mostForgotten}`)
      const call = forgetLeases(schema, durationMs(idleFor, 'idleFor'), limit)
      return await sumOverPrimaries(driver, call)
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

function readingOf(answer: string): LeaseReading {
  const { state, token, note, acquired, expires } = JSON.parse(answer) as {
    readonly state: LeaseReading['state']
    readonly token: string
    readonly note: string | null
    readonly acquired: string | null
    readonly expires: string | null
  }
  return {
    state,
    token: BigInt(token),
    note: note ?? undefined,
    acquiredAt: momentOf(acquired),
    expiresAt: momentOf(expires),
  }
}

/** Microseconds since 1970 as the Date that contains them. */
function momentOf(micros: string | null): Date | undefined {
  return micros === null ? undefined : new Date(Number(BigInt(micros) / 1_000n))
}
