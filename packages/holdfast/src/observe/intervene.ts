import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { endWork, findSchedule } from '../engines/postgres/observe-interventions.ts'
import { pauseSchedule, requestTick } from '../engines/postgres/schedule.ts'
import { bucketOf } from '../core/bucket.ts'
import { callFunction } from '../tx/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { missingSchema } from './answer.ts'

/** Settings of interventions. */
export interface InterventionOptions {
  /** Where Holdfast's tables are. @defaultValue 'holdfast' */
  readonly schema?: string
  /** Sessions with this application_name are left alone: those of whoever intervenes. */
  readonly exceptApplication?: string
}

/** Makes sure that it is the session that was seen, and not another that got its process id since. */
export interface SessionSeen {
  /** `startedAt` as the observer showed it. */
  readonly startedAt?: string | undefined
}

/**
 * What somebody who looks may do about it. An observer changes nothing; this does, so whoever offers it
 * asks first.
 */
export interface Interventions {
  /**
   * Cancels the statement that a session is running; its transaction fails. False if the server says that
   * it could not send the signal.
   *
   * @example await interventions.cancel(4711, { startedAt: session.startedAt })
   * @throws OBSERVE_NO_SUCH_SESSION
   */
  cancel(pid: number, seen?: SessionSeen): Promise<boolean>
  /** Ends a session; its transaction is rolled back, its locks are free. @throws OBSERVE_NO_SUCH_SESSION */
  terminate(pid: number, seen?: SessionSeen): Promise<boolean>
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
  { schema = 'holdfast', exceptApplication }: InterventionOptions = {},
): Interventions {
  const end = async (
    what: 'statement' | 'session',
    pid: number,
    { startedAt }: SessionSeen = {},
  ): Promise<boolean> => {
    if (!Number.isSafeInteger(pid) || pid < 1 || pid > 2 ** 31 - 1) throw noSession(pid)
    assertNotNested(driver)
    const [row] = await driver.alone.query(endWork(what, { pid, startedAt, exceptApplication }))
    if (row === undefined) throw noSession(pid)
    return row['ended'] === true
  }
  const switchTo = async (name: string, pause: boolean): Promise<boolean> => {
    assertNotNested(driver)
    const known = driver.alone.query(findSchedule(schema, bucketOf(name), name))
    const [row] = await known.catch((error: unknown) => {
      throw missingSchema(error) ?? error
    })
    if (row?.['known'] !== true) throw noSchedule(name)
    const call = pauseSchedule(schema, name, pause)
    const answer = await callFunction(driver, undefined, call, 'SCHEMA_MISSING')
    return answer === 'true'
  }
  return {
    cancel: (pid, seen) => end('statement', pid, seen),
    terminate: (pid, seen) => end('session', pid, seen),
    pauseSchedule: (name) => switchTo(name, true),
    resumeSchedule: (name) => switchTo(name, false),
    async requestTick(name, by = 'by hand') {
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

function noSchedule(name: string): Error {
  return holdfastError('OBSERVE_NO_SUCH_SCHEDULE', { details: { schedule: name } })
}
