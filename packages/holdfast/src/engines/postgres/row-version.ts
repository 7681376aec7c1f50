import type { Statement } from '../../core/driver.ts'
import { quoteIdentifier, tableText } from './identifier.ts'
import {
  type Columns,
  columnList,
  markerWithRows,
  type RowTarget,
  sameKey,
  typedRecord,
} from './rows.ts'

/** Statements about a row with a version: a whole number that every change counts up by one. */
export interface VersionedTarget extends RowTarget {
  readonly versionColumn: string
}

/** One row, unlocked. The version comes as text next to it; JavaScript would round a large int8. */
export function readVersion(target: VersionedTarget, keyJson: string, columns: Columns): Statement {
  const table = tableText(target.table)
  const version = `"#row".${quoteIdentifier(target.versionColumn)}::text AS "#version"`
  return {
    text: `
SELECT ${[version, ...columnList('"#row"', columns)].join(', ')}
FROM ${typedRecord(table, '$1::text::jsonb')} AS "#sought"
JOIN ${table} AS "#row" ON ${sameKey('"#row"', '"#sought"', target.keyColumns)}`,
    values: [keyJson],
  }
}

/**
 * Changes the row if it still has the version, and counts the version up. Takes the row's lock; if
 * that has to be waited for, PostgreSQL compares the version of the row as it is after the wait.
 */
export function updateVersion(
  target: VersionedTarget,
  change: { readonly soughtJson: string; readonly setJson: string },
  set: readonly string[],
  columns: Columns,
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
  SET ${[...assignments, `${version} = "#row".${version} + 1`].join(', ')}
  FROM ${typedRecord(table, '$1::text::jsonb')} AS "#sought",
       ${typedRecord(table, '$2::text::jsonb')} AS "#new"
  WHERE ${sameKey('"#row"', '"#sought"', [...target.keyColumns, target.versionColumn])}
  RETURNING ${[`"#row".${version}::text AS "#version"`, ...columnList('"#row"', columns)].join(', ')}
), "#done" AS MATERIALIZED (
  SELECT ${markerWithRows('pg_catalog.count(*) > 0')} AS "#held" FROM "#changed"
)
SELECT "#done"."#held" IS NOT NULL AS "#marked", "#changed".*
FROM "#done" CROSS JOIN "#changed"`,
    values: [change.soughtJson, change.setJson],
  }
}

/** Counts the version up unless it has moved already. Run under the row's lock. */
export function countVersion(target: VersionedTarget, soughtJson: string): Statement {
  const table = tableText(target.table)
  const version = quoteIdentifier(target.versionColumn)
  return {
    text: `
WITH "#counted" AS (
  UPDATE ${table} AS "#row" SET ${version} = "#row".${version} + 1
  FROM ${typedRecord(table, '$1::text::jsonb')} AS "#sought"
  WHERE ${sameKey('"#row"', '"#sought"', [...target.keyColumns, target.versionColumn])}
  RETURNING true AS counted
)
SELECT pg_catalog.count(*)::int4 AS counted FROM "#counted"`,
    values: [soughtJson],
  }
}
