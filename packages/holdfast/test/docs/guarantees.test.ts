/** Rows of the README's table of guarantees, and of docs/poolers.md, that no other suite covers. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import {
  databaseOf,
  deferred,
  startPgBouncer,
  startPostgres,
  urlWithDatabase,
} from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'

const key = lockKey('guaranteed', 1)

async function on<T>(
  url: string,
  use: (hf: Holdfast<pg.PoolClient>, pool: pg.Pool) => Promise<T>,
): Promise<T> {
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  pool.on('error', () => undefined)
  try {
    return await use(createHoldfast(fromPg(pool)), pool)
  } finally {
    await pool.end()
  }
}

const written = async (pool: pg.Pool): Promise<number> =>
  (await pool.query('SELECT FROM written')).rows.length

describe('a process that crashes while it holds a lock', () => {
  test.each(['directly', 'through PgBouncer'])('%s: lock free, nothing written', async (way) => {
    const { directUrl } = await testDatabase()
    const name = databaseOf(directUrl)
    const url = way === 'directly' ? directUrl : urlWithDatabase(inject('pgbouncerUrl'), name)
    await on(directUrl, async (hf, pool) => {
      await pool.query('CREATE TABLE written (id int)')
      const holder = fork(fileURLToPath(new URL('./checks/hold-lock.ts', import.meta.url)), {
        env: { ...process.env, DATABASE_URL: url },
      })
      await once(holder, 'message')
      await expect(hf.guard(key, async () => 'in', { waitMs: 0 })).rejects.toMatchObject({
        code: 'LOCK_BUSY',
      })
      holder.kill('SIGKILL')
      await expect(hf.guard(key, async () => 'in', { waitMs: 10_000 })).resolves.toBe('in')
      expect(await written(pool)).toBe(0)
    })
  })
})

describe('a failover', () => {
  test('takes the lock and its transaction away together', async () => {
    await using primary = await startPostgres()
    await using standby = await primary.standby()
    const holding = deferred()
    const lost = on(primary.url(), async (hf, pool) => {
      await pool.query('CREATE TABLE written (id int)')
      const body = async (tx: pg.PoolClient): Promise<void> => {
        await tx.query('INSERT INTO written VALUES (1)')
        holding.resolve()
        await tx.query('SELECT pg_sleep(60)')
      }
      await hf.guard(key, body, { retry: false })
    }).then(String, (error: unknown) => error)
    await holding.promise
    await primary.stop('immediate')
    expect(await lost).toMatchObject({ code: 'CONNECTION_LOST', retryable: true })
    await standby.promote()
    await on(standby.url(), async (hf, pool) => {
      await expect(hf.guard(key, async () => 'in', { waitMs: 0 })).resolves.toBe('in')
      expect(await written(pool)).toBe(0)
    })
  })
})

describe('PgBouncer', () => {
  test('in session mode', async () => {
    await using server = await startPostgres()
    await using pooler = await startPgBouncer(server, { poolMode: 'session' })
    await on(pooler.url(), async (hf) => {
      await hf.locks.selfTest()
      await expect(hf.guard(key, async () => 'in')).resolves.toBe('in')
    })
  })

  test('in statement mode allows no transaction, and so no lock', async () => {
    await using server = await startPostgres()
    await using pooler = await startPgBouncer(server, { poolMode: 'statement' })
    await on(pooler.url(), async (hf) => {
      await expect(hf.guard(key, async () => 'in')).rejects.toThrow(/transaction/i)
    })
  })
})
