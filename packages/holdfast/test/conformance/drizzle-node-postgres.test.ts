import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { pgTable, integer, text } from 'drizzle-orm/pg-core'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Row } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { type DrizzleTransactionOf, fromDrizzle } from '../../src/drivers/drizzle.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { isOlder } from '../support/installed-version.ts'
import { OpenPortal } from '../support/open-portal.ts'
import type { Harness } from './suite/harness.ts'

const account = pgTable('account', { id: text().primaryKey(), balance: integer().notNull() })
const schema = { account }
type Tx = DrizzleTransactionOf<NodePgDatabase<typeof schema>>

async function open(url: string): Promise<Harness<Tx>> {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  pool.on('error', () => undefined)
  const db = drizzle({ client: pool, schema })
  return {
    driver: fromDrizzle(db, sql),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { cause: { code: string } }) => error.cause.code,
    driverOn: (tx) => fromDrizzle(tx, sql),
    run: async (handle, statement) => (await handle.execute<Row>(sql.raw(statement))).rows,
    unsent: (handle, statement) => handle.execute(sql.raw(statement)),
    own: async (body, isolationLevel) =>
      await db.transaction(body, isolationLevel === undefined ? undefined : { isolationLevel }),
    savepoint: async (tx, body) => await tx.transaction(body),
    async leaveOpen(tx) {
      const { client } = (tx as unknown as { session: { client: pg.PoolClient } }).session
      await client.query(new OpenPortal()).read()
    },
    lookAlikes: {
      'the root database': async (use) => await use(db as unknown as Tx),
      'a database on one client': async (use) => {
        const client = await pool.connect()
        try {
          await use(drizzle({ client, schema }) as unknown as Tx)
        } finally {
          client.release()
        }
      },
    },
    end: async () => await pool.end(),
  }
}

const at = exerciseDriver('Drizzle on node-postgres', open, [
  'the root database',
  'a database on one client',
])

describe('only Drizzle on node-postgres', () => {
  test('a database on a client with a transaction by hand takes locks', async () => {
    const pool = new pg.Pool({ connectionString: at.url, max: 1 })
    const client = await pool.connect()
    await client.query('BEGIN')
    const db = drizzle({ client, schema }) as unknown as Tx
    const key = lockKey('drizzle', 1)
    expect(at.harness.driver.join(db).state()).toBe('open')
    await at.locks.acquire(db, key)
    await at.locks.assertHeld(db, key)
    await client.query('ROLLBACK')
    expect(at.harness.driver.join(db).state()).toBe('none')
    client.release()
    await pool.end()
  })

  test('control: before 1.0 Drizzle never gives back a client whose BEGIN failed', async () => {
    const isOld = isOlder('drizzle-orm', '1.0.0')
    const pool = new pg.Pool({ connectionString: at.url, max: 1 })
    const clients: pg.PoolClient[] = []
    pool.on('acquire', (client) => void clients.push(client))
    const isolationLevel = 'no such level' as 'serializable'
    const opened = drizzle({ client: pool }).transaction(async () => await Promise.resolve(), {
      isolationLevel,
    })
    await expect(opened).rejects.toThrow('begin isolation level')
    expect([pool.totalCount, pool.idleCount]).toEqual([1, isOld ? 0 : 1])
    if (isOld) clients[0]?.release()
    await pool.end()
  })

  test('listens to the client it uses only in transactions of ours', async () => {
    const pool = new pg.Pool({ connectionString: at.url, max: 1 })
    const listeners: number[] = []
    const db = drizzle({ client: pool })
    let used: pg.PoolClient | undefined
    pool.on('acquire', (client) => {
      used = client
    })
    const count = async (): Promise<void> => {
      listeners.push(used?.listenerCount('error') ?? -1)
      await Promise.resolve()
    }
    await db.transaction(count)
    await fromDrizzle(db, sql).transaction(count, { scopes: [] })
    await pool.end()
    // Drizzle 1.0 has one of its own.
    const own = isOlder('drizzle-orm', '1.0.0') ? 0 : 1
    expect(listeners).toEqual([own, own + 1])
  })

  test('tx.rollback() in the body comes out as it is', async () => {
    const id = await at.account(1)
    const rolledBack = at.harness.driver.transaction(
      async ({ native }) => {
        await native.update(account).set({ balance: 2 })
        native.rollback()
      },
      { scopes: [] },
    )
    await expect(rolledBack).rejects.toMatchObject({ message: 'Rollback' })
    expect(await at.balance(id)).toBe(1)
  })
})
