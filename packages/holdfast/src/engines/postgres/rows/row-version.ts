import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import type { Columns, VersionedTarget } from '../../../rows/engine.ts'
import type { Compared } from '../sql/own-operators.ts'
import { columnList, markerWithRows, sameKey, typedRecord } from './rows.ts'
import { isLimitedHere, restoredTimeouts } from '../tx/wait-limit.ts'
import { eq, gt, ne, plus } from '../sql/operators.ts'

/** Statements about a row with a version: a whole number that every change counts up by one. */
interface Versioned extends VersionedTarget, Compared {}

/** One row, unlocked. The version comes as text next to it; JavaScript would round a large int8. */
export function readVersion(target: Versioned, keyJson: string, columns: Columns): Statement {
  const table = tableText(target.table)
  const version = `"#row".${quoteIdentifier(target.versionColumn)}::pg_catalog.text AS "#version"`
  return {
    text: `
SELECT ${[version, ...columnList('"#row"', columns)].join(', ')}
FROM ${typedRecord(table, '$1::pg_catalog.text::pg_catalog.jsonb')} AS "#sought"
JOIN ${table} AS "#row" ON ${sameKey('"#row"', '"#sought"', target.keyColumns, target)}`,
    values: [keyJson],
  }
}

const restored = restoredTimeouts.map((column, at) => `${column} AS "#restored${at}"`)

/**
 * Comes right after `limitWait`, and puts its timeouts back; if nobody is sure of that, it changes nothing
 * without it. Answers one row in any case, its version NULL if nothing was changed.
 *
 * Changes the row if it still has the version, and counts the version up. Takes the row's lock; if
 * that has to be waited for, PostgreSQL compares the version of the row as it is after the wait.
 */
export function updateVersion(
  target: Versioned,
  change: { readonly soughtJson: string; readonly setJson: string },
  set: readonly string[],
  columns: Columns,
  unsure: boolean,
): Statement {
  const table = tableText(target.table)
  const version = quoteIdentifier(target.versionColumn)
  const assignments = set.map((column) => {
    const name = quoteIdentifier(column)
    return `${name} = "#new".${name}`
  })
  return {
    text: `
WITH "#changed" AS (
  UPDATE ${table} AS "#row"
  SET ${[...assignments, `${version} = "#row".${version} ${plus} 1`].join(', ')}
  FROM ${typedRecord(table, '$1::pg_catalog.text::pg_catalog.jsonb')} AS "#sought",
       ${typedRecord(table, '$2::pg_catalog.text::pg_catalog.jsonb')} AS "#new"
  WHERE ${sameKey('"#row"', '"#sought"', [...target.keyColumns, target.versionColumn], target)}${unsure ? ` AND ${isLimitedHere}` : ''}
  RETURNING ${[`"#row".${version}::pg_catalog.text AS "#version"`, ...columnList('"#row"', columns)].join(', ')}
), "#done" AS MATERIALIZED (
  SELECT ${[`${markerWithRows(target.table, 'exclusive', `pg_catalog.count(*) ${gt} 0`)} AS "#held"`, ...restored].join(', ')}
  FROM "#changed"
)
SELECT (${isLimitedHere})::pg_catalog.text AS "#limited", "#done"."#held" AS "#marked", "#changed".*
FROM "#done" LEFT JOIN "#changed" ON true`,
    values: [change.soughtJson, change.setJson],
  }
}

/**
 * Counts the version up unless it has moved already, and puts the timeouts back. Run under the row's lock: a row
 * that has the version and was not counted is one whose change a trigger or a policy has suppressed.
 */
export function countVersion(target: Versioned, soughtJson: string): Statement {
  const table = tableText(target.table)
  const version = quoteIdentifier(target.versionColumn)
  return {
    text: `
WITH "#counted" AS (
  UPDATE ${table} AS "#row" SET ${version} = "#row".${version} ${plus} 1
  FROM ${typedRecord(table, '$1::pg_catalog.text::pg_catalog.jsonb')} AS "#sought"
  WHERE ${sameKey('"#row"', '"#sought"', [...target.keyColumns, target.versionColumn], target)}
  RETURNING "#row".${version} ${ne} "#sought".${version} AS counted
)
SELECT ${[
      `(pg_catalog.count(*) FILTER (WHERE counted) ${eq} 0 AND EXISTS (
    SELECT FROM ${table} AS "#row", ${typedRecord(table, '$1::pg_catalog.text::pg_catalog.jsonb')} AS "#sought"
    WHERE ${sameKey('"#row"', '"#sought"', [...target.keyColumns, target.versionColumn], target)}))::pg_catalog.text AS suppressed`,
      ...restored,
    ].join(', ')}
FROM "#counted"`,
    values: [soughtJson],
  }
}
