import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { checkedSeen, type SessionSeen } from '../blocking/blocking.ts'
import { isName } from '../core/storable.ts'
import { endWork, findSchedule, whoseSession } from '../engines/postgres/observe/interventions.ts'
import { joinRole } from '../engines/postgres/schema/role-texts.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { pauseSchedule, requestTick } from '../engines/postgres/schedule/schedule.ts'
import { bucketOf } from '../core/bucket.ts'
import { callFunction, missingSchema } from '../engines/postgres/sql/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { isTrue } from '../core/is-true.ts'
import { assertText } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** For a tick that is at work in a transaction. */
const pauseWaitMs = 10_000

/** Settings of interventions. */
export interface InterventionOptions {
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
  /** Sessions with this application_name are left alone: those of whoever intervenes. */
  readonly exceptApplication?: string
}

const interventionOptions: KnownOptions<InterventionOptions> = {
  schema: 'text',
  exceptApplication: 'text',
}

/**
 * What somebody who looks may do about it. An observer changes nothing; this does, so whoever offers it
 * asks first.
 */
export interface Interventions {
  /**
   * Cancels the statement that a session is running; its transaction fails. False if it runs none, or the
   * server could not send the signal.
   *
   * @example
   * const { pid, startedAt = '', transactionStartedAt = null } = session
   * await interventions.cancel(pid, { startedAt, transactionStartedAt })
   * @throws OBSERVE_NO_SUCH_SESSION, OBSERVE_TRANSACTION_OVER, OBSERVE_RIGHT_MISSING, OPTION_INVALID
   */
  cancel(pid: number, seen: SessionSeen): Promise<boolean>
  /**
   * Ends a session; its transaction is rolled back, its locks are free.
   *
   * @throws OBSERVE_NO_SUCH_SESSION, OBSERVE_TRANSACTION_OVER, OBSERVE_RIGHT_MISSING, OPTION_INVALID
   */
  terminate(pid: number, seen: SessionSeen): Promise<boolean>
  /** No process takes ticks of it from now on. False if it was paused. @throws OBSERVE_NO_SUCH_SCHEDULE, SCHEMA_MISSING */
  pauseSchedule(name: string): Promise<boolean>
  /** Goes on with the next tick. False if it was not paused. @throws OBSERVE_NO_SUCH_SCHEDULE, SCHEMA_MISSING */
  resumeSchedule(name: string): Promise<boolean>
  /**
   * Asks for a tick beside the rule: a process that runs the schedule takes it when it looks next, within a
   * minute, also while the schedule is paused. Gives its instant. Asked again before somebody took it, it
   * is the same tick.
   *
   * @throws OBSERVE_NO_SUCH_SCHEDULE, SCHEMA_MISSING
   */
  requestTick(name: string, by?: string): Promise<Date>
}

/** Interventions over a driver. */
export function createInterventions<Tx>(
  driver: Driver<Tx>,
  given: InterventionOptions = {},
): Interventions {
  assertDriver(driver, 'createInterventions')
  const { schema = 'holdfast', exceptApplication } = optionsGiven(given, interventionOptions)
  const end = async (
    what: 'statement' | 'session',
    pid: number,
    seen: SessionSeen,
  ): Promise<boolean> => {
    const { startedAt, transactionStartedAt } = checkedSeen(seen)
    if (!Number.isSafeInteger(pid) || pid < 1 || pid > 2 ** 31 - 1) throw noSession(pid)
    assertNotNested(driver)
    const address = { pid, startedAt, transactionStartedAt, exceptApplication }
    const asked = driver.alone.query(endWork(what, address))
    const [row] = await asked.catch(async (error: unknown) => {
      if (sqlStateOf(error) !== '42501') throw error
      const [asker] = await driver.alone.query(whoseSession(pid))
      const right = isTrue(asker?.['superuser']) ? 'SUPERUSER' : 'pg_signal_backend'
      throw rightMissing(pid, right, String(asker?.['user']), error)
    })
    if (row === undefined) throw noSession(pid)
    if (isTrue(row['hidden'])) throw rightMissing(pid, 'pg_read_all_stats', String(row['user']))
    if (!isTrue(row['meant'])) {
      throw holdfastError('OBSERVE_TRANSACTION_OVER', { details: { subject: String(pid), pid } })
    }
    return isTrue(row['ended'])
  }
  const switchTo = async (name: string, pause: boolean): Promise<boolean> => {
    // No schedule can be called so.
    if (!isName(name)) throw noSchedule(name)
    assertNotNested(driver)
    const known = driver.alone.query(findSchedule(schema, bucketOf(name), name))
    const [row] = await known.catch((error: unknown) => {
      throw missingSchema(error) ?? error
    })
    if (!isTrue(row?.['known'])) throw noSchedule(name)
    const call = pauseSchedule(schema, name, pause, pauseWaitMs)
    const answer = await callFunction(driver, undefined, call, 'SCHEMA_MISSING').catch(
      (error: unknown) => {
        if (sqlStateOf(error) !== '55P03') throw error
        throw holdfastError('SCHEDULE_TIMEOUT', { cause: error, details: { subject: name } })
      },
    )
    return answer === 'true'
  }
  return {
    cancel: (pid, seen) => end('statement', pid, seen),
    terminate: (pid, seen) => end('session', pid, seen),
    pauseSchedule: (name) => switchTo(name, true),
    resumeSchedule: (name) => switchTo(name, false),
    async requestTick(name, by = 'by hand') {
      if (!isName(name)) throw noSchedule(name)
      assertText(by, 'by')
      const call = requestTick(schema, name, by)
      const micros = await callFunction(driver, undefined, call, 'SCHEMA_MISSING')
      if (micros === null) throw noSchedule(name)
      return new Date(Number(micros) / 1_000)
    },
  }
}

function noSession(pid: number): Error {
  return holdfastError('OBSERVE_NO_SUCH_SESSION', { details: { subject: String(pid), pid } })
}

/** The role may not see the session's transaction, or not end it. */
function rightMissing(
  pid: number,
  right: 'pg_read_all_stats' | 'pg_signal_backend' | 'SUPERUSER',
  role: string,
  cause?: unknown,
): Error {
  const subject =
    right === 'SUPERUSER' ? 'it belongs to a superuser' : joinRole(right, role).replace(/;$/, '')
  return holdfastError('OBSERVE_RIGHT_MISSING', { cause, details: { subject, pid, right, role } })
}

function noSchedule(name: string): Error {
  return holdfastError('OBSERVE_NO_SUCH_SCHEDULE', { details: { schedule: name } })
}
