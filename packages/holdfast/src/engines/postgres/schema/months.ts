import type { Statement } from '../../../core/driver.ts'
import { cat, eq, gt, matches } from '../sql/operators.ts'

/** How many months to come have a partition of their own; no row if there is no such table. */
export function countMonthsAhead(schema: string): Statement {
  return {
    text: `
SELECT pg_catalog.count(*) FILTER (
         WHERE part.relname ${matches} '^movement_[0-9]{6}$'
           AND part.relname ${gt} ('movement_' ${cat} pg_catalog.to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYYMM'))
       )::pg_catalog.text AS "ahead"
FROM pg_catalog.pg_class AS whole
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} whole.relnamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
LEFT JOIN pg_catalog.pg_inherits ON inhparent ${eq} whole.oid
LEFT JOIN pg_catalog.pg_class AS part ON part.oid ${eq} inhrelid
WHERE whole.relname ${eq} 'movement' AND whole.relkind ${eq} 'p'
GROUP BY whole.oid`,
    values: [schema],
  }
}
