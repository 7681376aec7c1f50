import type { KnownTable } from '../../core/model.ts'
import type { Control } from '../connection/control.ts'
import { keptIn } from '../state/snapshot.ts'

/** Rows of one table; of one that has more, nothing is said that all its rows would have to bear out. */
const mostRows = 1000

/** Whoever has a table locked is not waited for: what is not known is only not suggested. */
const patience = '200ms'

const columnsText = `
  SELECT n.nspname || '.' || c.relname AS table, format('%I.%I', n.nspname, c.relname) AS quoted,
         has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS readable, a.attname AS column,
         CASE WHEN b.typtype = 'e' THEN 'enum' ELSE b.typname END AS type,
         coalesce(l.collisdeterministic, true) AS exact,
         EXISTS (SELECT FROM pg_catalog.pg_index i
                 WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS primary,
         (SELECT pn.nspname || '.' || pc.relname
          FROM pg_catalog.pg_constraint k
          JOIN pg_catalog.pg_class pc ON pc.oid = k.confrelid
          JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
          WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.conkey = ARRAY[a.attnum] LIMIT 1) AS parent,
         (SELECT pa.attname
          FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_attribute pa
            ON pa.attrelid = k.confrelid AND pa.attnum = k.confkey[1]
          WHERE k.contype = 'f' AND k.conrelid = c.oid AND k.conkey = ARRAY[a.attnum] LIMIT 1) AS "parentColumn",
         (SELECT coalesce(jsonb_agg((SELECT jsonb_agg(u.attname) FROM pg_catalog.pg_attribute u
                                     WHERE u.attrelid = c.oid AND u.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))), '[]')
          FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
            AND i.indpred IS NULL AND i.indexprs IS NULL) AS uniques
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  -- A domain is as good as what it is made of.
  JOIN pg_catalog.pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
  LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', '${keptIn}')
  ORDER BY n.nspname, c.relname, a.attnum`

/** The server locks a table to print them: asked before the flows begin. */
const defaultsText = `
  SELECT n.nspname || '.' || c.relname || '.' || a.attname AS column,
         pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS text
  FROM pg_catalog.pg_attrdef d
  JOIN pg_catalog.pg_class c ON c.oid = d.adrelid AND c.relkind IN ('r', 'p')
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum AND a.attgenerated = ''
  WHERE c.oid >= 16384 AND c.relpersistence <> 't'`

interface Row {
  readonly table: string
  readonly quoted: string
  readonly readable: boolean
  readonly column: string
  readonly type: string
  readonly exact: boolean
  readonly primary: boolean
  readonly parent: string | null
  readonly parentColumn: string | null
  readonly uniques: readonly (readonly string[])[]
}

/** The tables as the seed has left them, for what a report suggests: it has to hold on them. */
export async function readKnownTables({ client }: Control): Promise<readonly KnownTable[]> {
  const all = (await ask<Row>(client, columnsText)) ?? []
  const texts = (await ask<{ column: string; text: string }>(client, defaultsText)) ?? []
  const defaults = new Map(texts.map(({ column, text }) => [column, valueOf(text)]))
  const tables: KnownTable[] = []
  for (const [name, columns] of Map.groupBy(all, ({ table }) => table)) {
    const [first] = columns
    if (first === undefined) continue
    const rows = first.readable ? await rowsOf(client, first.quoted, columns) : undefined
    tables.push({
      name,
      columns: columns.map(({ column, type, exact, primary, ...row }) => {
        const { parent, parentColumn } = row
        const filled = defaults.get(`${name}.${column}`)
        return {
          name: column,
          type,
          exact,
          key: primary,
          ...(filled === undefined ? {} : { filled }),
          ...(parent === null || parentColumn === null
            ? {}
            : { refers: { table: parent, column: parentColumn } }),
        }
      }),
      uniques: first.uniques,
      ...(rows === undefined ? {} : { rows }),
    })
  }
  return tables
}

async function rowsOf(
  client: Control['client'],
  quoted: string,
  columns: readonly Row[],
): Promise<KnownTable['rows']> {
  const list = columns.map(({ column }) => `${client.escapeIdentifier(column)}::text`).join(', ')
  const rows = await ask<{ row: (string | null)[] }>(
    client,
    `SELECT ARRAY[${list}] AS row FROM ${quoted} LIMIT ${mostRows + 1}`,
  )
  return rows && rows.length <= mostRows ? rows.map(({ row }) => row) : undefined
}

/** Undefined if it cannot be had. */
async function ask<Found extends object>(
  client: Control['client'],
  text: string,
): Promise<readonly Found[] | undefined> {
  try {
    await client.query(`BEGIN READ ONLY; SET LOCAL lock_timeout = '${patience}'`)
    const { rows } = await client.query<Found>(text)
    return rows
  } catch {
    return undefined
  } finally {
    await client.query('ROLLBACK')
  }
}

/** `'active'::text` → `active`; undefined for what is not one value, such as `now()`. */
function valueOf(expression: string): string | undefined {
  const [, text] = /^'((?:[^']|'')*)'(?:::[\w\s".()[\],]+)?$/.exec(expression) ?? []
  if (text !== undefined) return text.replaceAll("''", "'")
  return /^(?:\(?-?\d+(?:\.\d+)?\)?|true|false)$/.test(expression)
    ? expression.replaceAll(/[()]/g, '')
    : undefined
}
