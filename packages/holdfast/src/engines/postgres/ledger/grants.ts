import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'

/** The grants of an account as one JSON text; see `sql/app/list_grants.sql`. */
export function listGrants(
  schema: string,
  { bucket, base }: { readonly bucket: number; readonly base: string },
  ended: boolean,
  most: number,
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.list_grants($1::pg_catalog.text::smallint, $2::pg_catalog.text::pg_catalog.uuid, $3::pg_catalog.text::boolean, $4::pg_catalog.text::integer) AS answer`,
    values: [String(bucket), base, String(ended), String(most)],
    name: 'ledger_grants',
    scopes: [bucket],
  }
}
