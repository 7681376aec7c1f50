import type { Statement } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isoText } from './observe-settings.ts'

/** Which session is meant. */
export interface SessionAddress {
  readonly pid: number
  /** When it began, as it was shown: a process id is used again. */
  readonly startedAt?: string | undefined
  /** Sessions that call themselves so are left alone. */
  readonly exceptApplication?: string | undefined
}

/** Ends a statement, or a session; no row if no client of this database has it. */
export function endWork(end: 'statement' | 'session', address: SessionAddress): Statement {
  const call = end === 'statement' ? 'pg_cancel_backend' : 'pg_terminate_backend'
  return {
    text: `SELECT pg_catalog.${call}(pid) AS ended
FROM pg_catalog.pg_stat_activity
WHERE pid = $1::text::int4 AND pid <> pg_catalog.pg_backend_pid() AND backend_type = 'client backend'
  AND datname = pg_catalog.current_database()
  AND ($2::text IS NULL OR $2::text = ${isoText('backend_start')})
  AND ($3::text IS NULL OR application_name <> $3::text)`,
    values: [String(address.pid), address.startedAt ?? null, address.exceptApplication ?? null],
  }
}

/** Whether a schedule of this name is known: pausing one makes it known. */
export function findSchedule(schema: string, bucket: number, name: string): Statement {
  return {
    text: `SELECT EXISTS (
  SELECT FROM ${quoteIdentifier(schema)}.schedules WHERE bucket = $1::text::int2 AND name = $2::text
) AS known`,
    values: [String(bucket), name],
  }
}
