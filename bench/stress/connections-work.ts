import { randomUUID } from 'node:crypto'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import type { Random } from '../harness/random.ts'

/** Few enough to be contested, and their limits small enough to be reached. */
export const keys = 20
/** Of key number `key`, for quotas and rooms: some are full soon, some late. */
export const limitOf = (key: number): number => 3 * (key + 1)
export const books = { quota: 'calls', holds: 'tokens', stock: 'shop' } as const
/** Of every article at the beginning, and of every key whose amounts are put aside. */
export const opening = 500
const leaseNames = 100
/** Longer than anybody waits in the queue: here nobody is to lose what is held. */
const patience = '30 min'

/** The user's own tables. */
export const tables = `
  CREATE TABLE room (key int NOT NULL, guest uuid NOT NULL);
  CREATE INDEX ON room (key);
  CREATE TABLE hook (key text NOT NULL, answer uuid NOT NULL);
  CREATE TABLE ticked (name text NOT NULL, at timestamptz NOT NULL);
  CREATE TABLE written (seq bigserial PRIMARY KEY, lease text NOT NULL, token bigint NOT NULL);
  CREATE TABLE sent (task bigint NOT NULL);
  CREATE TABLE task (
    id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'pending', claim_token uuid, lease_until timestamptz);
  CREATE INDEX ON task (id) WHERE status = 'pending';
  INSERT INTO task (id) SELECT generate_series(1, 200000);
  ANALYZE task;`

/** Adds one, or `amount`, to what was told to the callers: `quota asked`, of a key. */
export type Count = (what: string, key: string | number, amount?: number) => void

/** One operation of a client. */
type Work = (random: Random, id: string) => Promise<void>

/**
 * What a client does, again and again: every workload by one client in eight. Not guarded, the check of the
 * user's own table is made without its lock, for the control.
 */
export function workOf(client: number, pool: Pool, guarded: boolean, count: Count): Work {
  // Not prepared, also not after a look at who answers: one visit is to be one wait in the queue.
  const hf = createHoldfast(fromPg(pool, { prepare: 'never' }))
  const works: (() => Work)[] = [
    () => {
      const limit = (key: string): number => limitOf(Number(key))
      const quota = hf.quota({ name: books.quota, limit, per: 'lifetime' })
      return async (random, operationId) => {
        const key = String(random.integer(0, keys - 1))
        count('quota asked', key)
        if ((await quota.consume(key, 1, { operationId })).ok) count('quota ok', key)
      }
    },
    () => {
      const tokens = hf.quota({ name: books.holds, limit: opening, per: 'lifetime' })
      return async (random, operationId) => {
        const key = String(random.integer(0, keys - 1))
        const held = await tokens.hold(key, 3, { operationId, ttl: patience })
        const holdId = held.ok ? held.holdId : undefined
        if (holdId === undefined) return
        const used = random.integer(0, 3)
        const ended = await (used === 0 ? tokens.release(holdId) : tokens.settle(holdId, used))
        if (!ended.ok) throw new Error(`a hold could not be ended: ${ended.reason}`)
        count('holds used', key, used)
      }
    },
    () => {
      const stock = hf.stock({ name: books.stock })
      return async (random, externalId) => {
        const skus = random.sample([...Array(keys).keys()], 3)
        const lines = skus.map((sku) => ({ sku: String(sku), quantity: random.integer(1, 2) }))
        if (!(await stock.issue(lines, { externalId })).ok) return
        for (const { sku, quantity } of lines) count('stock issued', sku, quantity)
      }
    },
    () => async (random) => {
      const key = random.integer(0, keys - 1)
      const moveIn = async (tx: PoolClient): Promise<boolean> => {
        const { rows } = await tx.query<{ guests: number }>(
          'SELECT count(*)::int AS guests FROM room WHERE key = $1',
          [key],
        )
        if ((rows[0]?.guests ?? 0) >= limitOf(key)) return false
        await tx.query('INSERT INTO room VALUES ($1, $2)', [key, randomUUID()])
        return true
      }
      count('room asked', key)
      const room = lockKey('connections-room', key)
      const options = { waitMs: 60_000 }
      const isIn = await (guarded ? hf.guard(room, moveIn, options) : hf.transaction(moveIn))
      if (isIn) count('room ok', key)
    },
    () => async (random) => {
      const key = `hook-${random.integer(0, 499)}`
      const { result } = await hf.once(
        key,
        async (tx) => {
          const answer = randomUUID()
          await tx.query('INSERT INTO hook VALUES ($1, $2)', [key, answer])
          return answer
        },
        { wait: '60 s' },
      )
      count(`once ${key}`, result)
    },
    () => {
      const tasks = hf.claims<{ id: string }>({ table: 'task', lease: patience })
      return async () => {
        const [claim] = await tasks.claim(1)
        if (claim === undefined) throw new Error('there are no tasks left')
        await hf.transaction(async (tx) => {
          await tx.query('INSERT INTO sent VALUES ($1)', [claim.row.id])
          await tasks.complete(tx, claim)
        })
        count('claims done', 'all')
      }
    },
    () => async (random) => {
      const name = `lease-${random.integer(0, leaseNames - 1)}`
      const lease = await hf.leases.tryAcquire(name, { ttl: patience, renew: false })
      if (lease === undefined) return
      await hf.transaction(async (tx) => {
        await lease.guard(tx)
        await tx.query('INSERT INTO written (lease, token) VALUES ($1, $2)', [
          name,
          String(lease.token),
        ])
      })
      count('leases written', name)
      await lease.release()
    },
    () => {
      const name = `schedule-${Math.floor(client / works.length) % keys}`
      const schedule = hf.schedule({
        name,
        guarantee: 'transactional',
        handler: async (tx, { at }) => {
          await tx.query('INSERT INTO ticked VALUES ($1, $2)', [name, at])
        },
      })
      return async () => {
        // Clients of one name mean the same second, and it is taken by one of them.
        const { outcome } = await schedule.fireAt(Math.floor(Date.now() / 1_000) * 1_000)
        if (outcome === 'done') count('ticks done', name)
        count('tick outcomes', outcome)
      }
    },
  ]
  return (works[client % works.length] as () => Work)()
}
