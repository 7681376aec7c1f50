import type { Statement } from '../../core/driver.ts'

/** How many months to come have a partition of their own; no row if there is no such table. */
export function countMonthsAhead(schema: string): Statement {
  return {
    text: `
SELECT count(*) FILTER (
         WHERE part.relname ~ '^movement_[0-9]{6}$'
           AND part.relname > 'movement_' || pg_catalog.to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYYMM')
       )::text AS "ahead"
FROM pg_catalog.pg_class AS whole
JOIN pg_catalog.pg_namespace AS space ON space.oid = whole.relnamespace AND nspname = $1::text::name
LEFT JOIN pg_catalog.pg_inherits ON inhparent = whole.oid
LEFT JOIN pg_catalog.pg_class AS part ON part.oid = inhrelid
WHERE whole.relname = 'movement' AND whole.relkind = 'p'
GROUP BY whole.oid`,
    values: [schema],
  }
}
