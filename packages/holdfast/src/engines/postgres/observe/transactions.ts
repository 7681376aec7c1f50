import type { Statement } from '../../../core/driver.ts'
import { isoText, millisecondsText } from './settings.ts'
import { eq, ne } from '../sql/operators.ts'

/**
 * The oldest transactions of this database, and who keeps vacuum from removing dead rows: the oldest
 * snapshot or transaction id among its sessions, its prepared transactions, and, for the whole server,
 * replication slots and standbys. One JSON text. A role that may not see the sessions of others is told
 * less about them.
 */
export function readTransactions(limit: number): Statement {
  return {
    text: `
WITH activity AS MATERIALIZED (
  SELECT pid, datname, usename, application_name, client_addr, backend_type, backend_start, state, state_change,
    xact_start, query_start, query, wait_event_type, backend_xid, backend_xmin
  FROM pg_catalog.pg_stat_activity
  WHERE pid ${ne} pg_catalog.pg_backend_pid()
), mine AS (
  SELECT * FROM activity WHERE datname ${eq} pg_catalog.current_database()
), longest AS (
  SELECT * FROM mine WHERE xact_start IS NOT NULL AND backend_type ${eq} 'client backend'
  ORDER BY xact_start LIMIT $1::pg_catalog.text::pg_catalog.int4
), holding AS (
  SELECT 'session' AS by, application_name AS who, pid,
    greatest(pg_catalog.age(backend_xmin), pg_catalog.age(backend_xid)) AS age
  FROM mine
  WHERE backend_type ${ne} ALL ('{autovacuum worker,walsender}') AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
  UNION ALL
  SELECT 'prepared', gid, NULL, pg_catalog.age(transaction)
  FROM pg_catalog.pg_prepared_xacts WHERE database ${eq} pg_catalog.current_database()
  UNION ALL
  SELECT 'slot', slot_name::pg_catalog.text, active_pid, greatest(pg_catalog.age(xmin), pg_catalog.age(catalog_xmin))
  FROM pg_catalog.pg_replication_slots WHERE xmin IS NOT NULL OR catalog_xmin IS NOT NULL
  UNION ALL
  SELECT 'standby', application_name, pid, pg_catalog.age(backend_xmin)
  FROM pg_catalog.pg_stat_replication WHERE backend_xmin IS NOT NULL
)
SELECT pg_catalog.json_build_object(
  'at', ${isoText('pg_catalog.clock_timestamp()')},
  'longest', coalesce((
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
      'pid', pid, 'application', application_name, 'user', usename, 'client', client_addr::pg_catalog.text,
      'startedAt', ${isoText('backend_start')}, 'state', state,
      'stateMs', ${millisecondsText('state_change', 'pg_catalog.clock_timestamp()')},
      'transactionStartedAt', ${isoText('xact_start')},
      'transactionMs', ${millisecondsText('xact_start', 'pg_catalog.clock_timestamp()')},
      'queryMs', ${millisecondsText('query_start', 'pg_catalog.clock_timestamp()')},
      'query', query,
      'blockedBy', CASE WHEN wait_event_type ${eq} 'Lock' THEN pg_catalog.pg_blocking_pids(pid) ELSE '{}' END
    ) ORDER BY xact_start, pid) FROM longest), '[]'),
  'oldest', (
    SELECT pg_catalog.json_build_object('by', by, 'who', who, 'pid', pid, 'age', age)
    FROM holding ORDER BY age DESC, pid LIMIT 1),
  'prepared', coalesce((
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object('gid', gid,
      'ms', ${millisecondsText('prepared', 'pg_catalog.clock_timestamp()')}) ORDER BY prepared)
    FROM (
      SELECT gid, prepared FROM pg_catalog.pg_prepared_xacts
      WHERE database ${eq} pg_catalog.current_database() ORDER BY prepared LIMIT 10
    ) AS part), '[]')
)::pg_catalog.text AS answer`,
    values: [String(limit)],
  }
}
