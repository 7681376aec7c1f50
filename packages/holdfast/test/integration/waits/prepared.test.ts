/** What a prepared transaction holds has no session: it is named all the same. */
import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { named } from '../../support/in-time.ts'
import { errorOf } from '../rows/open-room.ts'

let server: PostgresServer
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>
const key = lockKey('prepared', 1)

beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: '4' } })
  pool = new pg.Pool({ connectionString: await server.createDatabase(), max: 4 })
  hf = createHoldfast(fromPg(pool))
  await pool.query('CREATE TABLE item (id int PRIMARY KEY); INSERT INTO item VALUES (1)')
  const client = await pool.connect()
  await client.query('BEGIN')
  await hf.locks.acquire(client, key)
  await client.query('SELECT FROM item WHERE id = 1 FOR UPDATE')
  await client.query(`PREPARE TRANSACTION 'order 17'`)
  client.release()
})
afterAll(async () => {
  await pool.query(`ROLLBACK PREPARED 'order 17'`)
  await pool.end()
  await server.stop('immediate')
})

const wait = '20 ms'
test.each<[string, (tx: pg.PoolClient) => Promise<unknown>, string]>([
  ['a lock', (tx) => hf.locks.acquire(tx, key, { wait }), 'LOCK_TIMEOUT'],
  ['a row', (tx) => hf.rows.lock(tx, 'item', [1], { wait }), 'ROWS_TIMEOUT'],
  ['a table', (tx) => hf.rows.lockTable(tx, 'item', 'exclusive', { wait }), 'ROWS_TIMEOUT'],
])('%s', async (_, take, code) => {
  expect(named(await errorOf(hf.transaction(take)))).toMatchObject({
    code,
    blockers: [{ pid: 0, name: 'order 17', state: 'prepared', ageMs: expect.any(Number) }],
  })
})
