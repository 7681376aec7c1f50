import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg, type PgOptions } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'

/** BEGIN and the lock in one round trip, prepared only where that is safe. */
const fixture = pgFixture()

interface One {
  pool: pg.Pool
  hf: Holdfast<pg.PoolClient>
  /** Query calls of the only connection: each is one round trip. */
  roundTrips(): number
}

/** A pool of one connection, so that every guard meets what the one before left there. */
function oneConnection(options?: PgOptions, config: pg.PoolConfig = {}): One {
  let calls = 0
  class CountingClient extends pg.Client {
    // oxlint-disable-next-line typescript/no-explicit-any -- pg's own overloads
    override query(...args: any[]): any {
      calls += 1
      return (super.query as (...all: unknown[]) => unknown).apply(this, args)
    }
  }
  const pool = new pg.Pool({
    connectionString: fixture.database.url,
    max: 1,
    Client: CountingClient as typeof pg.Client,
    ...config,
  })
  onTestFinished(() => pool.end())
  return { pool, hf: createHoldfast(fromPg(pool, options)), roundTrips: () => calls }
}

async function prepared({ pool }: One): Promise<string[]> {
  const { rows } = await pool.query('SELECT name FROM pg_prepared_statements ORDER BY name')
  return rows.map(({ name }) => name)
}

async function guards({ hf }: One, count = 3): Promise<string> {
  for (let n = 0; n < count; n += 1) await hf.guard(lockKey('open', n), async () => n)
  return 'all passed'
}

test('a guard with an empty body takes two round trips', async () => {
  const one = oneConnection()
  await guards(one)
  const before = one.roundTrips()
  await guards(one, 5)
  expect(one.roundTrips() - before).toBe(10)
})

test('it takes no third one where many share few backends, as they do behind a pooler', async () => {
  const one = oneConnection({}, { max: 8 })
  const many = (): Promise<unknown> =>
    Promise.all(
      Array.from({ length: 200 }, (_, n) => one.hf.guard(lockKey('many', n), async () => n)),
    )
  await many()
  const before = one.roundTrips()
  await many()
  expect(one.roundTrips() - before).toBe(400)
})

describe('prepared statements', () => {
  test('are kept on a direct connection and never behind a pooler', async () => {
    const one = oneConnection()
    await guards(one)
    expect(await prepared(one)).toEqual(
      fixture.database.throughPooler
        ? []
        : ['holdfast_open_BEGIN', expect.stringMatching(/^holdfast_open_lock_[0-9a-f]{12}$/)],
    )
  })

  test('can be switched off', async () => {
    const one = oneConnection({ prepare: 'never' })
    await guards(one)
    expect(await prepared(one)).toEqual([])
  })

  test('may be dropped behind our back', async () => {
    const one = oneConnection()
    await guards(one)
    await one.pool.query('DISCARD ALL')
    expect(await guards(one)).toBe('all passed')
    await one.pool.query('DEALLOCATE ALL')
    expect(await guards(one)).toBe('all passed')
  })

  test('survive a lock that timed out on first use', async () => {
    const holder = await callerTransaction(fixture)
    const one = oneConnection()
    await guards(one, 1)
    await fixture.hf.locks.acquire(holder, lockKey('open', 'held'))
    const key = lockKey('open', 'held')
    for (let n = 0; n < 2; n += 1) {
      await expect(one.hf.guard(key, async () => 'in', { waitMs: 20 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
      })
    }
    await guards(one)
  })
})

test('values of any script and length arrive as they are', async () => {
  const one = oneConnection()
  for (const part of ['é', '日本語', 'x'.repeat(5_000), '\' " \\ \u0001']) {
    const held = one.hf.guard(lockKey('open', part), (tx) =>
      one.hf.locks.assertHeld(tx, lockKey('open', part)),
    )
    await expect(held).resolves.toBeUndefined()
  }
})

test("pg's own read timeout still ends a wait", async () => {
  const key = lockKey('open', 'read timeout')
  const holder = await callerTransaction(fixture)
  await fixture.hf.locks.acquire(holder, key)
  const one = oneConnection({}, { query_timeout: 100 })
  await expect(one.hf.guard(key, async () => 'in')).rejects.toThrow('Query read timeout')
})
