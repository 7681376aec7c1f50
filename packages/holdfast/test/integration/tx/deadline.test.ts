import { waitUntil } from '@holdfast/testkit'
import { PrismaPg } from '@prisma/adapter-pg'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { PrismaClient } from '../../conformance/prisma/generated/client.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { inTime } from '../../support/in-time.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

/** S4: a deadline is a limit of the server's, and its last resort needs no connection of the pool. */
const fixture = pgFixture()

/** Those that show their pool, as users are told to do. */
const onPools: typeof everyClient = {
  async 'prisma on a pool'(url) {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
    const end = async (): Promise<void> => {
      await prisma.$disconnect()
      await pool.end()
    }
    return { driver: fromPrisma(prisma) as Driver<unknown>, end }
  },
  async 'kysely with its pool'(url) {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
    return { driver: fromKysely(db, { pool }) as Driver<unknown>, end: () => db.destroy() }
  },
}

/** Their connections are out of reach: they have the server's limit, and no last resort. */
const hidden = ['prisma', 'kysely in camel case']

const poolSize = 4
const deadline = 300
/** Late by a busy machine, and far from what the statements would take. */
const soonMs = 2_000

describe.each(Object.entries({ ...everyClient, ...onPools }))('S4: %s', (name, open) => {
  let client: OpenClient
  let hf: Holdfast<unknown>
  beforeAll(async () => {
    client = await open(fixture.database.url)
    hf = createHoldfast(client.driver, { locks: { watch: false } })
  })
  afterAll(async () => {
    await client.end()
  })

  const run = async (tx: unknown, text: string): Promise<unknown> =>
    (await client.driver.join(tx).query({ text, values: [] }))[0]?.['answer']
  const sleep = (tx: unknown, s: number): Promise<unknown> =>
    run(tx, `SELECT 'S4'::text AS answer FROM pg_sleep(${s})`)

  /** So many at once, and what each of them ended with. */
  const atOnce = async (
    count: number,
    body: (tx: unknown) => Promise<unknown>,
    options: object,
  ): Promise<unknown[]> => {
    const began = performance.now()
    const runs = Array.from({ length: count }, () =>
      hf.tx.run(body, { retry: false, ...options }).then(
        () => 'done',
        (error: unknown) => error,
      ),
    )
    const ended = await Promise.all(runs)
    inTime(performance.now() - began, soonMs)
    await waitUntil('nothing is left', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
           AND pid <> pg_backend_pid() AND query LIKE '%S4%'`,
      )
      return rows.length === 0 || undefined
    })
    return ended
  }

  test('with all connections in use every statement ends with its deadline', async () => {
    const ended = await atOnce(2 * poolSize, (tx) => sleep(tx, 20), { deadline })
    for (const error of ended) expect(error).toMatchObject({ code: 'TX_DEADLINE' })
  })

  test('a guard that waits for its lock does too', async () => {
    const key = lockKey('S4', name)
    const holder = await fixture.observer.connect()
    onTestFinished(() => holder.release(true))
    await holder.query('BEGIN')
    await createHoldfast(fromPg(fixture.observer)).locks.acquire(holder, key)
    const guarded = hf.guard(key, async () => 'in', { deadline, wait: '20 s' })
    // On Prisma the wait ends before Prisma's own timer, which the deadline sets.
    const code =
      client.driver.name === 'prisma' ? /^(?:TX_DEADLINE|LOCK_TIMEOUT)$/ : /^TX_DEADLINE$/
    await expect(guarded).rejects.toMatchObject({ code: expect.stringMatching(code) })
  })

  test('a later statement, with another limit, is cancelled', async () => {
    if (hidden.includes(name)) return
    const body = async (tx: unknown): Promise<void> => {
      await sleep(tx, 0.05)
      await run(tx, "SELECT set_config('statement_timeout', '0', true) AS answer")
      await sleep(tx, 20)
    }
    for (const error of await atOnce(poolSize, body, { deadline }))
      expect(error).toMatchObject({ code: 'TX_DEADLINE' })
  })

  test('an abort ends it as well, in whichever of its statements it is', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    const body = async (tx: unknown): Promise<void> => {
      await sleep(tx, 0.05)
      stop.abort(reason)
      await sleep(tx, 20)
    }
    const count = hidden.includes(name) ? 1 : poolSize
    const ended = await atOnce(count, body, { signal: stop.signal })
    expect(ended).toEqual(ended.map(() => reason))
  })

  test('nothing of it is left on the connections', async () => {
    const shown = await Promise.all(
      Array.from({ length: poolSize }, () =>
        hf.tx.run(async (tx) => {
          await sleep(tx, 0.05)
          return await run(tx, "SELECT current_setting('statement_timeout') AS answer")
        }),
      ),
    )
    expect(shown).toEqual(shown.map(() => '0'))
  })
})

const poolOf = (max: number, options: pg.PoolConfig = {}): Holdfast<pg.PoolClient> => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max, ...options })
  onTestFinished(async () => await pool.end())
  return createHoldfast(fromPg(pool), { locks: { watch: false } })
}

test('S4: a shorter statement_timeout of the connection stays, and ends as it always does', async () => {
  const hf = poolOf(1)
  const ended = hf.tx.run(
    async (tx) => {
      await tx.query('SET LOCAL statement_timeout = 100')
      await tx.query('SELECT pg_sleep(20)')
    },
    { deadline: '1 min' },
  )
  await expect(ended).rejects.toMatchObject({ code: '57014' })
})

test('S4: what gets its connection too late to end in time is not begun', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  onTestFinished(async () => await pool.end())
  const hf = createHoldfast(fromPg(pool))
  const body = async (tx: pg.PoolClient): Promise<string> => {
    await tx.query('SELECT pg_sleep(0.3)')
    return 'done'
  }
  expect(await hf.tx.run(body, { deadline: 1_000 })).toBe('done')
  const only = await pool.connect()
  const began: number[] = []
  const run = hf.tx.run(
    async (tx, { remainingMs }) => {
      began.push(remainingMs() as number)
      return await body(tx)
    },
    { deadline: 1_000 },
  )
  const ended = run.catch((error: unknown) => error)
  // 200 ms before its deadline, when it needs 300.
  setTimeout(() => only.release(), 800)
  expect(await ended).toMatchObject({
    code: 'TX_DEADLINE',
    details: { subject: expect.stringContaining('not begun') },
  })
  expect(began).toEqual([])
  // Who gets one at once is begun, whatever was usual.
  expect(await hf.tx.run(body, { deadline: 1_000 })).toBe('done')
})

test('S4: after one that was slow, quick ones that have to wait are soon begun again', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  onTestFinished(async () => await pool.end())
  const hf = createHoldfast(fromPg(pool))
  const slow = hf.tx.run((tx) => tx.query('SELECT pg_sleep(5)'), { deadline: 300 })
  await expect(slow).rejects.toMatchObject({ code: 'TX_DEADLINE' })
  let begun = false
  for (let time = 0; time < 20 && !begun; time += 1) {
    const only = await pool.connect()
    const quick = hf.tx.run((tx) => tx.query('SELECT 1'), { deadline: 300 })
    const ended = quick.then(
      () => (begun = true),
      (error: unknown) => error,
    )
    setTimeout(() => only.release(), 100)
    const end = await ended
    if (end === true) continue
    const [, needMs] = /(\d+) ms before its end/.exec(
      String((end as HoldfastError).details['subject']),
    ) as unknown as [string, string]
    expect(Number(needMs)).toBeLessThanOrEqual(300)
  }
  expect(begun).toBe(true)
})

test('S4: with too much to do, deadlines do not make less of it done', async () => {
  const hf = poolOf(3)
  // Six times as many callers as connections: whoever waits for its turn has 100 ms left when it comes, or less.
  const doneWithin = async (ms: number, options: object): Promise<number> => {
    let done = 0
    const until = performance.now() + ms
    const caller = async (): Promise<void> => {
      while (performance.now() < until) {
        await hf.tx
          .run(async (tx) => await tx.query('SELECT pg_sleep(0.1)'), options)
          .then(
            () => (done += performance.now() < until ? 1 : 0),
            (error: unknown) => expect(error).toMatchObject({ code: 'TX_DEADLINE' }),
          )
      }
    }
    await Promise.all(Array.from({ length: 18 }, caller))
    return done
  }
  const before = await doneWithin(600, {})
  const limited = await doneWithin(1_200, { deadline: 330 })
  const after = await doneWithin(600, {})
  // Where 100 ms take much longer even without deadlines, the machine is what they are missed by.
  inTime((3 * 600) / Math.min(before, after), 140)
  expect(limited).toBeGreaterThan(0.7 * (before + after))
})
