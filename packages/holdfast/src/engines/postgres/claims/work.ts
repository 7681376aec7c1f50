import type { Scope } from '../../../core/bucket.ts'
import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'

/** Adds work; see `sql/app/enqueue_work.sql`. */
export function enqueueWork(
  schema: string,
  itemsJson: string,
  channel: string | undefined,
  scopes: readonly Scope[],
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.enqueue_work($1::pg_catalog.text::pg_catalog.jsonb, $2::pg_catalog.text) AS answer`,
    values: [itemsJson, channel ?? null],
    columns: ['answer'],
    scopes,
  }
}
