import type { Driver } from 'holdfast'
import type { ClaimsOptions } from 'holdfast/claims'
import { examine, type HealthFinding } from 'holdfast/health'
import * as mysql from 'holdfast/mysql'
import {
  createInterventions,
  createObserver,
  type Interventions,
  type Observer,
} from 'holdfast/observe'
import type { EngineName } from '../core/wire.ts'
import { type DeadJobs, watchDeadJobs } from './dead-jobs.ts'

/** What can be seen and done through a driver. */
export interface Looking {
  readonly engine: EngineName
  /** Calls that the engine does not have are refused with ENGINE_NOT_OFFERED. */
  readonly observer: Observer
  readonly interventions: Interventions
  /** Of the ready-made table of jobs, which only PostgreSQL has. */
  readonly deadJobs: DeadJobs | undefined
  readonly examine: () => Promise<readonly HealthFinding[]>
}

interface Places {
  readonly schema: string | undefined
  readonly claims: readonly ClaimsOptions[] | undefined
  readonly ownApplication: string | undefined
}

export function lookThrough(driver: Driver<unknown>, places: Places): Looking {
  const { schema, claims, ownApplication } = places
  const tables = claims === undefined ? {} : { claims }
  const own = ownApplication === undefined ? {} : { exceptApplication: ownApplication }
  if (isInnodb(driver)) {
    // There a schema is a database.
    const place = schema === undefined ? {} : { database: schema }
    return {
      engine: 'innodb',
      observer: mysql.createObserver(driver, place) as unknown as Observer,
      interventions: mysql.createInterventions(driver, own) as unknown as Interventions,
      deadJobs: undefined,
      examine: () => mysql.examine(driver, { ...place, ...tables }),
    }
  }
  const place = schema === undefined ? {} : { schema }
  return {
    engine: 'postgres',
    observer: createObserver(driver, { ...place, ...tables }),
    interventions: createInterventions(driver, { ...place, ...own }),
    deadJobs: watchDeadJobs(driver, schema),
    examine: () => examine(driver, { ...place, ...tables }),
  }
}

function isInnodb(driver: Driver<unknown>): driver is mysql.InnodbDriver<unknown> {
  return driver.engine.name === 'innodb'
}
