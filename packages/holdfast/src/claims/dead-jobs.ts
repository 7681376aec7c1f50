import type { Driver, Row } from '../core/driver.ts'
import { createDead, type DeadRows } from './dead.ts'
import type { ClaimsEngine } from './engine.ts'
import { leaseSettings } from './layout.ts'
import { workTable } from './work-table.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** A job of the table `work` that had its last attempt. */
export interface DeadJob<P = unknown> {
  readonly id: string
  readonly queue: string
  readonly scope: string
  readonly payload: P
  readonly priority: number
  readonly uniqueKey: string | undefined
  readonly maxAttempts: number
  readonly enqueuedAt: Date
  /** When it was due last. */
  readonly runAt: Date
}

/** Which jobs. */
export interface DeadJobsOptions {
  /** Only of this queue. @defaultValue all of them */
  readonly queue?: string
  /** Where the table is. @defaultValue 'holdfast' */
  readonly schema?: string
}

const deadJobsOptions: KnownOptions<DeadJobsOptions> = {
  queue: 'text',
  schema: 'text',
}

/** The dead jobs of the table `work`, of one queue or of all. */
export function deadJobsOver<Tx, P>(
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  given: DeadJobsOptions,
): DeadRows<DeadJob<P>> {
  assertDriver(driver, 'createDeadJobs', engine.of)
  const { queue, schema = 'holdfast' } = optionsGiven(given, deadJobsOptions)
  const settings = { ...leaseSettings(workTable(schema, queue), undefined), isOurs: true }
  return createDead(engine, driver, settings, {
    // The id alone: nobody who looks at a job knows its bucket.
    key: ['id'],
    listedBy: ['queue', 'run_at', 'bucket', 'id'],
    asJson: true,
    read: readJob<P>,
  })
}

function readJob<P>(row: Row): DeadJob<P> {
  const uniqueKey = row['unique_key']
  return {
    id: String(row['id']),
    queue: String(row['queue']),
    scope: String(row['scope']),
    payload: row['payload'] as P,
    priority: Number(row['priority']),
    uniqueKey: typeof uniqueKey === 'string' ? uniqueKey : undefined,
    maxAttempts: Number(row['max_attempts']),
    enqueuedAt: new Date(String(row['enqueued_at'])),
    runAt: new Date(String(row['run_at'])),
  }
}
