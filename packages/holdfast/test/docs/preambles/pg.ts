/** What blocks may take for granted: a pool, a Holdfast on it, and a few tables. */
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'

export {
  createHoldfast,
  isHoldfastError,
  legacyKey,
  lockKey,
  lockNamespace,
  shared,
} from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))

export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

await pool.query(`
  CREATE TABLE user_image (id serial PRIMARY KEY, user_id text NOT NULL, byte_size int NOT NULL);
  CREATE TABLE seats (id int PRIMARY KEY, taken_by text, version int NOT NULL DEFAULT 1);
  INSERT INTO seats (id) VALUES (1), (2), (3);
  CREATE TABLE doctors (name text PRIMARY KEY, on_call boolean NOT NULL);
  INSERT INTO doctors VALUES ('alice', true), ('bob', true);
  CREATE TABLE enrolments (course text NOT NULL, student text NOT NULL);
  CREATE TABLE orders (id text PRIMARY KEY, total int NOT NULL)`)

// Connections that are there already: a blocker that is looked up in a hurry is then found in time.
const clients = await Promise.all(Array.from({ length: 5 }, async () => pool.connect()))
for (const client of clients) client.release()

export async function close(): Promise<void> {
  await pool.end()
}
