import { anyOf, closingSignal, leaveBehind } from '../core/activity.ts'
import { pause } from '../core/backoff.ts'
import type { Driver, SessionDriver } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import type { LeaderEndedEvent, LeaderTroubleEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { lockMemoryOf } from '../core/locks/lock-memory.ts'
import { spread, type WantedLease } from './acquire-lease.ts'
import type { LeaseCalls, LeaseEngine } from './engine.ts'
import type { HeldLease } from './held-lease.ts'
import { type Lease, leaseOn } from './lease.ts'
import { leaseName } from './lease-name.ts'
import { type LeaseOptions, leaseTerms } from './lease-terms.ts'
import { leaderKey, leaseSeat, type Seat, sessionSeat } from './seat.ts'
import { untilLeft } from './until-left.ts'
import { assertFunction, assertSignal, objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Settings of an election. All candidates of one name take part in the same one. */
export interface LeaderOptions extends Omit<LeaseOptions, 'renew'> {
  /** What is led. */
  readonly name: string
  /**
   * How long others wait if the leader is gone without a word, and how long it takes until a leader
   * that cannot reach the server steps down. @defaultValue '15 s'
   */
  readonly ttl?: Duration
  /** Pause between two tries of those who do not lead. @defaultValue '1 s', with `session` '200 ms' */
  readonly retryEvery?: Duration
  /**
   * A driver whose pool leads straight to the server. Each candidate then keeps one connection, and
   * leadership passes on as soon as the leader's connection ends, without waiting for `ttl`. Only
   * clients that can keep a connection have it: `fromPg`, `fromPostgresJs`.
   */
  readonly session?: Pick<SessionDriver<never>, 'session'>
}

/** The time in which this process leads. */
export type Term<Tx> = Pick<Lease<Tx>, 'token' | 'signal' | 'remainingMs' | 'guard'>

/** A candidate. */
export interface Leader<Tx> {
  /** The term of this process, while it leads. */
  readonly term: Term<Tx> | undefined
  /**
   * Waits to be elected, then runs the body. It ends when the body does: by then somebody else may
   * lead. If leadership is lost, the term's signal is aborted, the body is waited for, and the
   * candidate stands again. The signal given here ends it all: the body is told by its own signal, and
   * waited for. One that does not heed it is left after `leaveAfter`, and so is the lease: it ends when
   * its time is over, or with the session.
   *
   * @example
   * await hf.leader({ name: 'reconciler' }).run(async (term) => {
   *   while (!term.signal.aborted) await reconcile(term)
   * }, { signal: shutdown })
   * @throws what the body throws while it leads; LEASE_TERM_LEFT, LEASE_SESSION_POOLED, SCHEMA_MISSING
   */
  run(body: (term: Term<Tx>) => Promise<void>, options?: LeadOptions): Promise<void>
}

/** How a candidate is ended. */
export interface LeadOptions {
  readonly signal?: AbortSignal
  /** How long the body is waited for after the signal. @defaultValue '30 s' */
  readonly leaveAfter?: Duration
}

const leaderOptions: KnownOptions<LeaderOptions> = {
  name: 'checked',
  ttl: 'checked',
  retryEvery: 'checked',
  session: 'checked',
  stopBefore: 'checked',
  delayAfterLoss: 'checked',
  note: 'text',
  scope: 'checked',
}

const leadOptions: KnownOptions<LeadOptions> = {
  signal: 'signal',
  leaveAfter: 'checked',
}

/** A candidate tries again by itself, and whoever stops it is not to wait long. */
const patience = { resolveFor: '2 s' } as const

/** Elections over a driver, as its engine has them. */
export function leaderOver<Tx>(
  engine: LeaseEngine,
  driver: Driver<Tx>,
  given: LeaderOptions,
  { schema }: { readonly schema: string },
): Leader<Tx> {
  assertDriver(driver, 'createLeader', engine.of)
  const options = optionsGiven(given, leaderOptions)
  const { session, note } = options
  if (session !== undefined) assertFunction(objectGiven(session, 'session').session, 'session')
  const name = leaseName(options.name, options.scope)
  const retryMs = durationMs(
    options.retryEvery ?? (session === undefined ? '1 s' : '200 ms'),
    'retryEvery',
  )
  const wanted: WantedLease = {
    schema,
    name,
    terms: leaseTerms(options, '15 s'),
    note,
    sessionLock: session === undefined ? undefined : leaderKey(name).lock.id,
  }
  const alone = (): LeaseCalls => engine.alone(driver, patience)
  const takeSeat = async (): Promise<Seat> => {
    if (session === undefined) return leaseSeat(wanted, alone())
    lockMemoryOf(driver).note(leaderKey(name))
    return await sessionSeat(engine, wanted, session)
  }
  const trouble = (during: LeaderTroubleEvent['during'], error: unknown): void =>
    publish(channels.leaderTrouble, { name: name.name, during, error })
  let current: Term<Tx> | undefined

  /** True if the body ended by itself. */
  const lead = async (
    lease: HeldLease,
    seat: Seat,
    body: (term: Term<Tx>) => Promise<void>,
    stop: AbortSignal | undefined,
    leaveMs: number,
  ): Promise<boolean> => {
    const { token, guard, remainingMs } = leaseOn({ engine, driver, schema }, lease)
    const { signal } = lease
    const either = stop === undefined ? signal : AbortSignal.any([signal, stop])
    current = {
      token,
      guard,
      remainingMs,
      get signal() {
        // Asked first, because it looks at the clock.
        return lease.signal.aborted ? lease.signal : either
      },
    }
    publish(channels.leaderElected, { name: name.name, token })
    const began = performance.now()
    const ended = (reason: LeaderEndedEvent['reason']): void => {
      const termMs = performance.now() - began
      publish(channels.leaderEnded, { name: name.name, token, termMs, reason })
    }
    const { stopBeforeMs } = wanted.terms
    // A body that does not stop must not keep the others waiting: the fence is what holds it back.
    let leaving: NodeJS.Timeout | undefined
    signal.addEventListener('abort', () => {
      leaving = setTimeout(() => void seat.leave(), stopBeforeMs)
      leaving.unref()
    })
    let working: Promise<void> | undefined
    try {
      working = body(current)
      await untilLeft(working, { stop, leaveMs }, () =>
        holdfastError('LEASE_TERM_LEFT', { about: '', details: { subject: name.name } }),
      )
      ended(lease.over ? 'lost' : 'over')
      return !lease.over
    } catch (error) {
      if (isHoldfastError(error, 'LEASE_TERM_LEFT')) {
        lease.leave(error)
        if (working !== undefined) leaveBehind(working)
        ended('lost')
        throw error
      }
      if (!lease.over) {
        const stopped = stop?.aborted === true && error === stop.reason
        ended(stopped ? 'over' : 'failed')
        if (stopped) return true
        throw error
      }
      ended('lost')
      trouble('term', error)
      return false
    } finally {
      current = undefined
      if (!isHoldfastError(lease.signal.reason, 'LEASE_TERM_LEFT')) await resign(lease)
      clearTimeout(leaving)
    }
  }

  /** Whatever goes wrong here, the lease ends by itself. */
  const resign = async (lease: HeldLease): Promise<void> => {
    const moved = isMoved(lease.signal.reason)
    // A lock goes with its session, which ends right after; but where the bucket is now nobody waits for it.
    if (lease.over && session !== undefined && !moved) return
    try {
      const state = await lease.release(moved ? alone() : undefined)
      if (state === 'stacked' || state === 'unlocked') lease.lose('unlocked')
    } catch (error) {
      trouble('resigning', error)
    }
  }

  return {
    get term() {
      return current
    },
    async run(body, asked) {
      const { signal: stop, leaveAfter = '30 s' } = optionsGiven(asked, leadOptions)
      assertFunction(body)
      assertSignal(stop)
      const leaveMs = durationMs(leaveAfter, 'leaveAfter')
      const signal = anyOf(stop, closingSignal())
      let seat: Seat | undefined
      try {
        while (signal?.aborted !== true) {
          let outcome: HeldLease | number = 0
          try {
            seat ??= await takeSeat()
            outcome = await seat.attempt()
          } catch (error) {
            // What no retry helps against; an outage is none of it.
            if (isHoldfastError(error) && !error.retryable) throw error
            trouble('campaign', error)
            await seat?.leave()
            seat = undefined
          }
          if (typeof outcome !== 'number' && seat !== undefined) {
            const ended = await lead(outcome, seat, body, signal, leaveMs)
            await seat.leave()
            seat = undefined
            if (ended) return
          }
          // Not before the lease can be free, and as soon as it is.
          const freeInMs = typeof outcome === 'number' && outcome > 0 ? outcome : retryMs
          await untilNextTry(Math.min(retryMs, freeInMs), signal)
        }
      } finally {
        await seat?.leave()
      }
    },
  }
}

function isMoved(reason: unknown): boolean {
  return isHoldfastError(reason, 'LEASE_LOST') && reason.details['reason'] === 'moved'
}

/** Those who were elected together would try together for ever. An end of the wait is no error. */
async function untilNextTry(retryMs: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await pause(spread(retryMs), signal)
  } catch (error) {
    if (signal?.aborted !== true) throw error
  }
}
