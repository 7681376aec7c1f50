import type { Row } from '../../../core/driver.ts'
import { labelMark } from '../locks/locks.ts'
import { eq, minus, ne, times } from '../sql/operators.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** The application's own name, and what our label behind it says. */
export function splitApplication(text: string): { application: string; label: string | undefined } {
  const at = text.indexOf(labelMark)
  return at === -1
    ? { application: text, label: undefined }
    : { application: text.slice(0, at), label: text.slice(at + labelMark.length) }
}

/** What `blockersFrom` reads, of pg_stat_activity as `a`. */
export const blockerColumns: string = `a.pid::pg_catalog.text AS pid, a.application_name, coalesce(a.state, '') AS state,
  coalesce(a.query, '') AS query,
  coalesce(extract(epoch FROM pg_catalog.clock_timestamp() ${minus} a.xact_start) ${times} 1000, 0)::pg_catalog.int8::pg_catalog.text AS age_ms`

/** The same of pg_prepared_xacts as `p`: it has no session, and its name is what COMMIT PREPARED takes. */
const preparedColumns = `'0', p.gid, 'prepared', '',
  (extract(epoch FROM pg_catalog.clock_timestamp() ${minus} p.prepared) ${times} 1000)::pg_catalog.int8::pg_catalog.text`

/**
 * Who these are: `holders` selects `pid` and `virtualtransaction` of pg_locks. A prepared transaction has no pid there;
 * which one it is tells the lock that every transaction has on its own number.
 */
export function blockersAmong(holders: string, except: string): string {
  return `
SELECT ${blockerColumns}
FROM pg_catalog.pg_stat_activity AS a
WHERE a.pid ${ne} pg_catalog.pg_backend_pid()${except} AND a.pid ${eq} ANY (SELECT h.pid FROM (${holders}) AS h)
UNION ALL
SELECT ${preparedColumns}
FROM pg_catalog.pg_prepared_xacts AS p
WHERE EXISTS (SELECT FROM (${holders}) AS h
  JOIN pg_catalog.pg_locks AS own ON own.virtualtransaction ${eq} h.virtualtransaction
    AND own.locktype ${eq} 'transactionid' AND own.transactionid ${eq} p.transaction
  WHERE h.pid IS NULL)`
}

/** Reads rows of `lockHolders` and its like, oldest transaction first. */
export function blockersFrom(rows: readonly Row[]): readonly Blocker[] {
  return rows
    .map((row) => {
      const { application, label } = splitApplication(String(row['application_name']))
      return {
        pid: Number(row['pid']),
        name: label ?? application,
        ageMs: Number(row['age_ms']),
        state: String(row['state']),
        query: String(row['query']),
      }
    })
    .toSorted((a, b) => b.ageMs - a.ageMs)
}
