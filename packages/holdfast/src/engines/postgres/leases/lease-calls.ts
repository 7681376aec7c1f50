import type { Driver } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import type { LossReason } from '../../../core/events/event-map.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import type {
  Acquired,
  LeaseCalls,
  LeaseCallsWithin,
  LeaseEngine,
  LeaseReading,
} from '../../../leases/engine.ts'
import type { ResolveOptions } from '../../../tx/ask-again.ts'
import { callFunction, sumOverPrimaries } from '../sql/call-function.ts'
import { connectingWithin } from '../sql/function-call.ts'
import { keepWatch, whichBackend } from '../tx/session.ts'
import {
  acquireLease,
  forgetLeases,
  guardLease,
  readLease,
  releaseLease,
  renewLease,
} from './leases.ts'
import { type RunCall, runAlone, runOnSession } from './run-call.ts'

/** Calls on any connection of a driver. */
export function leasesAlone<Tx>(driver: Driver<Tx>, options: ResolveOptions): LeaseCalls {
  return leaseCalls(runAlone(driver, options))
}

/** Each in one call of a function. */
function leaseCalls(run: RunCall): LeaseCalls {
  return {
    async acquire(schema, request, connectWithinMs) {
      const call = acquireLease(schema, request)
      try {
        return acquiredFrom(
          await run(connectWithinMs === Infinity ? call : connectingWithin(call, connectWithinMs)),
        )
      } catch (error) {
        // At REPEATABLE READ by default: somebody else was a moment earlier.
        if (sqlStateOf(error) === '40001') return { freeInMs: 0 }
        throw error
      }
    },
    renew: async (schema, held, forMs) => stateOf(await run(renewLease(schema, held), forMs)),
    release: async (schema, held) => stateOf(await run(releaseLease(schema, held))),
    async read(schema, name) {
      const answer = await run(readLease(schema, name))
      return answer === null ? undefined : readingOf(answer)
    },
  }
}

function leasesWithin<Tx>(driver: Driver<Tx>, tx: Tx): LeaseCallsWithin {
  const run: RunCall = (call) => callFunction(driver, tx, call, 'LEASE_OUTSIDE_TRANSACTION')
  return {
    guard: async (schema, token) => stateOf(await run(guardLease(schema, token))),
    release: async (schema, held) => stateOf(await run(releaseLease(schema, held))),
  }
}

function stateOf<S extends string>(answer: string | null): S | LossReason {
  return (answer ?? 'unknown') as S | LossReason
}

function acquiredFrom(answer: string | null): Acquired {
  const [token = '', ms] = (answer ?? '').split(',')
  return token === '' ? { freeInMs: Number(ms ?? 0) } : { token: BigInt(token) }
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

/** PostgreSQL's part of leases. */
export const postgresLeases: LeaseEngine = {
  of: 'postgres',
  alone: leasesAlone,
  async onSession(session, ttlMs) {
    // A pooler reports a process id of its own making, and hands the session to the next client.
    const [row] = await session.query(whichBackend)
    if (Number(row?.['pid']) !== session.claimedPid) throw holdfastError('LEASE_SESSION_POOLED')
    await session.query(keepWatch(ttlMs))
    return leaseCalls(runOnSession(session))
  },
  within: leasesWithin,
  forget: (driver, schema, idleMs, most) =>
    sumOverPrimaries(driver, forgetLeases(schema, idleMs, most)),
}
