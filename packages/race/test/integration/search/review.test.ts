/** Findings of the review, by their ids: what was told wrongly once. */
import { randomBytes, randomUUID, scrypt } from 'node:crypto'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setInterval, setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { rounds, sample } from '@holdfast/testkit'
import pg, { type PoolClient } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'
import type { DatabaseContext, Flow, FlowContext } from '../../../src/run/options.ts'

let url: string
const elsewhere = createServer((request, response) => {
  void setTimeout(Number(request.url?.slice(1))).then(() => response.end('ok'))
})
let origin: string

beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await once(elsewhere.listen(0, '127.0.0.1'), 'listening')
  origin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
})
afterAll(() => {
  elsewhere.close()
})

/** Clients of the code under test; those of the flows' own pools are gated already. */
instrument(pg)
const instrumented = pg

const quiet = { onProgress: () => undefined }

function look(options: Omit<ExploreOptions, 'url'>): Promise<Report> {
  return explore({ url, ...quiet, ...options })
}

/** One statement after the other, before every run. */
const seeded =
  (...texts: readonly string[]) =>
  async ({ query }: DatabaseContext): Promise<void> => {
    for (const text of texts) await query(text)
  }

const account = seeded(
  'DROP TABLE IF EXISTS account',
  'CREATE TABLE account (id int PRIMARY KEY, balance int)',
  'INSERT INTO account VALUES (1, 100)',
)

