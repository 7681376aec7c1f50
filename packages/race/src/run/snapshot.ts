/** `state: 'restore'`: the rows of all tables and the places of all sequences, put back before every run. */
import type { Client } from 'pg'
import { sqlstateOf } from './error-layers.ts'

/** What was there when the exploration began. */
export interface Saved {
  readonly tables: readonly SavedTable[]
  readonly sequences: readonly Sequence[]
}

interface TableRow {
  readonly quoted: string
  /** `ONLY` of a table that others inherit from; a partitioned one has no rows of its own. */
  readonly only: string
  readonly columns: readonly string[]
}

export interface SavedTable extends TableRow {
  readonly rows: readonly string[]
  readonly digest: string
}

/** Where a snapshot is kept while it is needed; see `kept-snapshot.ts`. */
export const keptIn = 'holdfast_race_kept'

const tablesText = `
  SELECT format('%I.%I', n.nspname, c.relname) AS quoted,
         CASE c.relkind WHEN 'r' THEN 'ONLY ' ELSE '' END AS only,
         coalesce((SELECT array_agg(format('%I', a.attname) ORDER BY a.attnum)
          FROM pg_catalog.pg_attribute a
          WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
          '{}') AS columns
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't'
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', '${keptIn}')
  ORDER BY c.oid`

/** What would change rows that are put back, or refuse them. */
const obstaclesText = `
  SELECT format('%I.%I', n.nspname, c.relname) AS quoted, what
  FROM (SELECT tgrelid AS relation, 'a trigger that is ENABLE ALWAYS' AS what FROM pg_catalog.pg_trigger WHERE tgenabled = 'A'
        UNION ALL SELECT ev_class, 'a rule that is ENABLE ALWAYS' FROM pg_catalog.pg_rewrite WHERE ev_enabled = 'A'
        UNION ALL SELECT conrelid, 'a constraint that is NOT VALID' FROM pg_catalog.pg_constraint
          WHERE contype = 'c' AND NOT convalidated
        UNION ALL SELECT oid, 'no columns' FROM pg_catalog.pg_class WHERE relkind = 'r' AND relnatts = 0) AS obstacle
  JOIN pg_catalog.pg_class c ON c.oid = obstacle.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  LIMIT 1`

const sequencesText = `
  SELECT format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind = 'S' AND c.relpersistence <> 't' ORDER BY 1`

/** `place` is the next number, unless it was `called`: then it is the last one. */
export interface Sequence {
  readonly name: string
  readonly place: string
  readonly called: boolean
}

/** Reads everything that will be put back. */
export async function takeSnapshot(client: Client): Promise<Saved> {
  await readExactly(client)
  const [obstacle] = (await client.query<{ quoted: string; what: string }>(obstaclesText)).rows
  if (obstacle !== undefined)
    throw new Error(
      `state: 'restore' cannot put the rows of ${obstacle.quoted} back: it has ${obstacle.what}. Use state: 'clone', or write a seed`,
    )
  const { rows: all } = await client.query<TableRow>(tablesText)
  const tables: SavedTable[] = []
  for (const table of all) {
    const { rows } = await client.query<{ rows: string[] }>(
      `SELECT coalesce(array_agg((one.*)::text), '{}') AS rows FROM ${table.only}${table.quoted} AS one`,
    )
    tables.push({ ...table, rows: rows[0]?.rows ?? [], digest: await digestOf(client, table) })
  }
  return { tables, sequences: await readSequences(client) }
}

/** Puts back what has changed since. */
export async function putBack(client: Client, { tables, sequences }: Saved): Promise<void> {
  await readExactly(client)
  const changed: SavedTable[] = []
  for (const table of tables)
    if ((await digestOf(client, table)) !== table.digest) changed.push(table)
  const now = new Set((await readSequences(client)).map((one) => JSON.stringify(one)))
  const moved = sequences.filter((one) => !now.has(JSON.stringify(one)))
  if (changed.length === 0 && moved.length === 0) return
  await client.query('BEGIN')
  try {
    // Neither triggers nor foreign keys: the rows are as they were when they passed them.
    if (changed.length > 0) await client.query('SET LOCAL session_replication_role = replica')
    for (const table of changed) await putBackTable(client, table)
    for (const { name, place, called } of moved) {
      await client.query('SELECT setval($1::regclass, $2::bigint, $3)', [name, place, called])
    }
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    if (sqlstateOf(error) !== '42501') throw error
    throw new Error(
      `state: 'restore' needs a superuser, or a role that may set session_replication_role`,
      { cause: error },
    )
  }
}

/** The text of a row has to be the row. */
async function readExactly(client: Client): Promise<void> {
  await client.query('SET extra_float_digits = 3')
}

async function digestOf(client: Client, { only, quoted }: TableRow): Promise<string> {
  const { rows } = await client.query<{ digest: string }>(
    `SELECT md5(coalesce(string_agg((one.*)::text, E'\\n' ORDER BY (one.*)::text COLLATE "C"), '')) AS digest
     FROM ${only}${quoted} AS one`,
  )
  return rows[0]?.digest ?? ''
}

async function readSequences(client: Client): Promise<readonly Sequence[]> {
  const { rows } = await client.query<{ name: string }>(sequencesText)
  if (rows.length === 0) return []
  const parts = rows.map(
    ({ name }) =>
      `SELECT ${client.escapeLiteral(name)} AS name, last_value::text AS place, is_called AS called FROM ${name}`,
  )
  return (await client.query<Sequence>(parts.join(' UNION ALL '))).rows
}

async function putBackTable(
  client: Client,
  { only, quoted, columns, rows }: SavedTable,
): Promise<void> {
  await client.query(`DELETE FROM ${only}${quoted}`)
  if (rows.length === 0) return
  const values = columns.map((column) => `(one).${column}`).join(', ')
  await client.query(
    `INSERT INTO ${quoted} (${columns.join(', ')}) OVERRIDING SYSTEM VALUE
     SELECT ${values} FROM (SELECT unnest($1::text[])::${quoted} AS one) AS saved`,
    [rows],
  )
}
