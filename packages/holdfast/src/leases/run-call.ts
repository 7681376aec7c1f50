import type { Driver, Session } from '../core/driver.ts'
import type { FunctionCall } from '../engines/postgres/function-call.ts'
import { answerOf, schemaMissing } from '../tx/call-function.ts'

/** Runs a call where the lease lives: on any connection, or on the session that holds the lock. */
export type RunCall = (call: FunctionCall) => Promise<string | null>

/**
 * Any connection will do. Also inside a transaction of the caller's: neither a renewal nor a release
 * waits for what a guard holds.
 */
export function runAlone<Tx>(driver: Driver<Tx>): RunCall {
  return runOn(driver.alone)
}

/** Runs every call on one session, or wherever single statements go. */
export function runOn(executor: Driver<unknown>['alone'] | Session): RunCall {
  return async (call) => {
    try {
      return answerOf(await executor.query(call.plain))
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
}
