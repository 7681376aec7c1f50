import { callsOf, drawingFunctions } from '../catalogue/catalogue-text.ts'
import type { Control } from '../connection/control.ts'
import { keptIn } from './snapshot.ts'

/** A column of the compared state, with what is known about where its values come from. */
export interface StateColumn {
  readonly name: string
  readonly type: 'clock' | 'other'
  /** Part of the primary key. */
  readonly key: boolean
  /** Filled by a sequence or at random by the server: its new values are of chance. */
  readonly generated: boolean
  /** The key that it refers to: `public.orders.id`. */
  readonly refers: string | undefined
}

export interface StateTable {
  /** `public.orders`. */
  readonly name: string
  /** As SQL writes it. */
  readonly quoted: string
  /** None of a table that has none; what is left of it is how many rows it has. */
  readonly columns: readonly StateColumn[]
}

const columnsText = `
  SELECT n.nspname AS schema, c.relname AS table, a.attname AS column, t.typname AS type,
         format('%I.%I', n.nspname, c.relname) AS quoted,
         (coalesce(a.attidentity, '') <> '' OR coalesce(d.adbin::text ~ ${callsOf(drawingFunctions)}, false)) AS generated,
         EXISTS (SELECT FROM pg_catalog.pg_index i
                 WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS primary,
         (SELECT pn.nspname || '.' || pc.relname || '.' || pa.attname
          FROM pg_catalog.pg_constraint k
          JOIN pg_catalog.pg_class pc ON pc.oid = k.confrelid
          JOIN pg_catalog.pg_namespace pn ON pn.oid = pc.relnamespace
          JOIN pg_catalog.pg_attribute pa ON pa.attrelid = k.confrelid
            AND pa.attnum = k.confkey[array_position(k.conkey, a.attnum)]
          WHERE k.contype = 'f' AND k.conrelid = c.oid AND a.attnum = ANY (k.conkey)
          LIMIT 1) AS refers,
         CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'the role of the url may not read it'
              WHEN c.relkind = 'f' THEN 'it is a foreign table'
              WHEN NOT c.relispopulated THEN 'it was not filled before the first run' END AS unread
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'm', 'f') AND NOT c.relispartition
    AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', '${keptIn}')
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                    WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')
  ORDER BY 1, 2, a.attnum`

/** What there is to compare, and what there is beside it that cannot be read. */
export interface StateTables {
  readonly tables: readonly StateTable[]
  /** By name, and why. */
  readonly unread: ReadonlyMap<string, string>
}

const clocks = new Set(['timestamptz', 'timestamp', 'date', 'time', 'timetz'])

/** The tables and materialized views of the user, without what an extension brought and without what is to be ignored. */
export async function readStateTables(
  control: Control,
  only: readonly string[] | undefined,
  ignored: readonly string[],
): Promise<StateTables> {
  const { rows } = await control.client.query<{
    schema: string
    table: string
    /** Null for a table without columns. */
    column: string | null
    type: string
    quoted: string
    generated: boolean
    primary: boolean
    refers: string | null
    unread: string | null
  }>(columnsText)
  refuseUnknown([...(only ?? []), ...ignored], rows)
  const tables = new Map<string, { name: string; quoted: string; columns: StateColumn[] }>()
  const unread = new Map<string, string>()
  for (const row of rows) {
    const name = `${row.schema}.${row.table}`
    const names = [name, row.table]
    if (only && !names.some((one) => only.includes(one))) continue
    if (names.some((one) => ignored.includes(one))) continue
    if (row.unread !== null) {
      unread.set(name, row.unread)
      continue
    }
    const table = tables.get(name) ?? { name, quoted: row.quoted, columns: [] }
    const { column } = row
    if (column === null) {
      tables.set(name, table)
      continue
    }
    const spelt = [column, ...names.map((one) => `${one}.${column}`)]
    if (spelt.some((one) => ignored.includes(one))) continue
    // One whose columns are all to be ignored is left out.
    tables.set(name, table)
    table.columns.push({
      name: column,
      type: clocks.has(row.type) ? 'clock' : 'other',
      key: row.primary,
      generated: row.generated,
      refers: row.refers ?? undefined,
    })
  }
  return { tables: [...tables.values()], unread }
}

/** A name that is none would leave out nothing, or everything, without a word. */
function refuseUnknown(
  names: readonly string[],
  rows: readonly {
    readonly schema: string
    readonly table: string
    readonly column: string | null
  }[],
): void {
  const known = new Set(
    rows.flatMap(({ schema, table, column }) => [
      table,
      `${schema}.${table}`,
      ...(column === null ? [] : [column, `${table}.${column}`, `${schema}.${table}.${column}`]),
    ]),
  )
  const wrong = names.find((name) => !known.has(name))
  if (wrong !== undefined)
    throw new Error(`oracle: there is no table or column named ${wrong} in this database`)
}
