/**
 * Our other examples are hunted from data far from their limits: each way by hand is proven to race, and with Holdfast each
 * pair is refuted. `upload-quota` has a test of its own.
 */
import { readFile } from 'node:fs/promises'
import type { RequestListener, Server } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { migrate } from '../../../packages/holdfast/src/schema/index.ts'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { hunt, type HuntOptions, instrument } from '../../../packages/race/src/hunt.ts'
import type { Shop } from '../../shop/src/shop.ts'
import type { Work } from '../../three-engines/src/work.ts'

instrument(pg)

const patience = { timeout: 300_000 }
const proven: unknown = expect.stringMatching(/^proven: /)

/** Verdicts by pair, and what is said of it. */
async function huntIn(
  url: string,
  options: Omit<HuntOptions, 'url' | 'budget'>,
): Promise<Record<string, string>> {
  // A busy machine is no reason to leave orders out.
  const budget = { ms: 280_000, pairMs: 40_000 }
  // What runs inside of a function of the ledger, tests of its own prove: `packages/race/test/integration/holdfast`.
  const { pairs } = await hunt({ ...options, url, budget, functions: 'atomic' })
  return Object.fromEntries(
    pairs.map(({ name, verdict, because, sentence }) => [
      name,
      [verdict, because ?? sentence].filter((words) => words !== undefined).join(': '),
    ]),
  )
}

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
afterAll(() => vi.unstubAllEnvs())

/** Every look at the movements is one at each month; this one and the next are enough here. */
const fewMonths = `
  DO $$
  DECLARE
    month text;
  BEGIN
    FOR month IN
      SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
      WHERE inhparent = 'holdfast.movement'::regclass AND relname ~ '_\\d{6}$'
      ORDER BY relname OFFSET 2
    LOOP
      EXECUTE format('DROP TABLE holdfast.%I', month);
    END LOOP;
  END $$`

/** A database with these tables, which the example is told of. */
async function databaseWith(schema: string, ledger: 'with ledger' | 'without'): Promise<string> {
  const { directUrl: url } = await testDatabase()
  const pool = new pg.Pool({ connectionString: url })
  await pool.query(await readFile(new URL(`../../${schema}`, import.meta.url), 'utf8'))
  if (ledger === 'with ledger') {
    await migrate(fromPg(pool))
    await pool.query(fewMonths)
  }
  await pool.end()
  vi.stubEnv('DATABASE_URL', url)
  vi.stubEnv('MODEL_MS', '0')
  return url
}

/** As in two processes: each has its own client, its own Holdfast, and its own queue in memory. A call takes the one that is free. */
async function twoOf<T extends object>(load: () => Promise<T>): Promise<T> {
  const free: T[] = []
  for (const _ of ['one', 'other']) {
    vi.resetModules()
    free.push(await load())
  }
  const [first] = free
  return new Proxy({} as T, {
    get: (_, name) => {
      // A promise would be taken for one that is to be waited for.
      if (!Reflect.has(first as T, name)) return undefined
      return async (...values: readonly unknown[]): Promise<unknown> => {
        const own = free.shift() as T
        try {
          return await (Reflect.get(own, name) as (...all: readonly unknown[]) => unknown)(
            ...values,
          )
        } finally {
          free.unshift(own)
        }
      }
    },
  })
}

function listenerOf(service: Server): RequestListener {
  return (request, response) => service.emit('request', request, response)
}

describe('shop', patience, () => {
  const lines = [{ sku: 'mug', quantity: 2 }]
  const messages = [
    ['/deliveries', { id: 'd-1', lines: [{ sku: 'mug', quantity: 10 }] }],
    ['/orders', { id: 'o-1', source: 'web', lines }],
    ['/returns', { id: 'r-1', orderId: 'o-1', lines: [{ sku: 'mug', quantity: 1 }] }],
  ] as const

  async function huntIt(
    ledger: 'with ledger' | 'without',
    load: () => Promise<Shop>,
  ): Promise<Record<string, string>> {
    const url = await databaseWith('shop/prisma/schema.sql', ledger)
    const shop = await twoOf(async () => {
      const own = await load()
      const { prisma } = await import('../../shop/src/database.ts')
      closing.push(() => prisma.$disconnect())
      // What is done once for each client is done by now.
      const warm = [{ sku: 'pen', quantity: 1 }]
      for (const n of [1, 2, 3]) {
        const id = `${closing.length}-${n}`
        await own.deliver({ id: `w-${id}`, lines: warm })
        await own.takeOrder({ id: `v-${id}`, source: 'web', lines: warm })
        await own.takeReturn({ id: `u-${id}`, orderId: `v-${id}`, lines: warm })
      }
      return own
    })
    const { createService } = await import('../../shop/src/http-service.ts')
    return huntIn(url, {
      app: listenerOf(createService(shop, undefined)),
      suite: async ({ fetch }) => {
        for (const [path, body] of messages) {
          const response = await fetch(path, { method: 'POST', body: JSON.stringify(body) })
          expect(response.status).toBe(201)
        }
      },
    })
  }

  test('look, check, write', async () => {
    expect(await huntIt('without', () => import('../../shop/src/shop-naive.ts'))).toMatchObject({
      'POST /orders × itself': proven,
      'POST /returns × itself': proven,
    })
  })

  test('on the ledger', async () => {
    const verdicts = await huntIt('with ledger', () => import('../../shop/src/shop-ledger.ts'))
    expect(verdicts).toMatchObject({ 'POST /orders × itself': 'refuted' })
    expect(new Set(Object.values(verdicts))).toEqual(new Set(['refuted']))
  })
})

