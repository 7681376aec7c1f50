import { waitUntil } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { fromPg, type PgOptions } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../packages/holdfast/src/index.ts'
import type { LockOptions } from '../../packages/holdfast/src/entries/locks.ts'
import { byHand } from '../harness/by-hand.ts'
import type { Contest, Side } from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'

interface Place {
  readonly url: string
  /** The same database through PgBouncer in transaction mode. */
  readonly pooledUrl: string
  /** Through one that keeps track of prepared statements. */
  readonly trackedUrl: string
}

/** What stands between the client and the server. */
export type Between = 'nothing' | 'PgBouncer' | 'a newer PgBouncer'

export interface LockContest {
  readonly through: Between
  open(place: Place): Promise<Contest & AsyncDisposable>
}

const workers = 16
const otherKeys = 1_000
/** As many as half the workers, so that the queue is long but the machine is not the limit. */
const queued = 8

const anyNumber = (): number => Math.floor(Math.random() * 2 ** 48)

const lockText = 'SELECT pg_advisory_xact_lock($1)'
const emptyBody = async (): Promise<void> => {}

interface Opened extends AsyncDisposable {
  readonly pool: Pool
  readonly hf: Holdfast<PoolClient>
}

/** One pool, and Holdfast on it: both sides of a contest use the same connections. */
async function open(
  url: string,
  size: number,
  { prepare, ...locks }: LockOptions & Pick<PgOptions, 'prepare'> = {},
): Promise<Opened> {
  const pool = await openPool(url, size)
  return {
    pool,
    hf: createHoldfast(fromPg(pool, prepare === undefined ? {} : { prepare }), { locks }),
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

/** A contest of two operations on one pool. */
function contest(
  name: string,
  through: Between,
  sides: (opened: Opened) => { measured: Side; baseline: Side },
  bar?: number,
): LockContest {
  return {
    through,
    async open(place) {
      const prepare = through === 'a newer PgBouncer' ? 'tracked' : 'auto'
      const opened = await open(urlOf(place, through), workers, { prepare })
      return {
        name,
        workers,
        ...sides(opened),
        ...(bar === undefined ? {} : { bar }),
        [Symbol.asyncDispose]: opened[Symbol.asyncDispose],
      }
    },
  }
}

function urlOf({ url, pooledUrl, trackedUrl }: Place, through: Between): string {
  return through === 'nothing' ? url : through === 'PgBouncer' ? pooledUrl : trackedUrl
}

const guardOne = (hf: Holdfast<PoolClient>, label: string): Side => ({
  label,
  operation: async () => await hf.guard(lockKey('bench', anyNumber()), emptyBody),
})

const bareOne = (pool: Pool, label: string): Side => ({
  label,
  operation: async () => await byHand(pool, (client) => client.query(lockText, [anyNumber()])),
})

const guardVsBare = contest(
  'guard_vs_bare',
  'nothing',
  ({ pool, hf }) => ({
    measured: guardOne(hf, 'guard, one random key'),
    baseline: bareOne(pool, 'BEGIN, SELECT pg_advisory_xact_lock($1), COMMIT'),
  }),
  0.9,
)

const guardVsBarePrepared = contest('guard_vs_bare_prepared', 'nothing', ({ pool, hf }) => ({
  measured: guardOne(hf, 'guard, one random key'),
  baseline: {
    label: 'the same by hand, the lock prepared by name',
    operation: async () =>
      await byHand(pool, (client) =>
        client.query({ name: 'bare_lock', text: lockText, values: [anyNumber()] }),
      ),
  },
}))

const guardVsBarePgBouncer = contest('guard_vs_bare_pgbouncer', 'PgBouncer', ({ pool, hf }) => ({
  measured: guardOne(hf, 'guard, one random key, through PgBouncer'),
  baseline: bareOne(pool, 'by hand, through PgBouncer'),
}))

const guardVsBareTracked = contest(
  'guard_vs_bare_pgbouncer_prepared',
  'a newer PgBouncer',
  ({ pool, hf }) => ({
    measured: guardOne(hf, "guard, one random key, prepare: 'tracked', through PgBouncer"),
    baseline: bareOne(pool, 'by hand, not prepared, through the same'),
  }),
)

const hotKey = contest('hot_key_vs_bare_hot_key', 'nothing', ({ pool, hf }) => ({
  measured: {
    label: 'guard, everyone on one key',
    operation: async () => await hf.guard(lockKey('bench', 'hot'), emptyBody),
  },
  baseline: {
    label: 'by hand, everyone on one key',
    operation: async () => await byHand(pool, (client) => client.query(lockText, [1])),
  },
}))

const tenKeys = contest('ten_keys_vs_one_by_one', 'nothing', ({ pool, hf }) => {
  const ten = (): number[] => Array.from({ length: 10 }, anyNumber)
  return {
    measured: {
      label: 'guard, ten random keys',
      operation: async () =>
        await hf.guard(
          ten().map((id) => lockKey('bench', id)),
          emptyBody,
        ),
    },
    baseline: {
      label: 'by hand, ten random keys sorted, one statement each',
      operation: async () =>
        await byHand(pool, async (client) => {
          for (const id of ten().toSorted((a, b) => a - b)) await client.query(lockText, [id])
        }),
    },
  }
})

const others: LockContest = {
  through: 'nothing',
  open: async ({ url }) => await besideQueue(url),
}

/** Guards of many keys, with and without a queue at one key that none of them wants. */
async function besideQueue(url: string): Promise<Contest & AsyncDisposable> {
  // The queue sits in the same pool, as it would in a service; both conditions have room for it.
  const opened = await open(url, workers + queued)
  const observer = await open(url, 2, { watch: false })
  const hot = lockKey('bench', 'hot')
  const operation = async (): Promise<void> => {
    const other = Math.floor(Math.random() * otherKeys)
    await opened.hf.guard(lockKey('bench-other', other), emptyBody)
  }
  const waiting = async (): Promise<number> => {
    const { rows } = await observer.pool.query<{ waiting: number }>(
      `SELECT count(*)::int AS waiting FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    return rows[0]?.waiting ?? 0
  }
  return {
    name: 'others_vs_uncontended',
    workers,
    bar: 0.9,
    measured: {
      label: `guards of ${otherKeys} keys while another is held and ${queued} wait for it`,
      operation,
      async scene() {
        // A connection outside the pool: another instance of the service.
        const holder = await observer.pool.connect()
        await holder.query('BEGIN')
        await observer.hf.locks.acquire(holder, hot)
        const queue = Array.from({ length: queued }, () =>
          // In PostgreSQL, as guards of so many processes would.
          opened.hf.guard(hot, emptyBody, { waitMs: 120_000, queue: false }),
        )
        const full = async (): Promise<true | undefined> =>
          (await waiting()) === queued ? true : undefined
        await waitUntil('everyone is in the queue', full)
        return async () => {
          if ((await full()) !== true) throw new Error('the queue did not last the slice')
          await holder.query('COMMIT')
          holder.release()
          await Promise.all(queue)
        }
      },
    },
    baseline: { label: `guards of ${otherKeys} keys, nobody waiting`, operation },
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await observer[Symbol.asyncDispose]()
    },
  }
}

export const lockContests: readonly LockContest[] = [
  guardVsBare,
  others,
  guardVsBarePrepared,
  guardVsBarePgBouncer,
  guardVsBareTracked,
  hotKey,
  tenKeys,
]
