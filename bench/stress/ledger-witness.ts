import type { ClientBase, Pool } from 'pg'

/** What one caller saw of one call. */
export interface Sighting {
  /** The operation id; of settle, release and extend that of the hold. */
  readonly id: string
  readonly kind: string
  readonly key: string
  readonly amount: number | null
  readonly outcome: 'accepted' | 'replayed' | 'refused' | 'rolled back'
  readonly reason: string | null
  readonly seq: number
  readonly credited: number
  readonly debited: number
  readonly held: number
}

const columns = {
  id: 'text',
  kind: 'text',
  key: 'text',
  amount: 'bigint',
  outcome: 'text',
  reason: 'text',
  seq: 'bigint',
  credited: 'bigint',
  debited: 'bigint',
  held: 'bigint',
} as const satisfies Record<keyof Sighting, string>

const names = Object.keys(columns) as (keyof Sighting)[]

/** The table beside a ledger in which callers write down what they were told. */
export function witnessOf(schema: string): string {
  return `witness.${schema}`
}

export async function createWitness(client: ClientBase, schema: string): Promise<void> {
  const list = names.map((name) => `${name} ${columns[name]}`)
  await client.query('CREATE SCHEMA IF NOT EXISTS witness')
  await client.query(`CREATE UNLOGGED TABLE ${witnessOf(schema)} (${list.join(', ')})`)
}

export async function testify(
  pool: Pool,
  schema: string,
  sightings: readonly Sighting[],
): Promise<void> {
  const arrays = names.map((name, at) => `$${at + 1}::${columns[name]}[]`)
  await pool.query(
    `INSERT INTO ${witnessOf(schema)} (${names.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')})`,
    names.map((name) => sightings.map((sighting) => sighting[name])),
  )
}
