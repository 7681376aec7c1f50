/** Races that show only with other values, in another way through the code, or from rows that the suite itself has made. */
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { hunt, type HuntedPair, type HuntReport, instrument } from '../../../src/hunt.ts'
import type { SuiteContext } from '../../../src/hunt/record/open-recording.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE bookings (id serial PRIMARY KEY, event text NOT NULL, person text NOT NULL);
      CREATE TABLE accounts (id int PRIMARY KEY, owner int NOT NULL, balance int NOT NULL);
      INSERT INTO accounts VALUES (1, 1, 100), (2, 2, 0), (3, 1, 100);
      CREATE TABLE on_call (org int, shift int, doctor int, is_on bool NOT NULL, PRIMARY KEY (org, shift, doctor));
      INSERT INTO on_call VALUES (1, 1, 1, true), (1, 1, 2, true), (2, 2, 7, true), (1, 3, 1, true);
      CREATE TABLE codes (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
      INSERT INTO codes VALUES ('A', 0, 6), ('B', 0, 6);
      CREATE TABLE cards (LIKE codes INCLUDING ALL);
      INSERT INTO cards SELECT * FROM codes;
      CREATE TABLE products (id int PRIMARY KEY, slug text UNIQUE NOT NULL, stock int NOT NULL);
      INSERT INTO products VALUES (1, 'blue', 3), (2, 'red', 3);
      CREATE TABLE files (id serial PRIMARY KEY, person int NOT NULL)`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

class Refused extends Error {
  readonly status = 409
}

async function transaction<T>(
  work: (client: pg.PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const patience = { timeout: 300_000 }
const huntIn = (suite: (context: SuiteContext) => Promise<unknown>): Promise<HuntReport> =>
  // A busy machine is no reason to leave orders out.
  hunt({ url, suite, budget: { ms: 250_000, pairMs: 60_000 } })
const verdictOf = ({ pairs }: HuntReport, name: string): string | undefined =>
  pairs.find((pair) => pair.name === name)?.verdict
const pairOf = ({ pairs }: HuntReport, name: string): HuntedPair | undefined =>
  pairs.find((pair) => pair.name === name)

/** At most three of an event, under a lock of `key`. */
function bookUnder(key: (of: Booking) => string) {
  return (of: Booking): Promise<object> =>
    transaction(async (client) => {
      await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [key(of)])
      const count = 'SELECT count(*)::int AS n FROM bookings WHERE event = $1'
      const { rows } = await client.query(count, [of.event])
      if (rows[0].n >= 3) throw new Refused()
      const insert = 'INSERT INTO bookings (event, person) VALUES ($1, $2)'
      await client.query(insert, [of.event, `person:${of.person.toLowerCase()}`])
      return { booked: of.event }
    })
}
interface Booking {
  readonly event: string
  readonly person: string
}

test(
  'a lock by the person does not keep another person out of the last place; one by the event does',
  patience,
  async () => {
    const of = { event: 'fair', person: 'Ann' }
    const report = await huntIn(async ({ call }) => {
      await call(
        'by person',
        bookUnder(({ person }) => `person:${person.toLowerCase()}`),
        of,
      )
    })
    expect(verdictOf(report, 'by person × itself')).toBe('proven')
    expect(report.pairs[0]?.from).toEqual(['the rows after it ran 2 times, with another 0.person'])
    const safe = await huntIn(async ({ call }) => {
      await call(
        'by event',
        bookUnder(({ event }) => event),
        of,
      )
    })
    expect(verdictOf(safe, 'by event × itself')).toBe('refuted')
  },
)

test(
  'the other account of the same owner, and the other doctor of the same shift, are tried',
  patience,
  async () => {
    const withdraw = (id: number, amount: number): Promise<object> =>
      transaction(async (client) => {
        const lock = 'SELECT owner FROM accounts WHERE id = $1 FOR UPDATE'
        const { rows } = await client.query(lock, [id])
        const sum = 'SELECT sum(balance)::int AS sum FROM accounts WHERE owner = $1'
        const { rows: all } = await client.query(sum, [rows[0].owner])
        if (all[0].sum < amount) throw new Refused()
        await client.query('UPDATE accounts SET balance = balance - $2 WHERE id = $1', [id, amount])
        return { withdrawn: amount }
      })
    const leave = (of: { org: number; shift: number; doctor: number }): Promise<object> =>
      transaction(async (client) => {
        const { org, shift, doctor } = of
        const there = 'SELECT doctor FROM on_call WHERE org = $1 AND shift = $2 AND is_on'
        const { rows } = await client.query(there, [org, shift])
        if (rows.length < 2) throw new Refused()
        const update =
          'UPDATE on_call SET is_on = false WHERE org = $1 AND shift = $2 AND doctor = $3 AND is_on'
        const { rowCount } = await client.query(update, [org, shift, doctor])
        if (rowCount === 0) throw new Refused()
        return { left: doctor }
      }, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    const report = await huntIn(async ({ call }) => {
      await call('withdraw', withdraw, 1, 150)
      await call('leave', leave, { org: 1, shift: 1, doctor: 1 })
    })
    expect(verdictOf(report, 'withdraw × itself')).toBe('proven')
    expect(verdictOf(report, 'leave × itself')).toBe('proven')
  },
)

test(
  'each way through the code is run: what is safe in one may race in another',
  patience,
  async () => {
    const rpc = async ({ method, code }: { method: string; code: string }): Promise<object> => {
      const table = method === 'safe' ? 'cards' : 'codes'
      const { rows } = await pool.query(`SELECT uses, most FROM ${table} WHERE code = $1`, [code])
      if (method === 'racy' && rows[0].uses >= rows[0].most) throw new Refused()
      const safely = method === 'safe' ? ' AND uses < most' : ''
      const update = `UPDATE ${table} SET uses = uses + 1 WHERE code = $1${safely}`
      const { rowCount } = await pool.query(update, [code])
      if (rowCount === 0) throw new Refused()
      return { done: true }
    }
    const safe = async ({ call }: SuiteContext): Promise<void> => {
      for (const code of ['A', 'B']) await call('rpc', rpc, { method: 'safe', code })
    }
    const both = await huntIn(async (context) => {
      await safe(context)
      await context.call('rpc', rpc, { method: 'racy', code: 'A' })
    })
    expect(verdictOf(both, 'rpc × itself')).toBe('proven')
    expect(verdictOf(await huntIn(safe), 'rpc × itself')).toBe('refuted')
  },
)

test('a row is the same by its slug, by its id, and in a list of ids', patience, async () => {
  const take = async (where: string, value: unknown): Promise<object> => {
    const { rows } = await pool.query(`SELECT stock FROM products WHERE ${where}`, [value])
    if (rows[0].stock < 1) throw new Refused()
    const update = `UPDATE products SET stock = $2 WHERE ${where}`
    await pool.query(update, [value, rows[0].stock - 1])
    return { taken: 1 }
  }
  const bySlug = (slug: string): Promise<object> => take('slug = $1', slug)
  const byIds = (body: { ids: number[] }): Promise<object> => take('id = ANY($1)', body.ids)
  const add = async (id: number, some: number): Promise<object> => {
    const { rows } = await pool.query('SELECT stock FROM products WHERE id = $1', [id])
    const update = 'UPDATE products SET stock = $2 WHERE id = $1'
    await pool.query(update, [id, rows[0].stock + some])
    return { added: some }
  }
  const report = await huntIn(async ({ call }) => {
    await call('by slug', bySlug, 'blue')
    await call('by ids', byIds, { ids: [1] })
    await call('add', add, 2, 5)
  })
  expect(verdictOf(report, 'by slug × add')).toBe('proven')
  expect(verdictOf(report, 'by ids × add')).toBe('proven')
})

test(
  'rows that the suite has brought to a limit are tried, and a refusal of the suite is not denied',
  patience,
  async () => {
    const upload = async (person: number): Promise<object> => {
      const count = 'SELECT count(*)::int AS n FROM files WHERE person = $1'
      const { rows } = await pool.query(count, [person])
      if (rows[0].n >= 100) throw new Refused()
      await pool.query('INSERT INTO files (person) VALUES ($1)', [person])
      return { uploaded: true }
    }
    const fill = (count: number): Promise<unknown> =>
      pool.query('INSERT INTO files (person) SELECT 1 FROM generate_series(1, $1)', [count])
    const report = await huntIn(async ({ call }) => {
      await call('upload', upload, 1)
      await fill(98)
      await call('upload', upload, 1)
      await expect(call('upload', upload, 1)).rejects.toThrow(Refused)
    })
    expect(pairOf(report, 'upload × itself')).toMatchObject({
      verdict: 'proven',
      from: ['the rows of the recording'],
    })
    const far = await huntIn(async ({ call }) => {
      await call('upload', upload, 1)
      await fill(99)
      await expect(call('upload', upload, 1)).rejects.toThrow(Refused)
      await pool.query('DELETE FROM files')
      await call('upload', upload, 1)
    })
    expect(pairOf(far, 'upload × itself')).toMatchObject({
      verdict: 'refuted',
      assumed: expect.stringContaining(
        'upload was refused in the recording, and never when it was repeated (30 calls',
      ),
    })
  },
)
