/** What blocks about the race explorer may take for granted: an upload with a quota, twice. */
import pg, { type Pool, type PoolClient } from 'pg'

export {
  assertRaceFree,
  explore,
  formatReport,
  htmlReport,
  mermaidReport,
} from '@holdfast/race'
export { default as pg } from 'pg'
// #region transaction
/** One transaction. */
export async function inTransaction<T>(
  pool: Pool,
  body: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const value = await body(client)
    await client.query('COMMIT')
    return value
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
// #endregion
// #region upload
export async function upload(pool: Pool, userId: number, name: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    const { rows } = await client.query(
      'SELECT count(*)::int AS used FROM uploads WHERE user_id = $1',
      [userId],
    )
    if (rows[0].used >= 100) throw new Error('quota exceeded')
    await client.query('INSERT INTO uploads (user_id, name) VALUES ($1, $2)', [userId, name])
  })
}
// #endregion

export async function uploadLocked(pool: Pool, userId: number, name: string): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [userId])
    const { rows } = await client.query(
      'SELECT count(*)::int AS used FROM uploads WHERE user_id = $1',
      [userId],
    )
    if (rows[0].used >= 100) throw new Error('quota exceeded')
    await client.query('INSERT INTO uploads (user_id, name) VALUES ($1, $2)', [userId, name])
  })
}

const client = new pg.Client(process.env['DATABASE_URL'])
await client.connect()
await client.query(`
  CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL);
  CREATE TABLE uploads (id serial PRIMARY KEY, user_id int NOT NULL REFERENCES users, name text);
  INSERT INTO users VALUES (1, 'ann')`)
await client.end()

// #region seed
export async function seed({ query }: { query: (sql: string) => Promise<unknown> }): Promise<void> {
  await query('TRUNCATE uploads RESTART IDENTITY')
  await query(
    "INSERT INTO uploads (user_id, name) SELECT 1, n || '.png' FROM generate_series(1, 99) n",
  )
}
// #endregion

/** The suite of a project, whatever it is. */
export declare function runSuite(): Promise<unknown>
