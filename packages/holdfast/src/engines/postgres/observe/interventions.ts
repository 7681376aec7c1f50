import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isoText } from './settings.ts'
import { eq, ne, unlike } from '../sql/operators.ts'

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
 * another transaction by now, `hidden` if this role may not see in which. Check and signal are one statement: between
 * the two lies no more than the rest of its execution. PostgreSQL has no way to make the receiver check.
 */
export function endWork(end: 'statement' | 'session', address: TransactionAddress): Statement {
  // A session that runs nothing takes the signal and does nothing.
  const [call, runs] =
    end === 'statement'
      ? (['pg_cancel_backend', `coalesce(state, '') ${unlike} 'idle%'`] as const)
      : (['pg_terminate_backend', 'true'] as const)
  return {
    text: `SELECT meant::pg_catalog.text AS meant, hidden::pg_catalog.text AS hidden, current_user::pg_catalog.text AS "user",
  CASE WHEN meant AND NOT hidden AND runs THEN pg_catalog.${call}(pid) END::pg_catalog.text AS ended
FROM (
  SELECT pid, ${runs} AS runs, backend_start IS NULL AS hidden, coalesce(${isoText('xact_start')}, '') ${eq} coalesce($3::pg_catalog.text, '') AS meant
  FROM pg_catalog.pg_stat_activity
  WHERE pid ${eq} $1::pg_catalog.text::pg_catalog.int4 AND pid ${ne} pg_catalog.pg_backend_pid() AND datname ${eq} pg_catalog.current_database()
    AND (backend_type ${eq} 'client backend' AND ${isoText('backend_start')} ${eq} $2::pg_catalog.text
      OR backend_start IS NULL AND usesysid IS NOT NULL)
    AND ($4::pg_catalog.text IS NULL OR application_name ${ne} $4::pg_catalog.text)
) AS session`,
    values: [
      String(address.pid),
      address.startedAt,
      address.transactionStartedAt,
      address.exceptApplication ?? null,
    ],
  }
}

/** Whether the session is one of a superuser, and who asks. */
export function whoseSession(pid: number): Statement {
  return {
    text: `SELECT current_user::pg_catalog.text AS "user", EXISTS (
  SELECT FROM pg_catalog.pg_stat_activity JOIN pg_catalog.pg_roles ON pg_roles.oid ${eq} usesysid
  WHERE pid ${eq} $1::pg_catalog.text::pg_catalog.int4 AND rolsuper)::pg_catalog.text AS superuser`,
    values: [String(pid)],
  }
}

/** Whether a schedule of this name is known: pausing one makes it known. */
export function findSchedule(schema: string, bucket: number, name: string): Statement {
  return {
    text: `SELECT EXISTS (
  SELECT FROM ${quoteIdentifier(schema)}.schedules WHERE bucket ${eq} $1::pg_catalog.text::pg_catalog.int2 AND name ${eq} $2::pg_catalog.text
)::pg_catalog.text AS known`,
    values: [String(bucket), name],
  }
}
