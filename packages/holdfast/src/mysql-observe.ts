/** Looking at MariaDB and MySQL: less than on PostgreSQL, so that what is refused there does not compile. */
import {
  type Blocking,
  blockingOver,
  interventionsOver,
  type SessionInterventions,
} from './blocking/blocking.ts'
import { assertDriver } from './core/client-kind.ts'
import { holdfastError } from './core/errors.ts'
import { type KnownOptions, optionsGiven } from './core/options/known-options.ts'
import type { InnodbDriver } from './engines/innodb/driver.ts'
import { innodbBlocking } from './engines/innodb/observe/looking.ts'
import type { Interventions as AnyInterventions } from './observe/intervene.ts'
import type { Observer as AnyObserver } from './observe/observer.ts'

/**
 * Looks at MariaDB or MySQL, and changes nothing. Needs the right PROCESS, on MySQL also to read
 * `performance_schema`; works without the tables of Holdfast.
 */
export type Observer = Blocking

/**
 * What somebody who looks may do about it. An observer changes nothing; this does, so whoever offers it
 * asks first.
 */
export type Interventions = SessionInterventions

/** Settings of an observer. */
export interface ObserverOptions {
  /** The database that the tables of Holdfast are in. @defaultValue the one that the connections have chosen */
  readonly database?: string
  /** No statement of the observer runs longer. @defaultValue 2_000 */
  readonly statementTimeoutMs?: number
}

/**
 * An observer over a driver. Where it must also work while the application has used up its connections, give it a pool of
 * its own.
 *
 * @example
 * const observer = createObserver(fromMysql2(createPool({ uri, connectionLimit: 1 })))
 * for (const { session, below } of lockBranches(await observer.locks())) print(session, below)
 * @throws OPTION_INVALID, ENGINE_MISMATCH
 */
export function createObserver<Tx>(
  driver: InnodbDriver<Tx>,
  given: ObserverOptions = {},
): Observer {
  assertDriver(driver, 'createObserver of holdfast/mysql', 'innodb')
  const { database, statementTimeoutMs = 2_000 } = optionsGiven(given, observerOptions)
  if (!Number.isSafeInteger(statementTimeoutMs) || statementTimeoutMs < 1) {
    const subject = 'statementTimeoutMs must be a whole number from 1'
    throw holdfastError('OPTION_INVALID', { details: { option: 'statementTimeoutMs', subject } })
  }
  const observer = blockingOver(innodbBlocking(database), driver, { statementTimeoutMs })
  return { ...refusing('observe', notObserved), ...observer }
}

/** Settings of interventions. */
export interface InterventionOptions {
  /** Sessions whose `program_name` is this are left alone: those of whoever intervenes. MariaDB tells none. */
  readonly exceptApplication?: string
}

/**
 * Interventions over a driver.
 *
 * @example
 * const { pid, startedAt = '', transactionStartedAt = null, transactionId = '' } = session
 * await createInterventions(driver).cancel(pid, { startedAt, transactionStartedAt, transactionId })
 * @throws OPTION_INVALID, ENGINE_MISMATCH
 */
export function createInterventions<Tx>(
  driver: InnodbDriver<Tx>,
  given: InterventionOptions = {},
): Interventions {
  assertDriver(driver, 'createInterventions of holdfast/mysql', 'innodb')
  const { exceptApplication } = optionsGiven(given, interventionOptions)
  const interventions = interventionsOver(innodbBlocking(), driver, exceptApplication)
  return { ...refusing('interventions', notDone), ...interventions }
}

export const observerOptions: KnownOptions<ObserverOptions> = {
  database: 'text',
  statementTimeoutMs: 'checked',
}
const interventionOptions: KnownOptions<InterventionOptions> = { exceptApplication: 'text' }

type Absent<All, Offered> = Readonly<Record<Exclude<keyof All, keyof Offered>, true>>

const notObserved: Absent<AnyObserver, Observer> & { readonly record: true } = {
  names: true,
  lockMinutes: true,
  books: true,
  account: true,
  keys: true,
  usage: true,
  followers: true,
  holds: true,
  leases: true,
  schedules: true,
  claims: true,
  record: true,
}
const notDone: Absent<AnyInterventions, Interventions> = {
  pauseSchedule: true,
  resumeSchedule: true,
  requestTick: true,
}

/** What is absent from the type is told to whoever asks for it without one. */
function refusing(room: string, names: Readonly<Record<string, true>>): object {
  const refuse = (name: string) => async (): Promise<never> => {
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: `${room}.${name}` } })
  }
  return Object.fromEntries(Object.keys(names).map((name) => [name, refuse(name)]))
}
