/** The race that everybody has written once: count, check, insert, at 99 of 100. */
import type { Pool, PoolClient } from 'pg'
import type { DatabaseContext, Flow } from '../run/options.ts'

/** What there is to explore. */
export interface QuotaRace {
  readonly name: string
  readonly url: string
  readonly seed: (context: DatabaseContext) => Promise<void>
  readonly flows: Readonly<Record<string, Flow>>
  readonly oracle: { readonly tables: readonly string[] }
}

const limit = 100

/** Tables and rows of the demo, made in the schema that the connection looks at first. */
export const tables: string = `
  CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL);
  CREATE TABLE uploads (
    id serial PRIMARY KEY,
    user_id int NOT NULL REFERENCES users,
    name text NOT NULL
  );
  INSERT INTO users VALUES (1, 'ann')`

/** Two uploads of one user who has 99 of 100, unprotected or with the user's row locked first. */
export function quotaRace(url: string, schema: string, isFixed: boolean): QuotaRace {
  const upload = isFixed ? uploadLocked : uploadUnprotected
  return {
    name: isFixed ? 'upload within the quota, user locked' : 'upload within the quota',
    url,
    seed: async ({ query }) => {
      await query('TRUNCATE uploads RESTART IDENTITY')
      await query(
        `INSERT INTO uploads (user_id, name) SELECT 1, n || '.png' FROM generate_series(1, ${limit - 1}) n`,
      )
    },
    flows: {
      phone: ({ pool }) => upload(pool, 1, 'beach.png'),
      laptop: ({ pool }) => upload(pool, 1, 'party.png'),
    },
    oracle: { tables: [`${schema}.uploads`, `${schema}.users`] },
  }
}

async function uploadUnprotected(pool: Pool, userId: number, name: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await insertWithinQuota(client, userId, name)
  })
}

async function uploadLocked(pool: Pool, userId: number, name: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId])
    await insertWithinQuota(client, userId, name)
  })
}

async function insertWithinQuota(client: PoolClient, userId: number, name: string): Promise<void> {
  const { rows } = await client.query<{ used: number }>(
    'SELECT count(*)::int AS used FROM uploads WHERE user_id = $1',
    [userId],
  )
  if ((rows[0]?.used ?? 0) >= limit) throw new Error('quota exceeded')
  await client.query('INSERT INTO uploads (user_id, name) VALUES ($1, $2)', [userId, name])
}

async function inTransaction(
  pool: Pool,
  body: (client: PoolClient) => Promise<void>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await body(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