describe('api-credits', patience, () => {
  async function huntIt(way: 'naive' | 'ledger'): Promise<Record<string, string>> {
    const url = await databaseWith(
      'api-credits/schema.sql',
      way === 'naive' ? 'without' : 'with ledger',
    )
    const api = await twoOf(async () => {
      const { db, hf, pool } = await import('../../api-credits/src/database.ts')
      closing.push(() => pool.end())
      const { wallet } = await import('../../api-credits/src/tables.ts')
      const { welcomeCredits } = await import('../../api-credits/src/plan.ts')
      const users = ['ann', 'warm']
      await db
        .insert(wallet)
        .values(users.map((userId) => ({ userId, balance: welcomeCredits })))
        .onConflictDoNothing()
      const credits = hf.credits({ name: 'ai-credits' })
      for (const user of way === 'ledger' ? users : []) {
        await credits.grant(user, welcomeCredits, { operationId: 'welcome' })
      }
      const own =
        way === 'naive'
          ? (await import('../../api-credits/src/naive.ts')).naive
          : (await import('../../api-credits/src/ledger.ts')).ledger
      for (const n of [1, 2, 3]) {
        await own.useCall('warm', `warm-call-${closing.length}-${n}`)
        await own.complete('warm', `warm-text-${closing.length}-${n}`, 'hello')
      }
      return own
    })
    const { createService } = await import('../../api-credits/src/http-service.ts')
    const service = createService(api)
    return huntIn(url, {
      app: { fetch: async (request) => service.fetch(request) },
      suite: async ({ fetch }) => {
        for (const what of ['calls', 'completions']) {
          const response = await fetch(`/users/ann/${what}`, {
            method: 'POST',
            headers: { 'idempotency-key': `request-of-${what}` },
            body: JSON.stringify({ prompt: 'hello' }),
          })
          expect(response.status).toBe(200)
        }
      },
    })
  }

  test('as most of us write it first', async () => {
    expect(await huntIt('naive')).toMatchObject({
      'POST /users/ann/calls × itself': proven,
      'POST /users/ann/completions × itself': proven,
    })
  })

  test('on the ledger', async () => {
    const verdicts = await huntIt('ledger')
    expect(verdicts).toMatchObject({
      'POST /users/ann/calls × itself': 'refuted',
      'POST /users/ann/completions × itself': 'refuted',
    })
    expect(new Set(Object.values(verdicts))).toEqual(new Set(['refuted']))
  })
})

describe('three-engines', patience, () => {
  const fresh = 'DELETE FROM sale; DELETE FROM picture; UPDATE inventory SET quantity = 5'

  async function huntIt(
    load: () => Promise<(url: string) => Work>,
  ): Promise<Record<string, string>> {
    const url = await databaseWith('three-engines/src/postgres/schema.sql', 'without')
    const work = await twoOf(async () => {
      const own = (await load())(url)
      closing.push(() => own.close())
      for (let n = 0; n < 3; n += 1) {
        await own.sell()
        await own.upload()
      }
      await withClient(url, (client) => client.query(fresh))
      return own
    })
    return huntIn(url, {
      outcome: (end) => ('answer' in end && end.answer === false ? 'refused' : undefined),
      suite: async ({ call }) => {
        await call('sell', () => work.sell())
        await call('upload', () => work.upload())
      },
    })
  }

  test('by hand', async () => {
    const load = async () => (await import('../../three-engines/src/postgres/by-hand.ts')).byHand
    expect(await huntIt(load)).toMatchObject({ 'sell × itself': proven, 'upload × itself': proven })
  })

  test('in a guard', async () => {
    const load = async () =>
      (await import('../../three-engines/src/postgres/with-holdfast.ts')).withHoldfast
    expect(await huntIt(load)).toMatchObject({
      'sell × itself': 'refuted',
      'upload × itself': 'refuted',
    })
  })
})
