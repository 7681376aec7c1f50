import type { Statement } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isoText } from './observe-settings.ts'

/** Which transaction is meant. */
export interface TransactionAddress {
  readonly pid: number
  /** When the session began, as it was shown: a process id is used again. */
  readonly startedAt: string
  /** When its transaction began: a session is used again too. Null if it was in none. */
  readonly transactionStartedAt: string | null
  /** Sessions that call themselves so are left alone. */
  readonly exceptApplication?: string | undefined
}

/**
 * Ends a statement, or a session; no row if no client of this database has it, `meant` false if it is in
 * another transaction by now. Check and signal are one statement: between the two lies no more than the
 * rest of its execution. PostgreSQL has no way to make the receiver check.
 */
export function endWork(end: 'statement' | 'session', address: TransactionAddress): Statement {
  // A session that runs nothing takes the signal and does nothing.
  const [call, runs] =
    end === 'statement'
      ? (['pg_cancel_backend', "coalesce(state, '') NOT LIKE 'idle%'"] as const)
      : (['pg_terminate_backend', 'true'] as const)
  return {
    text: `SELECT meant::text AS meant, CASE WHEN meant AND runs THEN pg_catalog.${call}(pid) END::text AS ended
FROM (
  SELECT pid, ${runs} AS runs, ${isoText('xact_start')} IS NOT DISTINCT FROM $3::text AS meant
  FROM pg_catalog.pg_stat_activity
  WHERE pid = $1::text::int4 AND pid <> pg_catalog.pg_backend_pid() AND backend_type = 'client backend'
    AND datname = pg_catalog.current_database() AND ${isoText('backend_start')} = $2::text
    AND ($4::text IS NULL OR application_name <> $4::text)
) AS session`,
    values: [
      String(address.pid),
      address.startedAt,
      address.transactionStartedAt,
      address.exceptApplication ?? null,
    ],
  }
}

/** Whether a schedule of this name is known: pausing one makes it known. */
export function findSchedule(schema: string, bucket: number, name: string): Statement {
  return {
    text: `SELECT EXISTS (
  SELECT FROM ${quoteIdentifier(schema)}.schedules WHERE bucket = $1::text::int2 AND name = $2::text
)::text AS known`,
    values: [String(bucket), name],
  }
}
