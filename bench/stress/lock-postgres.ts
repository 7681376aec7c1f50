import type { PoolClient } from 'pg'
import { sqlStateOf } from '../../packages/holdfast/src/core/sql-state.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { deadlocksIn } from '../harness/deadlocks-in.ts'
import { openPool } from '../harness/open-pool.ts'
import type { LockStore } from './lock-store.ts'

const deadlock = '40P01'

export async function postgresLockStore(url: string, size: number): Promise<LockStore<PoolClient>> {
  const pool = await openPool(url, size)
  const hf = createHoldfast(fromPg(pool))
  const end = async (): Promise<void> => {
    if (!pool.ending) await pool.end()
  }
  return {
    exclusions: ['none'],
    async prepare() {
      await pool.query('CREATE TABLE room (round int NOT NULL, taker text NOT NULL)')
      await pool.query('CREATE INDEX ON room (round)')
    },
    guard: async (keys, body, options) => await hf.guard(keys, body, options),
    transaction: async (body) => await hf.transaction(body),
    async takers(tx, round) {
      const { rows } = await tx.query<{ takers: number }>(
        'SELECT count(*)::int AS takers FROM room WHERE round = $1',
        [round],
      )
      return rows[0]?.takers ?? 0
    },
    async moveIn(tx, round, taker) {
      await tx.query('INSERT INTO room VALUES ($1, $2)', [round, taker])
    },
    async overfull() {
      const { rows } = await pool.query<{ round: number; takers: number }>(
        'SELECT round, count(*)::int AS takers FROM room GROUP BY round HAVING count(*) <> 1',
      )
      return rows
    },
    async linger(tx) {
      await tx.query('SELECT 1')
    },
    async takeInOrder(keys) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        for (const key of keys) {
          const { lock } = lockKey('stress-order', key)
          if (lock.kind !== 'bigint') throw new Error('keys of ours are numbers')
          await client.query('SELECT pg_advisory_xact_lock($1)', [lock.id])
        }
        await client.query('COMMIT')
        return false
      } catch (error) {
        if (sqlStateOf(error) !== deadlock) throw error
        await client.query('ROLLBACK')
        return true
      } finally {
        client.release()
      }
    },
    async deadlocks() {
      await end()
      return await deadlocksIn(url)
    },
    [Symbol.asyncDispose]: end,
  }
}
