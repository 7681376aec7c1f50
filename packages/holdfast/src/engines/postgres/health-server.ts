import type { Statement } from '../../core/driver.ts'
import { quoteIdentifier, quoteLiteral } from './identifier.ts'

/** What server this is, where we are on it, and whether it has that role. */
export function serverFacts(role: string | undefined): Statement {
  return {
    text: `SELECT pg_catalog.version() AS version, pg_catalog.pg_is_in_recovery()::text AS standby,
    pg_catalog.current_database()::text AS database,
    EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1::text::name)::text AS "roleExists"`,
    values: [role ?? null],
  }
}

/** Milliseconds since 1970 by the server's clock. */
export const serverClock: Statement = {
  text: 'SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::int8::text AS ms',
  values: [],
}

/** For the rest of the transaction: a look must not become a load. */
export function limitStatements(ms: number): Statement {
  return {
    text: `SELECT pg_catalog.set_config('statement_timeout', $1::text, true) AS "set"`,
    values: [String(ms)],
  }
}

/** What makes privileges meaningless; no row if there is no such role. */
export function roleFacts(role: string): Statement {
  return {
    text: `
SELECT role.rolsuper::text AS superuser, role.rolcreaterole::text AS "createsRoles", coalesce((
  SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('power', power, 'member', member) ORDER BY power, member)
  FROM (
    SELECT DISTINCT power.rolname::text AS power, member.rolname::text AS member
    FROM pg_catalog.pg_auth_members AS link
    JOIN pg_catalog.pg_roles AS power ON power.oid = link.roleid
      AND power.rolname IN ('pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program')
    JOIN pg_catalog.pg_roles AS member ON member.oid = link.member
    WHERE NOT role.rolsuper AND pg_catalog.pg_has_role(role.oid, member.oid, 'MEMBER')
  ) AS found
), '[]'::jsonb)::text AS powers
FROM pg_catalog.pg_roles AS role WHERE role.rolname = $1::text::name`,
    values: [role],
  }
}

export function alterRole(role: string, attribute: 'NOSUPERUSER' | 'NOCREATEROLE'): string {
  return `ALTER ROLE ${quoteIdentifier(role)} ${attribute};`
}

export function leaveRole(power: string, member: string): string {
  return `REVOKE ${quoteIdentifier(power)} FROM ${quoteIdentifier(member)};`
}

/**
 * Transactions of others in this database that are open, or idle, for longer than that; the oldest first.
 * `hidden` counts the sessions of which this role may see nothing.
 */
export function oldTransactions(openMs: number, idleMs: number, most: number): Statement {
  return {
    text: `
WITH session AS (
  SELECT *, query = '<insufficient privilege>' AS secret FROM pg_catalog.pg_stat_activity
  WHERE datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid()
), old AS (
  SELECT pid, xact_start AS began, application_name, usename, starts_with(state, 'idle in transaction') AS idle,
         (extract(epoch FROM pg_catalog.clock_timestamp() - xact_start) * 1000)::int8 AS "openMs",
         (extract(epoch FROM pg_catalog.clock_timestamp() - state_change) * 1000)::int8 AS "stateMs"
  FROM session WHERE backend_type = 'client backend' AND xact_start IS NOT NULL
), listed AS (
  SELECT * FROM old
  WHERE "openMs" > $1::text::int8 OR idle AND "stateMs" > $2::text::int8
  ORDER BY "openMs" DESC
)
SELECT (SELECT count(*)::text FROM session WHERE secret) AS hidden, (SELECT count(*)::text FROM listed) AS found,
  coalesce((SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(first)) FROM (
    SELECT * FROM listed LIMIT $3::text::int4) AS first), '[]'::jsonb)::text AS listed`,
    values: [String(openMs), String(idleMs), String(most)],
  }
}

/** Ends a session that is still in the transaction that was seen; `began` is as JSON has it. */
export function endSession(pid: number, began: string): string {
  return `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid = ${pid} AND xact_start = '${began}';`
}

/** Prepared transactions of this database that nobody has ended for so long. */
export function preparedTransactions(ms: number): Statement {
  return {
    text: `
SELECT gid, owner::text AS owner, (extract(epoch FROM pg_catalog.clock_timestamp() - prepared) * 1000)::int8::text AS ms
FROM pg_catalog.pg_prepared_xacts
WHERE database = pg_catalog.current_database()
  AND pg_catalog.clock_timestamp() - prepared > $1::text::int8 * interval '1 millisecond'
ORDER BY prepared LIMIT 5`,
    values: [String(ms)],
  }
}

export function endPrepared(gid: string): string {
  return `ROLLBACK PREPARED ${quoteLiteral(gid)};`
}

/** Slots that keep WAL, or old rows, for somebody who is not there. */
export const unusedSlots: Statement = {
  text: `
SELECT slot_name::text AS name, coalesce(pg_catalog.pg_size_pretty(pg_catalog.pg_wal_lsn_diff(
    CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
         ELSE pg_catalog.pg_current_wal_lsn() END, restart_lsn)), 'no WAL') AS kept,
  coalesce(greatest(pg_catalog.age(xmin), pg_catalog.age(catalog_xmin)), 0)::text AS age
FROM pg_catalog.pg_replication_slots
WHERE NOT active AND NOT temporary AND (restart_lsn IS NOT NULL OR xmin IS NOT NULL OR catalog_xmin IS NOT NULL)
ORDER BY restart_lsn LIMIT 5`,
  values: [],
}

export function dropSlot(name: string): string {
  return `SELECT pg_catalog.pg_drop_replication_slot(${quoteLiteral(name)});`
}

/** How many clients are connected, to any database, counting those that this role cannot see. */
export const countClients: Statement = {
  text: `SELECT count(*)::text AS clients FROM pg_catalog.pg_stat_activity
    WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'`,
  values: [],
}
