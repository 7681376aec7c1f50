/** Long transactions, and who holds vacuum back: sessions, prepared transactions, slots, standbys. */
import { type PostgresServer, startPostgres, waitUntil, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { lockKey } from '../../../src/index.ts'
import { createHoldfast } from '../../../src/index.ts'
import { adviceOnXmin } from '../../../src/observe/transactions.ts'
import type { TransactionReport } from '../../../src/observe/model.ts'
import { reportsOn } from '../../support/reports.ts'
import { hostileIfAsked } from '../../support/hostile-database.ts'

let server: PostgresServer
let url: string
let pool: pg.Pool

beforeAll(async () => {
  server = await startPostgres({
    settings: { max_prepared_transactions: '4', wal_level: 'logical' },
  })
  url = await hostileIfAsked(await server.createDatabase())
  pool = new pg.Pool({ connectionString: url, max: 4 })
  await pool.query('CREATE TABLE t (id int)')
})
afterAll(async () => {
  await pool.end()
  await server.stop('immediate')
})

async function look(): Promise<TransactionReport> {
  return await reportsOn(fromPg(pool)).transactions()
}

/** Makes whatever is held back older than anything that happens by itself. */
async function burn(ids = 50): Promise<void> {
  await withClient(url, async (client) => {
    for (let at = 0; at < ids; at += 1) await client.query('SELECT pg_current_xact_id()')
  })
}

async function open(application: string, begin = 'BEGIN'): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: application })
  await client.connect()
  onTestFinished(async () => await client.end())
  await client.query(begin)
  return client
}

describe('the oldest', () => {
  test('session, by its snapshot or by its transaction id; gone when it ends', async () => {
    const reader = await open('reports', 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await reader.query('SELECT 1')
    await burn()
    const seen = await look()
    const pid = await pidOf(reader)
    expect(seen.oldestXmin).toMatchObject({ by: 'session', who: 'reports', pid })
    expect(seen.oldestXmin?.age).toBeGreaterThanOrEqual(50)
    await reader.query('COMMIT')
    const writer = await open('writer')
    await writer.query('INSERT INTO t VALUES (1)')
    await burn()
    expect((await look()).oldestXmin).toMatchObject({ by: 'session', who: 'writer' })
    await writer.query('ROLLBACK')
    expect((await look()).oldestXmin?.who).not.toBe('writer')
  })

  test('prepared transaction, which has no session', async () => {
    const client = await open('two-phase')
    await client.query('INSERT INTO t VALUES (2)')
    await client.query(`PREPARE TRANSACTION 'order 7'`)
    onTestFinished(async () => void (await pool.query(`ROLLBACK PREPARED 'order 7'`)))
    await burn()
    expect((await look()).oldestXmin).toEqual({
      by: 'prepared',
      who: 'order 7',
      age: expect.any(Number),
    })
  })

  test('replication slot that nobody reads', async () => {
    await pool.query(`SELECT pg_create_logical_replication_slot('stuck', 'pgoutput')`)
    onTestFinished(async () => void (await pool.query(`SELECT pg_drop_replication_slot('stuck')`)))
    await burn()
    expect((await look()).oldestXmin).toMatchObject({ by: 'slot', who: 'stuck' })
  })

  test('standby that asks for its rows to be kept', async () => {
    await using standby = await server.standby()
    const name = new URL(url).pathname
    const there = new URL(standby.url())
    there.pathname = name
    await withClient(standby.url(), async (client) => {
      await client.query(`ALTER SYSTEM SET hot_standby_feedback = on`)
      await client.query(`ALTER SYSTEM SET wal_receiver_status_interval = '1s'`)
      await client.query('SELECT pg_reload_conf()')
    })
    await withClient(there.href, async (reader) => {
      await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await reader.query('SELECT count(*) FROM t')
      await burn()
      const seen = await waitUntil('the standby has told', async () => {
        const { oldestXmin } = await look()
        return oldestXmin?.by === 'standby' ? oldestXmin : undefined
      })
      expect(seen).toMatchObject({ who: expect.stringMatching(/./), pid: expect.any(Number) })
    })
  }, 60_000)

  test('is worth a word only when it is old', () => {
    const oldest = { by: 'slot', who: 'stuck', age: 999_999 } as const
    expect(adviceOnXmin(oldest)).toEqual([])
    expect(adviceOnXmin(undefined)).toEqual([])
    expect(adviceOnXmin({ ...oldest, age: 1_000_000 })).toMatchObject([
      { code: 'xmin-held-back', fix: expect.stringContaining('pg_drop_replication_slot') },
    ])
  })
})

test('the longest transactions come first, without our label, and wait for whom they wait', async () => {
  const hf = createHoldfast(fromPg(pool), { locks: { annotate: true } as never })
  let after = async (): Promise<void> => undefined
  await hf.guard(lockKey('cart', 7), async (tx) => {
    await tx.query('LOCK TABLE t')
    const waiter = await open('waiter')
    const waiting = waiter.query('SELECT FROM t')
    const waiterPid = await pidOf(waiter, pool)
    const seen = await waitUntil('it waits', async () => {
      const report = await look()
      const found = report.longest.find(({ pid }) => pid === waiterPid)
      return found?.blockedBy.length === 1 ? report : undefined
    })
    const holder = seen.longest[0]
    expect(holder?.pid).toBe(await pidOf(tx))
    expect(holder).toMatchObject({ state: expect.stringMatching(/^(idle in transaction|active)$/) })
    expect(seen.longest.find(({ pid }) => pid === waiterPid)).toMatchObject({
      application: 'waiter',
      blockedBy: [{ pid: holder?.pid, kind: 'hard' }],
    })
    expect((await reportsOn(fromPg(pool)).transactions({ limit: 1 })).longest).toHaveLength(1)
    // It gets the table when the guard has ended.
    after = async () => {
      await waiting
      await waiter.query('COMMIT')
    }
  })
  await after()
})

/** Of a client that is busy, as others see it. */
async function pidOf(client: pg.ClientBase, others?: pg.Pool): Promise<number> {
  if (others === undefined) {
    return (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]
      ?.pid as number
  }
  return (client as unknown as { readonly processID: number }).processID
}
