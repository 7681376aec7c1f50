import type { Statement } from '../../../core/driver.ts'
import { quoteLiteral } from '../sql/identifier.ts'
import { plainly } from '../observe/settings.ts'
import { eq, gt, minus, ne, times } from '../sql/operators.ts'

/** What server this is, where we are on it, and whether it has that role. */
export function serverFacts(role: string | undefined): Statement {
  return {
    text: `SELECT pg_catalog.version() AS version, pg_catalog.pg_is_in_recovery()::pg_catalog.text AS standby,
    pg_catalog.current_database()::pg_catalog.text AS database,
    EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname ${eq} $1::pg_catalog.text::pg_catalog.name)::pg_catalog.text AS "roleExists"`,
    values: [role ?? null],
  }
}

/** Milliseconds since 1970 by the server's clock. */
export const serverClock: Statement = {
  text: `SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) ${times} 1000)::pg_catalog.int8::pg_catalog.text AS ms`,
  values: [],
}

/** For the rest of the transaction: a look must not become a load. */
export function limitStatements(ms: number): Statement {
  return {
    text: `SELECT pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true) AS "set", ${plainly.join(', ')}`,
    values: [String(ms)],
  }
}

/** What makes privileges meaningless; no row if there is no such role. */
export function roleFacts(role: string): Statement {
  return {
    text: `
SELECT role.rolsuper::pg_catalog.text AS superuser, role.rolcreaterole::pg_catalog.text AS "createsRoles", coalesce((
  SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('power', power, 'member', member, 'sort', sort) ORDER BY power, member)
  FROM (
    SELECT DISTINCT power.rolname::pg_catalog.text AS power, member.rolname::pg_catalog.text AS member,
      CASE WHEN power.rolsuper THEN 'superuser' WHEN power.rolcreaterole THEN 'creates roles'
        WHEN power.rolname ${eq} ANY ('{pg_read_all_data,pg_read_server_files}') THEN 'reads' ELSE 'writes' END AS sort
    FROM pg_catalog.pg_auth_members AS link
    JOIN pg_catalog.pg_roles AS power ON power.oid ${eq} link.roleid
      AND (power.rolsuper OR power.rolcreaterole OR power.rolname ${eq} ANY
        ('{pg_read_all_data,pg_read_server_files,pg_write_all_data,pg_write_server_files,pg_execute_server_program}'))
    JOIN pg_catalog.pg_roles AS member ON member.oid ${eq} link.member
    WHERE NOT role.rolsuper AND pg_catalog.pg_has_role(role.oid, member.oid, 'MEMBER')
  ) AS found
), '[]'::pg_catalog.jsonb)::pg_catalog.text AS powers
FROM pg_catalog.pg_roles AS role WHERE role.rolname ${eq} $1::pg_catalog.text::pg_catalog.name`,
    values: [role],
  }
}

/**
 * Transactions of others in this database that are open, or idle, for longer than that; the oldest first.
 * `hidden` counts the sessions of which this role may see nothing.
 */
export function oldTransactions(openMs: number, idleMs: number, most: number): Statement {
  return {
    text: `
WITH session AS (
  SELECT *, query ${eq} '<insufficient privilege>' AS secret FROM pg_catalog.pg_stat_activity
  WHERE datname ${eq} pg_catalog.current_database() AND pid ${ne} pg_catalog.pg_backend_pid()
), old AS (
  SELECT pid, xact_start AS began, application_name, usename, pg_catalog.starts_with(state, 'idle in transaction') AS idle,
         (extract(epoch FROM pg_catalog.clock_timestamp() ${minus} xact_start) ${times} 1000)::pg_catalog.int8 AS "openMs",
         (extract(epoch FROM pg_catalog.clock_timestamp() ${minus} state_change) ${times} 1000)::pg_catalog.int8 AS "stateMs"
  FROM session WHERE backend_type ${eq} 'client backend' AND xact_start IS NOT NULL
), listed AS (
  SELECT * FROM old
  WHERE "openMs" ${gt} $1::pg_catalog.text::pg_catalog.int8 OR idle AND "stateMs" ${gt} $2::pg_catalog.text::pg_catalog.int8
  ORDER BY "openMs" DESC
)
SELECT (SELECT pg_catalog.count(*)::pg_catalog.text FROM session WHERE secret) AS hidden, (SELECT pg_catalog.count(*)::pg_catalog.text FROM listed) AS found,
  coalesce((SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(first)) FROM (
    SELECT * FROM listed LIMIT $3::pg_catalog.text::pg_catalog.int4) AS first), '[]'::pg_catalog.jsonb)::pg_catalog.text AS listed`,
    values: [String(openMs), String(idleMs), String(most)],
  }
}

/** Ends a session that is still in the transaction that was seen; `began` is as JSON has it. */
export function endSession(pid: number, began: string): string {
  return `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE pid ${eq} ${pid} AND xact_start ${eq} '${began}';`
}

/** Prepared transactions of this database that nobody has ended for so long. */
export function preparedTransactions(ms: number): Statement {
  return {
    text: `
SELECT gid, owner::pg_catalog.text AS owner, (extract(epoch FROM pg_catalog.clock_timestamp() ${minus} prepared) ${times} 1000)::pg_catalog.int8::pg_catalog.text AS ms
FROM pg_catalog.pg_prepared_xacts
WHERE database ${eq} pg_catalog.current_database()
  AND (pg_catalog.clock_timestamp() ${minus} prepared) ${gt} ($1::pg_catalog.text::pg_catalog.int8 ${times} interval '1 millisecond')
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
SELECT slot_name::pg_catalog.text AS name, coalesce(pg_catalog.pg_size_pretty(pg_catalog.pg_wal_lsn_diff(
    CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
         ELSE pg_catalog.pg_current_wal_lsn() END, restart_lsn)), 'no WAL') AS kept,
  coalesce(greatest(pg_catalog.age(xmin), pg_catalog.age(catalog_xmin)), 0)::pg_catalog.text AS age
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
  text: `SELECT pg_catalog.count(*)::pg_catalog.text AS clients FROM pg_catalog.pg_stat_activity
    WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') ${eq} 'client backend'`,
  values: [],
}
