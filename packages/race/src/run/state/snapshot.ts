/** `state: 'restore'`: the rows of all tables and the places of all sequences, put back before every run. */
import { escapeLiteral } from 'pg'
import { sqlstateOf } from '../answer/error-layers.ts'
import { refusedRows, RestoreError } from './restore-error.ts'

/** What was there when the exploration began. */
export interface Saved {
  readonly tables: readonly SavedTable[]
  readonly sequences: readonly Sequence[]
}

/** Whoever asks the database: a client, or the runner's own connection as a seed has it. */
export interface Asking {
  query<R extends object>(
    text: string | Named,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly R[] }>
}

/** A statement that the connection keeps: to plan a look at many tables takes longer than the look. */
export interface Named {
  readonly name: string
  readonly text: string
}

const names = new Map<string, Named>()

function named(text: string): Named {
  const known = names.get(text)
  if (known !== undefined) return known
  const made = { name: `holdfast_race_saved_${names.size}`, text }
  names.set(text, made)
  return made
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
  FROM (SELECT tgrelid AS relation, 'a trigger that is ENABLE ALWAYS or REPLICA' AS what FROM pg_catalog.pg_trigger
          WHERE tgenabled IN ('A', 'R')
        UNION ALL SELECT ev_class, 'a rule that is ENABLE ALWAYS or REPLICA' FROM pg_catalog.pg_rewrite
          WHERE ev_enabled IN ('A', 'R')
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

/** Reads everything that will be put back. Tables that are as they were in `before` are not read again. */
export function takeSnapshot(client: Asking, before?: Saved): Promise<Saved> {
  return exactly(client, () => readAll(client, before))
}

async function readAll(client: Asking, before: Saved | undefined): Promise<Saved> {
  const [obstacle] = (await client.query<{ quoted: string; what: string }>(obstaclesText)).rows
  if (obstacle !== undefined)
    throw new RestoreError(
      `the rows of ${obstacle.quoted} cannot be put back: it has ${obstacle.what}`,
      obstacle.quoted,
    )
  const { rows: all } = await client.query<TableRow>(tablesText)
  const digests = await digestsOf(client, all)
  const tables: SavedTable[] = []
  for (const table of all) {
    const digest = digests.get(table.quoted) ?? ''
    const same = before?.tables.find((one) => one.quoted === table.quoted)
    if (same?.digest === digest && same.columns.join() === table.columns.join()) {
      tables.push(same)
      continue
    }
    const { rows } = await client.query<{ rows: string[] }>(
      `SELECT coalesce(array_agg((one.*)::text), '{}') AS rows FROM ${table.only}${table.quoted} AS one`,
    )
    tables.push({ ...table, rows: rows[0]?.rows ?? [], digest })
  }
  return { tables, sequences: await readSequences(client) }
}

/** Puts back what has changed since, all of it or nothing. @throws RestoreError if a table refuses its rows */
export function putBack(client: Asking, { tables, sequences }: Saved): Promise<void> {
  return exactly(client, async () => {
    const now = await digestsOf(client, tables)
    await putBackTables(
      client,
      tables.filter(({ quoted, digest }) => now.get(quoted) !== digest),
    )
    const places = new Set((await readSequences(client)).map((one) => JSON.stringify(one)))
    for (const one of sequences.filter((sequence) => !places.has(JSON.stringify(sequence)))) {
      const { name, place, called } = one
      await client.query('SELECT setval($1::regclass, $2::bigint, $3)', [name, place, called])
    }
  })
}

/** Whether all of it could be put back; nothing is changed. @throws RestoreError if a table refuses its rows */
export async function tryPutBack(client: Asking, { tables }: Saved): Promise<void> {
  const tried = new Error('tried, and taken back')
  const trial = exactly(client, async () => {
    await putBackTables(client, tables)
    const now = await digestsOf(client, tables)
    for (const { quoted, digest } of tables) {
      if (now.get(quoted) === digest) continue
      throw new RestoreError(
        `the rows of ${quoted} are not the same when they are put back`,
        quoted,
      )
    }
    throw tried
  })
  await trial.catch((error: unknown) => {
    if (error !== tried) throw error
  })
}

async function putBackTables(client: Asking, tables: readonly SavedTable[]): Promise<void> {
  if (tables.length === 0) return
  await withoutTriggers(client)
  for (const table of tables) {
    try {
      await putBackTable(client, table)
    } catch (error) {
      // Bad values and violated constraints are the rows' own; a lock or a lost server is not.
      if (!/^(22|23)/.test(sqlstateOf(error) ?? '')) throw error
      throw refusedRows(table.quoted, error)
    }
  }
}

/** Until the transaction ends, neither triggers nor foreign keys: rows are as they were when they passed them. */
export async function withoutTriggers(client: Asking): Promise<void> {
  try {
    await client.query('SET LOCAL session_replication_role = replica')
  } catch (error) {
    if (sqlstateOf(error) !== '42501') throw error
    throw new Error(
      `state: 'restore' needs a superuser, or a role that may set session_replication_role: GRANT SET ON PARAMETER session_replication_role TO that role`,
      { cause: error },
    )
  }
}

/** The text of a row has to be the row, whatever the database or the role has set: as pg_dump does it. */
const exactText = [
  "client_encoding = 'UTF8'",
  "datestyle = 'ISO, YMD'",
  "timezone = 'UTC'",
  "intervalstyle = 'postgres'",
  'extra_float_digits = 3',
  "bytea_output = 'hex'",
  "lc_monetary = 'C'",
  "xmloption = 'content'",
  'array_nulls = on',
  // Rows that a policy hides are an error, and not left out.
  'row_security = off',
  // Many small tables are a large plan: workers, and what compiles, take ten times as long as the rows.
  'max_parallel_workers_per_gather = 0',
  'jit = off',
]
  .map((setting) => `SET LOCAL ${setting}`)
  .join('; ')

/** In a transaction of its own: the seed has this connection too, with the settings that the database gives it. */
export async function exactly<T>(client: Asking, work: () => Promise<T>): Promise<T> {
  await client.query(`BEGIN READ WRITE; ${exactText}`)
  try {
    const done = await work()
    await client.query('COMMIT')
    return done
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/** One text for the rows of each table, in one round trip. */
async function digestsOf(
  client: Asking,
  tables: readonly TableRow[],
): Promise<ReadonlyMap<string, string>> {
  if (tables.length === 0) return new Map()
  const parts = tables.map(
    ({ only, quoted }) =>
      `SELECT ${escapeLiteral(quoted)} AS quoted,
         md5(coalesce(string_agg((one.*)::text, E'\\n' ORDER BY (one.*)::text COLLATE "C"), '')) AS digest
       FROM ${only}${quoted} AS one`,
  )
  const text = named(parts.join(' UNION ALL '))
  const { rows } = await client.query<{ quoted: string; digest: string }>(text)
  return new Map(rows.map(({ quoted, digest }) => [quoted, digest]))
}

async function readSequences(client: Asking): Promise<readonly Sequence[]> {
  const { rows } = await client.query<{ name: string }>(named(sequencesText))
  if (rows.length === 0) return []
  const parts = rows.map(
    ({ name }) =>
      `SELECT ${escapeLiteral(name)} AS name, last_value::text AS place, is_called AS called FROM ${name}`,
  )
  return (await client.query<Sequence>(named(parts.join(' UNION ALL ')))).rows
}

async function putBackTable(
  client: Asking,
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