async function transaction<T>(
  { pool }: FlowContext,
  body: (client: PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const answer = await body(client)
    await client.query('COMMIT')
    return answer
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const spend = (wait: () => Promise<unknown>): Flow => {
  return (context) =>
    transaction(context, async (client) => {
      const { rows } = await client.query('SELECT balance FROM account WHERE id = 1')
      await wait()
      await client.query('UPDATE account SET balance = $1 WHERE id = 1', [rows[0].balance - 30])
    })
}

const magic = seeded(
  'DROP TABLE IF EXISTS magic',
  'CREATE TABLE magic (token text PRIMARY KEY)',
  `INSERT INTO magic VALUES ('x')`,
)

describe('X1: a lost update with something else than SQL between read and write is found', () => {
  test.each([
    ['a call over HTTP of 80 ms', async () => (await fetch(`${origin}/80`)).text()],
    ['a timer of 80 ms', () => setTimeout(80)],
    ['work in a thread', () => promisify(scrypt)('a', 'b', 64)],
  ])('%s', async (_, wait) => {
    const report = await look({ seed: account, flows: { a: spend(wait), b: spend(wait) } })
    expect(report.verdict).toBe('race')
    expect(report.failure?.reproduced).toEqual([5, 5])
  })
})

test('X2: a safe flow that hashes between its statements is free of races, every time', async () => {
  const use: Flow = async ({ pool }) => {
    await pool.query('SELECT token FROM magic')
    await promisify(scrypt)('password', 'salt', 64)
    return (await pool.query(`DELETE FROM magic WHERE token = 'x'`)).rowCount
  }
  for (let time = 0; time < rounds(3); time += 1) {
    const flows = { one: use, two: use }
    const { verdict, notes } = await look({ seed: magic, flows, budget: { ms: 60_000 } })
    expect([verdict, notes]).toEqual(['race-free', []])
  }
})

test.each([
  ['nanoid', () => randomBytes(16).toString('base64url')],
  ['uuid', () => randomUUID()],
])('X3: no serial order is accused, with keys like a %s', async (_, id) => {
  const order: Flow = async ({ pool }) => {
    const { rows } = await pool.query('SELECT open FROM shop')
    if (rows[0].open !== true) return 'closed'
    await pool.query(`INSERT INTO filed VALUES ($1, 'tea')`, [id()])
    return 'filed'
  }
  const open: Flow = ({ pool }) => pool.query('UPDATE shop SET open = true')
  const seed = seeded(
    'DROP TABLE IF EXISTS shop, filed',
    'CREATE TABLE shop (open bool)',
    'CREATE TABLE filed (id text PRIMARY KEY, what text)',
    'INSERT INTO shop VALUES (false)',
  )
  for (const rng of sample([1, 2, 3])) {
    expect((await look({ seed, rng, flows: { order, open } })).verdict).toBe('race-free')
  }
})

test.each([
  ['by its schema', 'a.orders', 'BEGIN'],
  ['by the search_path', 'orders', 'BEGIN; SET LOCAL search_path = a'],
])('X4: a table of the same name elsewhere hides no deadlock: %s', async (_, table, begin) => {
  const both =
    (first: number, second: number): Flow =>
    (context) =>
      transaction(
        context,
        async (client) => {
          await client.query(`UPDATE ${table} SET v = v + 1 WHERE id = $1`, [first])
          await client.query(`UPDATE ${table} SET v = v + 1 WHERE id = $1`, [second])
        },
        begin,
      )
  const seed = seeded(
    'DROP SCHEMA IF EXISTS a CASCADE',
    'DROP SCHEMA IF EXISTS b CASCADE',
    'CREATE SCHEMA a',
    'CREATE SCHEMA b',
    'CREATE TABLE a.orders (id int PRIMARY KEY, v int)',
    'CREATE TABLE b.orders (id int)',
    'INSERT INTO a.orders VALUES (1, 0), (2, 0)',
  )
  for (const rng of sample([1, 2, 3, 4])) {
    const flows = { a: both(1, 2), b: both(2, 1) }
    const { failure } = await look({ seed, rng, flows, deadlocks: 'fail' })
    expect(failure?.kind).toBe('deadlock')
  }
})

test('X5: an accident that no serial order gives is a finding', async () => {
  const seed = seeded(
    'DROP TABLE IF EXISTS named',
    'CREATE TABLE named (id int PRIMARY KEY, name text)',
    `INSERT INTO named VALUES (1, 'x')`,
  )
  const remover: Flow = ({ pool }) => pool.query('DELETE FROM named WHERE id = 1')
  const reader: Flow = async ({ pool }) => {
    if ((await pool.query('SELECT id FROM named WHERE id = 1')).rowCount === 0) return 'gone'
    const { rows } = await pool.query('SELECT name FROM named WHERE id = 1')
    return rows[0].name.length
  }
  const report = await look({ seed, flows: { remover, reader } })
  expect(report.verdict).toBe('race')
  expect(report.failure?.message).toContain('TypeError')
})

test('X6: a gap in a natural key is a difference', async () => {
  const take =
    (who: string): Flow =>
    async ({ pool }) => {
      const { rows } = await pool.query('SELECT coalesce(max(seat), 0) + 1 AS seat FROM seat')
      for (let seat = Number(rows[0].seat); ; seat += 2) {
        try {
          return await pool.query('INSERT INTO seat VALUES ($1, $2)', [seat, who])
        } catch (error) {
          if ((error as { code?: string }).code !== '23505') throw error
        }
      }
    }
  const seed = seeded(
    'DROP TABLE IF EXISTS seat',
    'CREATE TABLE seat (seat int PRIMARY KEY, who text)',
  )
  expect((await look({ seed, flows: { a: take('a'), b: take('b') } })).verdict).toBe('race')
})

describe('X7: beside a random value the status of an answer is compared', () => {
  const draw = (): string => randomBytes(24).toString('base64url')

  test('a token that is redeemed twice is a race', async () => {
    const redeem: Flow = async ({ pool }) => {
      const { rowCount } = await pool.query(`SELECT FROM magic WHERE token = 'x'`)
      await pool.query(`DELETE FROM magic WHERE token = 'x'`)
      return rowCount === 1 ? { status: 200, jwt: draw() } : { status: 401, trace: draw() }
    }
    expect((await look({ seed: magic, flows: { one: redeem, two: redeem } })).verdict).toBe('race')
  })

  test('one that is redeemed once is none', async () => {
    const redeem: Flow = async ({ pool }) => {
      const { rowCount } = await pool.query(`DELETE FROM magic WHERE token = 'x'`)
      return rowCount === 1 ? { status: 200, jwt: draw() } : { status: 401, trace: draw() }
    }
    const { verdict } = await look({ seed: magic, flows: { one: redeem, two: redeem } })
    expect(verdict).toBe('race-free')
  })
})

describe('X8: a refusal that is returned is as safe as one that is thrown', () => {
  const careful =
    (status: number): Flow =>
    async (context) => {
      try {
        await transaction(
          context,
          async (client) => {
            const { rows } = await client.query('SELECT balance FROM account WHERE id = 1')
            const left = rows[0].balance - 30
            await client.query('UPDATE account SET balance = $1 WHERE id = 1', [left])
          },
          'BEGIN ISOLATION LEVEL SERIALIZABLE',
        )
        return { status: 200 }
      } catch (error) {
        if ((error as { code?: string }).code === '40001') return { status }
        throw error
      }
    }

  test.each([
    [409, 'race-free'],
    [503, 'race-free'],
    [500, 'race'],
  ])('%i: %s', async (status, verdict) => {
    const flows = { a: careful(status), b: careful(status) }
    expect((await look({ seed: account, flows })).verdict).toBe(verdict)
  })

  test('whoever calls knows better', async () => {
    const flows = { a: careful(500), b: careful(500) }
    const outcome = (): 'refused' => 'refused'
    expect((await look({ seed: account, flows, outcome })).verdict).toBe('race-free')
  })
})

test('X9: a clock that shows seconds is no race when the second is over', async () => {
  const file: Flow = async ({ pool }) => {
    const at = Math.floor(Date.now() / 1_000)
    await pool.query('SELECT count(*) FROM visit')
    await pool.query('INSERT INTO visit VALUES ($1)', [at])
    return { expires: at + 600 }
  }
  const seed = seeded('DROP TABLE IF EXISTS visit', 'CREATE TABLE visit (at int)')
  // A second is over in one of the first two of these at the latest.
  for (let time = 0; time < rounds(5); time += 1) {
    expect((await look({ seed, flows: { one: file, two: file } })).failure).toBeUndefined()
  }
})

test('X10: a seed that does not restore everything is told as such', async () => {
  await look({
    seed: seeded(
      'DROP TABLE IF EXISTS tally',
      'CREATE TABLE tally (n int)',
      'INSERT INTO tally VALUES (0)',
    ),
    flows: { a: ({ pool }) => pool.query('SELECT 1'), b: ({ pool }) => pool.query('SELECT 2') },
  })
  const add: Flow = ({ pool }) => pool.query('UPDATE tally SET n = n + 1')
  const { verdict, trouble } = await look({ seed: magic, flows: { a: add, b: add } })
  expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'seed-differs'])
  expect(trouble?.message).toContain('public.tally.n')
})

