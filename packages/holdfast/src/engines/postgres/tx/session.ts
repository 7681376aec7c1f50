import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'

/** Which backend serves this statement; what a pooler told the client is somebody else's. */
export const whichBackend: Statement = {
  text: 'SELECT pg_catalog.pg_backend_pid()::pg_catalog.text AS pid',
  values: [],
}

/** How many statements this session has prepared by that name: one or none, as the server knows them. */
export function preparedAs(name: string): Statement {
  return {
    text: 'SELECT pg_catalog.count(*)::pg_catalog.text AS seen FROM pg_catalog.pg_prepared_statements WHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.text',
    values: [name],
    columns: ['seen'],
  }
}

/**
 * For a session that must be seen to be dead soon: a client whose machine is gone is noticed within
 * about `ms`, and being idle is no reason to be ended. Both last as long as the session.
 */
export function keepWatch(ms: number): Statement {
  const seconds = String(Math.max(1, Math.round(ms / 3_000)))
  return {
    text: `SELECT pg_catalog.set_config('tcp_keepalives_idle', $1::pg_catalog.text, false) AS idle,
      pg_catalog.set_config('tcp_keepalives_interval', $1::pg_catalog.text, false) AS pause,
      pg_catalog.set_config('tcp_keepalives_count', '2', false) AS count,
      pg_catalog.set_config('tcp_user_timeout', $2::pg_catalog.text, false) AS unanswered,
      pg_catalog.set_config('idle_session_timeout', '0', false) AS patience`,
    values: [seconds, String(Math.round(ms))],
  }
}

export function listenText(channel: string): string {
  return `LISTEN ${quoteIdentifier(channel)}`
}
