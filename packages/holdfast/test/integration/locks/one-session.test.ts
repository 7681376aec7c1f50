import { deferred } from '@holdfast/testkit'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import type { PgPool } from '../../../src/drivers/pg/pg-pool.ts'

/**
 * Pools with one connection that everybody gets, on a real server. Both guards would be in: the session has the lock
 * already. The second one is refused before its body runs.
 */
const fixture = pgFixture('CREATE TABLE note (words text)')
let client: pg.Client
let pid: number

beforeAll(async () => {
  client = new pg.Client(fixture.database.directUrl)
  await client.connect()
  pid = (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0
})
afterAll(() => client.end())

/** What it is sent may wait for something. */
type Gate = (text: string) => Promise<void> | undefined

const passing: Gate = () => undefined

/** Hands out the one client, itself or as somebody that looks new. */
function poolOfOne(isDisguised: boolean, gate: Gate = passing): PgPool & { end(): Promise<void> } {
  return {
    connect: async () => {
      const given = new Proxy(client as unknown as pg.PoolClient, {
        get(target, name) {
          if (name === 'release') return () => undefined
          const value: unknown = Reflect.get(target, name)
          if (name !== 'query' || !isDisguised) return value
          return async (...args: unknown[]) => {
            const [first] = args as [string | { text: string }]
            await gate(typeof first === 'string' ? first : first.text)
            return await (target.query as (...all: unknown[]) => unknown)(...args)
          }
        },
      })
      return isDisguised ? given : (Object.assign(client, { release: () => undefined }) as never)
    },
    end: async () => undefined,
  }
}

const onKysely = (pool: object): Driver<unknown> =>
  fromKysely(new Kysely<unknown>({ dialect: new PostgresDialect({ pool: pool as pg.Pool }) }))

describe.each<readonly [name: string, driverOn: (pool: PgPool) => Driver<unknown>]>([
  ['pg', (pool) => fromPg(pool) as Driver<unknown>],
  ['kysely', onKysely],
])('U7: %s over one session', (name, driverOn) => {
  test.each([false, true])('refuses the second guard, disguised: %s', async (isDisguised) => {
    const hf = createHoldfast(driverOn(poolOfOne(isDisguised)))
    const [inside, leave] = [deferred<void>(), deferred<void>()]
    const key = lockKey('one-session', name, String(isDisguised))
    const first = hf.guard(key, async () => {
      inside.resolve()
      await leave.promise
    })
    first.catch(() => undefined)
    await inside.promise
    const second = hf.guard(key, () => expect.unreachable(), { queue: false })
    // Where Kysely knows the connection, the leash of the first one stops BEGIN of the second.
    const isStopped = name === 'kysely' && !isDisguised
    const code = isStopped ? 'TX_NESTED' : 'TX_SESSION_SHARED'
    await expect(second).rejects.toMatchObject({ code })
    leave.resolve()
    // On pg nothing was sent for the second. Elsewhere the first cannot go on either, and is told.
    if (name === 'pg') await first
    else
      await expect(first).rejects.toMatchObject({
        code: isStopped ? 'TX_NESTED' : 'TX_ENDED_INSIDE',
      })
  })
})

test('U7: refuses one whose transaction was ended by the COMMIT of another', async () => {
  const [asked, committed] = [deferred<void>(), deferred<void>()]
  let isSecond = false
  const gate: Gate = async (text) => {
    if (!isSecond || !text.includes('advisory')) return
    asked.resolve()
    await committed.promise
  }
  const hf = createHoldfast(onKysely(poolOfOne(true, gate)))
  const [inside, leave] = [deferred<void>(), deferred<void>()]
  const first = hf.guard(lockKey('one-session', 'first'), async () => {
    inside.resolve()
    await leave.promise
    return 'saved'
  })
  await inside.promise
  isSecond = true
  const second = hf.guard(lockKey('one-session', 'second'), () => expect.unreachable())
  second.catch(() => undefined)
  await asked.promise
  leave.resolve()
  await expect(first).resolves.toBe('saved')
  committed.resolve()
  await expect(second).rejects.toMatchObject({ code: 'TX_SESSION_SHARED' })
})

test('control: without Holdfast both are in the one transaction', async () => {
  const db = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: poolOfOne(true) as never }),
  })
  const seen: unknown[] = []
  const [both, leave] = [deferred<void>(), deferred<void>()]
  const run = (): Promise<void> =>
    db.transaction().execute(async (tx) => {
      const { rows } = await tx.executeQuery<{ pid: number }>(
        (await import('kysely')).sql<{ pid: number }>`
          SELECT pg_backend_pid() AS pid FROM pg_advisory_xact_lock(7)`.compile(tx),
      )
      seen.push(rows[0]?.pid)
      if (seen.length === 2) both.resolve()
      await leave.promise
    })
  const runs = [run(), run()]
  await both.promise
  leave.resolve()
  await Promise.allSettled(runs)
  expect(seen).toEqual([pid, pid])
})

test('one after the other is no sharing: many guards, few connections, many keys', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 3 })
  try {
    for (const driver of [fromPg(pool), onKysely(pool)] as Driver<unknown>[]) {
      const hf = createHoldfast(driver, { wait: '20 s' })
      const runs = Array.from({ length: 60 }, (_, at) =>
        hf.guard(lockKey('sole', at % 7), async () => at),
      )
      expect(await Promise.all(runs)).toEqual(Array.from({ length: 60 }, (_, at) => at))
    }
  } finally {
    await pool.end()
  }
})
