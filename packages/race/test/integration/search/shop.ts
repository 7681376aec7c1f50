/** Tables and flows that the tests of the search share. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { DatabaseContext, Flow } from '../../../src/run/options.ts'

/** A database with the tables, its address. */
export async function openShop(): Promise<string> {
  const { directUrl: url } = await testDatabase()
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE events (id int PRIMARY KEY, seats int NOT NULL);
      CREATE TABLE seats (id serial PRIMARY KEY, event int NOT NULL, who text NOT NULL);
      CREATE TABLE emails (address text PRIMARY KEY, who text NOT NULL);
      CREATE TABLE jobs (id int PRIMARY KEY, taken_by text);
      CREATE TABLE payments (id serial PRIMARY KEY, order_key text NOT NULL, amount int NOT NULL);
    `),
  )
  return url
}

export async function stock({ query }: DatabaseContext): Promise<void> {
  await query('TRUNCATE events, seats, emails, jobs, payments RESTART IDENTITY')
  await query('INSERT INTO events VALUES (1, 1), (2, 5)')
  await query('INSERT INTO jobs VALUES (1, NULL), (2, NULL)')
}

/** A flow that does one transaction; `level` is what stands after BEGIN. */
export function inTransaction(
  body: (client: PoolClient, who: string) => Promise<unknown>,
  level = '',
): Flow {
  return async ({ pool, flow }) => {
    const client = await pool.connect()
    try {
      await client.query(`BEGIN ${level}`)
      const answer = await body(client, flow)
      await client.query('COMMIT')
      return answer
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
}

async function reserve(client: PoolClient, who: string): Promise<boolean> {
  const { rows } = await client.query<{ taken: number }>(
    'SELECT count(*)::int AS taken FROM seats WHERE event = 1',
  )
  if ((rows[0]?.taken ?? 0) >= 1) return false
  await client.query('INSERT INTO seats (event, who) VALUES (1, $1)', [who])
  return true
}

/** Reads, checks, inserts. */
export const naiveReserve: Flow = inTransaction(reserve)

export const guardedReserve: Flow = inTransaction(async (client, who) => {
  await client.query('SELECT FROM events WHERE id = 1 FOR UPDATE')
  return await reserve(client, who)
})

/** Reads, subtracts here, writes back. */
export const naiveTake: Flow = inTransaction(take)

export const serializableTake: Flow = inTransaction(take, 'ISOLATION LEVEL SERIALIZABLE')

async function take(client: PoolClient): Promise<number> {
  const { rows } = await client.query<{ seats: number }>('SELECT seats FROM events WHERE id = 2')
  const left = (rows[0]?.seats ?? 0) - 1
  await client.query('UPDATE events SET seats = $1 WHERE id = 2', [left])
  return left
}

/** Looks whether the address is free, then inserts it. */
export const register: Flow = inTransaction(async (client, who) => {
  const found = await client.query(`SELECT FROM emails WHERE address = 'a@example.org'`)
  if (found.rowCount !== 0) return 'taken'
  await client.query(`INSERT INTO emails VALUES ('a@example.org', $1)`, [who])
  return 'registered'
})

/** Takes the first job that nobody has, without a lock. */
export const naiveClaim: Flow = inTransaction(async (client, who) => {
  const { rows } = await client.query<{ id: number }>(
    'SELECT id FROM jobs WHERE taken_by IS NULL ORDER BY id LIMIT 1',
  )
  await client.query('UPDATE jobs SET taken_by = $1 WHERE id = $2', [who, rows[0]?.id])
  return rows[0]?.id
})

/** One statement that looks and inserts, on its own. */
export const insertWhereNotExists: Flow = async ({ pool, flow }) => {
  const { rowCount } = await pool.query(
    'INSERT INTO seats (event, who) SELECT 1, $1 WHERE NOT EXISTS (SELECT FROM seats WHERE event = 1)',
    [flow],
  )
  return rowCount
}

/** Locks two rows in the given order. */
export function lockBoth(first: number, second: number): Flow {
  return inTransaction(async (client) => {
    await client.query('UPDATE events SET seats = seats - 1 WHERE id = $1', [first])
    await client.query('UPDATE events SET seats = seats - 1 WHERE id = $1', [second])
  })
}
