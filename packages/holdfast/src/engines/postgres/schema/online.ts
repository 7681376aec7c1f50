import type { Row, Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { eq, gt } from '../sql/operators.ts'

/** Statements that change indexes of a table in use, outside of a transaction and without stopping writers. */

/** What such a statement is about. */
export interface OnlineIndex {
  readonly index: string
  readonly verb: 'create' | 'drop'
}

const createPattern = /^create\s+(?:unique\s+)?index\s+concurrently\s+(\w+)\s/i
const dropPattern = /^drop\s+index\s+concurrently\s+if\s+exists\s+[^;]*\.(\w+)\s*;?$/i

/** Reads one statement of a file in `sql/online`, bound to its schema or not. */
export function onlineIndex(statement: string): OnlineIndex {
  const text = statement.replace(/^(\s*--[^\n]*\n)+/, '').trim()
  const created = createPattern.exec(text)?.[1]
  if (created !== undefined) return { index: created, verb: 'create' }
  const dropped = dropPattern.exec(text)?.[1]
  if (dropped !== undefined) return { index: dropped, verb: 'drop' }
  throw new SyntaxError('a file in sql/online creates and drops indexes concurrently, nothing else')
}

/** How far an index is. `broken`: left behind by a build that was ended. */
export type IndexState = 'missing' | 'building' | 'broken' | 'ready'

/** Whether a table is there, and how far an index of it is. */
export function lookForIndex(schema: string, index: string): Statement {
  return {
    text: `SELECT CASE
  WHEN i.indexrelid IS NULL THEN 'missing'
  WHEN i.indisvalid THEN 'ready'
  WHEN EXISTS (SELECT FROM pg_catalog.pg_stat_progress_create_index p WHERE p.relid ${eq} i.indrelid) THEN 'building'
  ELSE 'broken' END AS state
FROM (VALUES (1)) AS one
LEFT JOIN pg_catalog.pg_index AS i ON i.indexrelid ${eq} pg_catalog.to_regclass($1::pg_catalog.text)`,
    values: [`${quoteIdentifier(schema)}.${quoteIdentifier(index)}`],
  }
}

export function stateFrom([row]: readonly Row[]): IndexState {
  return String(row?.['state']) as IndexState
}

/** Removes what is left of a build that was ended. */
export function dropBroken(schema: string, index: string): Statement {
  return online(
    `DROP INDEX CONCURRENTLY IF EXISTS ${quoteIdentifier(schema)}.${quoteIdentifier(index)}`,
  )
}

export function online(text: string): Statement {
  return { text, values: [] }
}

/**
 * What two installers that build at the same moment are told: a deadlock, that the index is there, or that
 * it is gone.
 */
export const metAnother: ReadonlySet<string> = new Set([
  '40P01',
  '42P07',
  '23505',
  '42704',
  'XX000',
])

/** Jobs with a unique key, and those among them that share queue and bucket with a job of another scope. */
export function countSharedKeys(schema: string): Statement {
  const table = `${quoteIdentifier(schema)}."work"`
  const live = `w.unique_key IS NOT NULL AND w.status ${eq} ANY ('{pending,claimed}')`
  return {
    text: `SELECT pg_catalog.count(*)::pg_catalog.text AS keys,
  (pg_catalog.count(*) FILTER (WHERE g.scopes ${gt} 1))::pg_catalog.text AS shared,
  pg_catalog.count(DISTINCT (w.bucket, w.queue)) FILTER (WHERE g.scopes ${gt} 1)::pg_catalog.text AS groups
FROM ${table} AS w
JOIN (SELECT w.bucket, w.queue, pg_catalog.count(DISTINCT w.scope) AS scopes
      FROM ${table} AS w WHERE ${live} GROUP BY w.bucket, w.queue) AS g
  ON g.bucket ${eq} w.bucket AND g.queue ${eq} w.queue
WHERE ${live}`,
    values: [],
  }
}