test('X1, X2: what follows a known wait is not taken for idle at once', async () => {
  const slow = async (): Promise<void> => {
    await setTimeout(300)
    // An interval is not known to end: for 60 ms nobody can tell what this waits for.
    for await (const _ of setInterval(60)) return
  }
  const use: Flow = async ({ pool }) => {
    await pool.query('SELECT token FROM magic')
    await slow()
    return (await pool.query(`DELETE FROM magic WHERE token = 'x'`)).rowCount
  }
  const { verdict, notes } = await look({ seed: magic, flows: { one: use, two: use } })
  expect([verdict, notes]).toEqual(['race-free', []])
})

test('X9: a second that is over in a run of whole flows is learnt as chance', async () => {
  let runs = 0
  const start = Math.floor(Date.now() / 1_000)
  const use: Flow = async ({ pool, flow }) => {
    if (flow === 'one') runs += 1
    const { rowCount } = await pool.query(`DELETE FROM magic WHERE token = 'x'`)
    // Changes for the first time after the serial orders were learnt.
    return { rowCount, at: start + Math.floor(runs / 6) }
  }
  const { verdict } = await look({ seed: magic, flows: { one: use, two: use } })
  expect(verdict).toBe('race-free')
})

test('X11: tables that a waiting flow has locked do not stop the search', async () => {
  const migrate: Flow = async (context) => {
    await transaction(context, (client) =>
      client.query(
        'CREATE TABLE IF NOT EXISTS job (id serial PRIMARY KEY, at timestamptz DEFAULT now())',
      ),
    )
    await transaction(context, (client) =>
      client.query('ALTER TABLE job ADD COLUMN IF NOT EXISTS n int'),
    )
  }
  const seed = seeded('DROP TABLE IF EXISTS job CASCADE')
  const report = await look({ seed, budget: { ms: 4_000 }, flows: { a: migrate, b: migrate } })
  expect(report.trouble).toBeUndefined()
})

