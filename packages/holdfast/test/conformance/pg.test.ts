import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Isolation } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { OpenPortal } from '../support/open-portal.ts'
import type { Harness } from './suite/harness.ts'
import type { PgPool } from '../../src/drivers/pg/pg-pool.ts'

/** Since 8.21 a client says whether its transaction is open; before, the server is asked. */
const tells = 'getTransactionStatus' in pg.Client.prototype

async function open(url: string): Promise<Harness<pg.PoolClient>> {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  // Every program with a pool needs this one: an idle client whose backend is killed.
  pool.on('error', () => undefined)
  const own = async <T>(
    body: (tx: pg.PoolClient) => Promise<T>,
    isolation: Isolation = 'read committed',
  ): Promise<T> => {
    const client = await pool.connect()
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`)
      const result = await body(client)
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
  return {
    driver: fromPg(pool),
    facts: {
      silentRollback: true,
      openState: tells ? 'open' : 'unknown',
      ...(!tells && { ownState: 'unknown' as const }),
      killedState: '57P01',
      savepoints: { isCounted: false },
      roundTrips: { guard: 2, acquire: tells ? 1 : 2 },
    },
    sqlStateAt: (error: { code: string }) => error.code,
    driverOn: (tx) => fromPg(tx as unknown as PgPool),
    run: async (handle, text) => (await handle.query<Record<string, unknown>>(text)).rows,
    own,
    async savepoint(tx, body) {
      await tx.query('SAVEPOINT mine')
      try {
        await body(tx)
      } catch (error) {
        await tx.query('ROLLBACK TO SAVEPOINT mine')
        throw error
      }
      await tx.query('RELEASE SAVEPOINT mine')
    },
    leaveOpen: async (tx) => void (await tx.query(new OpenPortal()).read()),
    lookAlikes: {
      'the pool': async (use) => await use(pool as unknown as pg.PoolClient),
      'a client of the pool': async (use) => {
        const client = await pool.connect()
        try {
          await use(client)
        } finally {
          client.release()
        }
      },
      'a client whose transaction has ended': async (use) => {
        const client = await pool.connect()
        try {
          await client.query('BEGIN')
          await client.query('COMMIT')
          await use(client)
        } finally {
          client.release()
        }
      },
    },
    end: async () => await pool.end(),
  }
}

const at = exerciseDriver('pg', open, [
  'the pool',
  'a client of the pool',
  'a client whose transaction has ended',
])

describe('only pg', () => {
  test.runIf(tells)(
    'does not answer for a transaction while a statement is under way',
    async () => {
      await at.harness.own(async (tx) => {
        const { state } = at.harness.driver.join(tx)
        expect(state()).toBe('open')
        const running = tx.query('SELECT 1')
        expect(state()).toBe('unknown')
        await running
        expect(state()).toBe('open')
      })
      expect.assertions(3)
    },
  )

  test('is taken at its word if BEGIN is not awaited', async () => {
    const pool = new pg.Pool({ connectionString: at.url, max: 1 })
    const client = await pool.connect()
    void client.query('BEGIN')
    await at.locks.acquire(client, lockKey('pg', 1))
    await expect(at.locks.assertHeld(client, lockKey('pg', 1))).resolves.toBeUndefined()
    await client.query('ROLLBACK')
    client.release()
    await pool.end()
  })
})
