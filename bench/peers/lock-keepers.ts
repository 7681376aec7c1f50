import { withClient } from '@holdfast/testkit'
import { Redis } from 'ioredis'
import type { Pool, PoolClient } from 'pg'
import Redlock from 'redlock'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'

/** Read a balance, check it, write it: the same for everybody, kept apart by whoever keeps it. */
export interface Keeper extends AsyncDisposable {
  /** Takes one from a wallet, if there is one. `between` runs after the check and before the write. */
  spend(wallet: string, between?: () => Promise<void>): Promise<boolean>
}

/** Where wallets and locks are. */
export interface LockPlaces {
  readonly url: string
  readonly redisPort: number
}

export interface KeeperTerms {
  readonly connections: number
  /** After how long a lock or lease ends that nobody renews. */
  readonly ttlMs: number
  /** How long those who ask again and again pause. */
  readonly pauseMs: number
}

type OpenKeeper = (places: LockPlaces, terms: KeeperTerms) => Promise<Keeper>

/** Nobody gives up: a call that was not made would look like a fast one. */
const longest = '10 min'

type Client = Pick<Pool | PoolClient, 'query'>

async function balanceOf(client: Client, wallet: string): Promise<number> {
  const { rows } = await client.query<{ balance: number }>(
    'SELECT balance FROM wallet WHERE name = $1',
    [wallet],
  )
  return rows[0]?.balance ?? 0
}

async function write(client: Client, wallet: string, balance: number): Promise<void> {
  await client.query('UPDATE wallet SET balance = $2 WHERE name = $1', [wallet, balance])
}

async function guarded(url: string, connections: number): Promise<Keeper> {
  const pool = await openPool(url, connections)
  const hf = createHoldfast(fromPg(pool))
  return {
    spend: async (wallet, between) =>
      await hf.guard(
        lockKey('wallet', wallet),
        async (tx) => {
          const balance = await balanceOf(tx, wallet)
          if (balance < 1) return false
          await between?.()
          await write(tx, wallet, balance - 1)
          return true
        },
        { wait: longest },
      ),
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

async function leased(url: string, terms: KeeperTerms, isFenced: boolean): Promise<Keeper> {
  const { connections, ttlMs, pauseMs } = terms
  const pool = await openPool(url, connections)
  const hf = createHoldfast(fromPg(pool))
  return {
    async spend(wallet, between) {
      const lease = await hf.leases.acquire(wallet, {
        ttl: ttlMs,
        retryEvery: pauseMs,
        wait: longest,
      })
      try {
        const balance = await balanceOf(pool, wallet)
        if (balance < 1) return false
        await between?.()
        if (!isFenced) await write(pool, wallet, balance - 1)
        else {
          await hf.transaction(async (tx) => {
            await lease.guard(tx)
            await write(tx, wallet, balance - 1)
            await lease.release(tx)
          })
        }
        return true
      } finally {
        await lease.release()
      }
    },
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

/** Each beside the others, on the same table and by the same client. */
export const keepers = {
  guard: async ({ url }, { connections }) => await guarded(url, connections),
  /** As docs/leases.md has it for processes that stand still. */
  'guard, idle transactions end': async ({ url }, { connections, ttlMs }) =>
    await guarded(
      `${url}${url.includes('?') ? '&' : '?'}options=-c%20idle_in_transaction_session_timeout%3D${ttlMs}`,
      connections,
    ),
  'lease with fence': async ({ url }, terms) => await leased(url, terms, true),
  redlock: async ({ url, redisPort }, { connections, ttlMs, pauseMs }) => {
    const pool = await openPool(url, connections)
    const redis = new Redis({ host: '127.0.0.1', port: redisPort })
    // Its types know another client; its documentation names ioredis.
    const redlock = new Redlock([redis as unknown as Redlock.CompatibleRedisClient], {
      retryCount: -1,
      retryDelay: pauseMs,
      retryJitter: pauseMs / 2,
    })
    return {
      async spend(wallet, between) {
        const lock = await redlock.acquire(`wallet:${wallet}`, ttlMs)
        try {
          const balance = await balanceOf(pool, wallet)
          if (balance < 1) return false
          await between?.()
          await write(pool, wallet, balance - 1)
          return true
        } finally {
          // It rejects if the lock has ended before; what was written is written.
          await lock.unlock().catch(() => undefined)
        }
      },
      async [Symbol.asyncDispose]() {
        await redis.quit()
        await pool.end()
      },
    }
  },
  /** What a lease is without its fence: the same as any lock that ends by itself. */
  'lease without fence': async ({ url }, terms) => await leased(url, terms, false),
  'no lock': async ({ url }, { connections }) => {
    const pool = await openPool(url, connections)
    return {
      async spend(wallet, between) {
        const balance = await balanceOf(pool, wallet)
        if (balance < 1) return false
        await between?.()
        await write(pool, wallet, balance - 1)
        return true
      },
      [Symbol.asyncDispose]: async () => await pool.end(),
    }
  },
} as const satisfies Record<string, OpenKeeper>

export type KeeperName = keyof typeof keepers

export async function installWallets(url: string): Promise<void> {
  const pool = await openPool(url, 1)
  await migrate(fromPg(pool))
  await pool.end()
  await withClient(url, async (client) => {
    await client.query(
      'CREATE TABLE wallet (name text PRIMARY KEY, balance integer NOT NULL) WITH (fillfactor = 50)',
    )
  })
}

/** Wallets with so much in each. */
export async function fillWallets(
  url: string,
  names: readonly string[],
  balance: number,
): Promise<void> {
  await withClient(url, async (client) => {
    await client.query('INSERT INTO wallet SELECT unnest($1::text[]), $2', [names, balance])
    await client.query('VACUUM ANALYZE wallet')
  })
}

export async function leftIn(url: string, wallet: string): Promise<number> {
  return await withClient(url, async (client) => await balanceOf(client, wallet))
}
