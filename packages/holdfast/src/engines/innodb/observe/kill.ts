import type { Statement } from '../../../core/driver.ts'
import { cancelText } from '../tx/transaction.ts'
import type { ServerFacts } from '../server.ts'

/** A client's session of this database, when the server was started, and what it calls itself. */
export function connectionStatement(pid: number, dialect: ServerFacts['dialect']): Statement {
  const startedAt = (status: string): string =>
    `(UNIX_TIMESTAMP(NOW()) - (SELECT VARIABLE_VALUE FROM ${status} WHERE VARIABLE_NAME = 'UPTIME'))`
  const text =
    dialect === 'mariadb'
      ? `SELECT COMMAND AS command, CAST(QUERY_ID AS CHAR) AS queryId, COALESCE(DB = DATABASE(), 1) AS ours, '' AS application,
  CAST(${startedAt('information_schema.GLOBAL_STATUS')} AS CHAR) AS startedAt
FROM information_schema.PROCESSLIST WHERE ID = ? AND ID <> CONNECTION_ID()`
      : `SELECT PROCESSLIST_COMMAND AS command, '0' AS queryId, COALESCE(PROCESSLIST_DB = DATABASE(), 1) AS ours,
  (SELECT a.ATTR_VALUE FROM performance_schema.session_connect_attrs a
   WHERE a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name') AS application,
  CAST(${startedAt('performance_schema.global_status')} AS CHAR) AS startedAt
FROM performance_schema.threads t
WHERE PROCESSLIST_ID = ? AND PROCESSLIST_ID <> CONNECTION_ID() AND PROCESSLIST_COMMAND <> 'Daemon'`
  return { text, values: [pid] }
}

export { cancelText as endStatement }

/** Only of MariaDB: no statement has the number of another one. */
export function endStatementById(queryId: number): string {
  return `KILL QUERY ID ${Math.trunc(queryId)}`
}

export function endConnection(pid: number): string {
  return `KILL CONNECTION ${Math.trunc(pid)}`
}

/**
 * Only of MariaDB: if it has begun no statement since. A transaction begins with one, so between look and kill there can
 * be no other. Fails as a kill does that finds nothing.
 */
export function endConnectionAt(pid: number, queryId: number): string {
  const [id, query] = [Math.trunc(pid), Math.trunc(queryId)]
  return `BEGIN NOT ATOMIC
  IF EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ${id} AND QUERY_ID = ${query}) THEN KILL CONNECTION ${id};
  ELSE SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1957; END IF;
END`
}
