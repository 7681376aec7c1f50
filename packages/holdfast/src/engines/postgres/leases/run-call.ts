import type { Driver, Executor, Session } from '../../../core/driver.ts'
import { askAgain, type ResolveOptions, resolveMs } from '../../../tx/ask-again.ts'
import { answerOf, schemaMissing } from '../sql/call-function.ts'
import type { FunctionCall } from '../sql/function-call.ts'

/**
 * Runs a call where the lease lives: on any connection, or on the session that holds the lock. An answer
 * that is lost is asked for again, at most for so long: owner and token make it the same one.
 */
export type RunCall = (call: FunctionCall, forMs?: number) => Promise<string | null>

/**
 * Any connection will do. Also inside a transaction of the caller's: neither a renewal nor a release
 * waits for what a guard holds.
 */
export function runAlone<Tx>(driver: Driver<Tx>, options: ResolveOptions): RunCall {
  return runOn(driver.alone, resolveMs(options))
}

/** Runs every call on one session, which is gone once it is lost. */
export function runOnSession(session: Session): RunCall {
  return runOn(session, 0)
}

function runOn(executor: Executor, mostMs: number): RunCall {
  return async (call, forMs = mostMs) => {
    try {
      const ask = async (): Promise<string | null> => answerOf(await executor.query(call.plain))
      return await askAgain(ask, { forMs: Math.min(forMs, mostMs) })
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
}
