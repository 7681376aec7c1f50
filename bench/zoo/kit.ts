/** What a variant makes of an entry: keys, moments, waits and names of tables. */
import { randomBytes, randomUUID, scrypt } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Ask, Db, Entry, Kit, Row } from './model.ts'
import type { Variant } from './variants.ts'

/** Servers that answer after as many milliseconds as their path says. */
export interface Origins {
  /** In another process. */
  readonly elsewhere: string
  /** In this one. */
  readonly here: string
}

const columns: Readonly<Record<Variant['keys'], string>> = {
  uuid: 'id text PRIMARY KEY',
  'uuid-by-server': 'id uuid PRIMARY KEY DEFAULT gen_random_uuid()',
  nanoid: 'id text PRIMARY KEY',
  serial: 'id serial PRIMARY KEY',
  natural: 'id text PRIMARY KEY',
}

const moments: Readonly<Record<Variant['clock'], string>> = {
  none: 'at text',
  seconds: 'at int',
  milliseconds: 'at bigint',
  iso: 'at text',
  'now()': 'at timestamptz DEFAULT now()',
  'now()-seconds': 'at timestamptz(0) DEFAULT now()',
}

/** Schemas of the variants with two of them. */
const [own, other] = ['zoo', 'twin']

/** The texts of an entry, with the columns and the schema of the variant. */
export function textsOf(entry: Entry, variant: Variant): (text: string) => string {
  const names = [...entry.tables, ...entry.rows].flatMap(
    (text) => /TABLE (?:IF EXISTS )?(\w+)/.exec(text)?.[1] ?? [],
  )
  const place = new RegExp(
    String.raw`\b(FROM|INTO|UPDATE|TABLE|EXISTS|REFERENCES|ON)\s+(${names.join('|')})\b`,
    'g',
  )
  return (text) => {
    const filled = text.replace('{record}', `${columns[variant.keys]}, ${moments[variant.clock]}`)
    return variant.schema === 'named' ? filled.replace(place, `$1 ${own}.$2`) : filled
  }
}

/** Makes the tables of the entry, and those beside them that have nothing to do with it. */
export async function setUp(entry: Entry, variant: Variant, ask: Ask): Promise<string[]> {
  const written = textsOf(entry, variant)
  for (const schema of ['public', own, other]) await ask(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  await ask('CREATE SCHEMA public')
  if (variant.schema === 'named') await ask(`CREATE SCHEMA ${own}`)
  for (const text of entry.tables) await ask(written(text))
  const schema = variant.schema === 'named' ? own : 'public'
  const rows = await ask('SELECT tablename FROM pg_tables WHERE schemaname = $1', schema)
  const tables = rows.map((row) => `${schema}.${String(row['tablename'])}`)
  if (variant.schema === 'one') return tables
  await ask(`CREATE SCHEMA ${other}`)
  for (const table of tables) {
    await ask(`CREATE TABLE ${table.replace(schema, other)} AS TABLE ${table} WITH NO DATA`)
  }
  return tables
}

function waitBy(variant: Variant, origins: Origins): () => Promise<unknown> {
  const { waitMs, waitKind } = variant
  const call = async (origin: string): Promise<unknown> =>
    (await fetch(`${origin}/${waitMs}`)).text()
  const kinds: Readonly<Record<Variant['waitKind'], () => Promise<unknown>>> = {
    timer: () => setTimeout(waitMs),
    fetch: () => call(origins.elsewhere),
    'fetch-here': () => call(origins.here),
    async thread() {
      await promisify(scrypt)('password', 'salt', 64)
      await setTimeout(waitMs)
    },
  }
  return waitMs === 0 ? () => Promise.resolve() : kinds[waitKind]
}

function moment(clock: Variant['clock']): unknown {
  const now = Date.now()
  if (clock === 'seconds') return Math.floor(now / 1_000) + 600
  if (clock === 'milliseconds') return now
  return clock === 'iso' ? new Date(now).toISOString() : undefined
}

function newKey(keys: Variant['keys'], who: string): string | undefined {
  if (keys === 'uuid') return randomUUID()
  if (keys === 'nanoid') return randomBytes(16).toString('base64url')
  return keys === 'natural' ? `key of ${who}` : undefined
}

/** One flow in one run. */
export function createKit(
  entry: Entry,
  variant: Variant,
  db: Db,
  { who, origins }: { readonly who: string; readonly origins: Origins },
): Kit {
  const written = textsOf(entry, variant)
  const named =
    (ask: Ask): Ask =>
    (text, ...values) =>
      ask(written(text), ...values)
  let id: unknown = newKey(variant.keys, who)
  const at = moment(variant.clock)
  return {
    who,
    ask: named(db.ask),
    transaction: (body, isolation) =>
      db.transaction((ask, rows) => body(named(ask), named(rows)), isolation),
    wait: waitBy(variant, origins),
    async record(ask, table, given) {
      const row: Row = { ...given }
      const key = newKey(variant.keys, who)
      if (key !== undefined) row['id'] = key
      if (at !== undefined) row['at'] = at
      const places = Object.keys(row).map((_, place) => `$${place + 1}`)
      const [inserted] = await ask(
        `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${places.join(', ')}) RETURNING id`,
        ...Object.values(row),
      )
      id = inserted?.['id']
    },
    answer: (status, more) => ({
      status,
      ...more,
      ...(id !== undefined && { id }),
      ...(at !== undefined && { at }),
    }),
  }
}