test('X12: a client under instrument() that is given the url of its flow waits at one gate', async () => {
  const use: Flow = async ({ url: own }) => {
    const client = new instrumented.Client({ connectionString: own })
    await client.connect()
    try {
      return (await client.query(`DELETE FROM magic WHERE token = 'x'`)).rowCount
    } finally {
      await client.end()
    }
  }
  const { verdict, trouble } = await look({ seed: magic, flows: { one: use, two: use } })
  expect([trouble, verdict]).toEqual([undefined, 'race-free'])
})

test('X13: CREATE TABLE IF NOT EXISTS twice fails, and that is found', async () => {
  const make: Flow = ({ pool }) => pool.query('CREATE TABLE IF NOT EXISTS made (id int)')
  const report = await look({
    seed: seeded('DROP TABLE IF EXISTS made'),
    flows: { a: make, b: make },
  })
  expect(report.verdict).toBe('race')
  expect(report.failure?.message).toContain('23505')
})

describe('X14 and X18: code with a pool of its own', () => {
  let pool: pg.Pool
  beforeAll(() => {
    pool = new instrumented.Pool({ connectionString: url })
  })
  afterAll(() => pool.end())

  const redeem = async (): Promise<number> => {
    const { rowCount } = await pool.query(`SELECT FROM magic WHERE token = 'x'`)
    await pool.query(`DELETE FROM magic WHERE token = 'x'`)
    return rowCount === 1 ? 200 : 401
  }
  const redeemOnce = async (): Promise<number> => {
    const { rowCount } = await pool.query(`DELETE FROM magic WHERE token = 'x'`)
    return rowCount === 1 ? 200 : 401
  }

  test('X14: a statement that has lost its flow makes no green verdict', async () => {
    const nobody = AsyncLocalStorage.snapshot()
    const lost: Flow = async () => {
      await redeemOnce()
      await nobody(() => pool.query('SELECT count(*) FROM magic'))
    }
    const { verdict, notes } = await look({ seed: magic, flows: { one: lost, two: lost } })
    expect(verdict).toBe('bounded')
    expect(notes.map(({ message }) => message).join()).toContain("nobody's flow")
  })

  test.each([
    ['fetch', async (address: string) => (await fetch(address)).status],
    [
      'http.get',
      async (address: string) => {
        const [response] = (await once(get(address), 'response')) as [IncomingMessage]
        await once(response.resume(), 'end')
        return response.statusCode
      },
    ],
  ])('X18: behind a server in this process, called by %s', async (_, call) => {
    const server = createServer((request, response) => {
      void (request.url === '/racy' ? redeem() : redeemOnce()).then((status) => {
        response.statusCode = status
        response.end()
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void server.close())
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ask = (path: string): Flow => {
      return async () => ({ status: await call(`${at}${path}`) })
    }
    const racy = await look({ seed: magic, flows: { one: ask('/racy'), two: ask('/racy') } })
    expect(racy.verdict).toBe('race')
    const safe = await look({ seed: magic, flows: { one: ask('/safe'), two: ask('/safe') } })
    expect([safe.verdict, safe.coverage.exhaustive]).toEqual(['race-free', true])
  })
})

test('X15: what only the first run does costs nothing', async () => {
  let known: Promise<unknown> | undefined
  const use: Flow = async ({ pool }) => {
    known ??= pool.query('SELECT version(), current_setting($1)', ['server_version'])
    await known
    return (await pool.query(`DELETE FROM magic WHERE token = 'x'`)).rowCount
  }
  const { verdict, coverage } = await look({ seed: magic, flows: { one: use, two: use } })
  expect([verdict, coverage.exhaustive]).toEqual(['race-free', true])
})
