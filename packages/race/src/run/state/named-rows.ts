/** Rows by the names of tables and columns, as text: they fit a table that has got another column in the meantime. */
import { type Asking, exactly, type Saved, withoutTriggers } from './snapshot.ts'

/** The rows of a database and the places of its sequences. Names are written as SQL writes them. */
export interface NamedRows {
  /** `public.coupons` → its rows. Tables that are not named stay as they are. */
  readonly tables: Readonly<Record<string, NamedTable>>
  /** `public.coupons_id_seq` → the next number; if it was drawn already, the last one and `true`. */
  readonly sequences: Readonly<Record<string, readonly [place: string, drawn: boolean]>>
}

/** The rows of one table. */
export interface NamedTable {
  readonly columns: readonly string[]
  /** In the order of the columns; as PostgreSQL writes and reads them. */
  readonly rows: readonly (readonly (string | null)[])[]
}

/** Parameters of one statement. */
const most = 20_000

const columnsText = `
  SELECT c.relkind = 'r' AS only, array_agg(format('%I', a.attname)) AS columns
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
  WHERE c.oid = pg_catalog.to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
  GROUP BY c.oid, c.relkind`

/** What was saved, by names. */
export function nameRows(client: Asking, { tables, sequences }: Saved): Promise<NamedRows> {
  return exactly(client, async () => {
    const named: [string, NamedTable][] = []
    for (const { quoted, columns, rows: saved } of tables) {
      const cells = columns.map((column) => `(one).${column}::text`).join(', ')
      const { rows } = await client.query<{ cells: (string | null)[] }>(
        `SELECT ARRAY[${cells}]::text[] AS cells FROM (SELECT unnest($1::text[])::${quoted} AS one) AS saved`,
        [saved],
      )
      named.push([quoted, { columns, rows: rows.map((row) => row.cells) }])
    }
    return {
      tables: Object.fromEntries(named),
      sequences: Object.fromEntries(
        sequences.map(({ name, place, called }) => [name, [place, called]]),
      ),
    }
  })
}

/**
 * Puts the rows in the place of those that are there; columns that are not named get their defaults. Neither triggers nor
 * foreign keys: the rows are as they were when they passed them.
 */
export function fillRows(client: Asking, { tables, sequences }: NamedRows): Promise<void> {
  return exactly(client, async () => {
    await withoutTriggers(client)
    for (const [quoted, table] of Object.entries(tables)) await fillTable(client, quoted, table)
    for (const [name, [place, drawn]] of Object.entries(sequences)) {
      await client.query(
        `SELECT setval(one, $2::bigint, $3) FROM pg_catalog.to_regclass($1) AS one WHERE one IS NOT NULL`,
        [name, place, drawn],
      )
    }
  })
}

async function fillTable(
  client: Asking,
  quoted: string,
  { columns, rows }: NamedTable,
): Promise<void> {
  const found = await client.query<{ only: boolean; columns: string[] }>(columnsText, [quoted])
  const [there] = found.rows
  if (there === undefined) throw gone(`a table ${quoted}`)
  const missing = columns.find((column) => !there.columns.includes(column))
  if (missing !== undefined) throw gone(`a column ${missing} of ${quoted}`)
  await client.query(`DELETE FROM ${there.only ? 'ONLY ' : ''}${quoted}`)
  const atOnce = Math.max(1, Math.floor(most / columns.length))
  for (let from = 0; from < rows.length; from += atOnce) {
    const some = rows.slice(from, from + atOnce)
    // Parameters without a type get that of their column.
    const values = some.map((_, row) => {
      const places = columns.map((__, at) => `$${row * columns.length + at + 1}`)
      return `(${places.join(', ')})`
    })
    await client.query(
      `INSERT INTO ${quoted} (${columns.join(', ')}) OVERRIDING SYSTEM VALUE VALUES ${values.join(', ')}`,
      some.flat(),
    )
  }
}

function gone(what: string): Error {
  return new Error(
    `the rows of this test name ${what}, which is not there. Migrate the database, or make the test again with hunt --write-tests`,
  )
}
