/** What is large, deep or unreadable ends no exploration, and is compared; what is said of orders and flows is so. */
import { randomBytes } from 'node:crypto'
import { withClient } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { formatReport } from '../../../src/report/terminal/format-report.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE t (id int PRIMARY KEY, v int, file bytea, doc text);
      CREATE TABLE log (id serial PRIMARY KEY, what text);
      CREATE SCHEMA a_tenant;
      CREATE TABLE a_tenant.acc (id int PRIMARY KEY, v int);
      CREATE TABLE public.acc (id int PRIMARY KEY, v int)`),
  )
})

const look = (
  flows: Readonly<Record<string, Flow>>,
  more: readonly string[] = [],
  options: Partial<ExploreOptions> = {},
): Promise<Report> =>
  explore({
    url,
    onProgress: () => undefined,
    budget: { ms: 90_000 },
    seed: async ({ query }) => {
      await query('TRUNCATE t, log, a_tenant.acc, public.acc RESTART IDENTITY')
      await query('INSERT INTO t (id, v) VALUES (1, 0), (2, 0)')
      await query('INSERT INTO a_tenant.acc VALUES (1, 500)')
      await query('INSERT INTO public.acc VALUES (1, 0)')
      for (const text of more) await query(text)
    },
    flows,
    ...options,
  } as ExploreOptions)

const set =
  (id: number): Flow =>
  ({ pool }) =>
    pool.query('UPDATE t SET v = 1 WHERE id = $1', [id]).then(() => undefined)
const safe = { a: set(1), b: set(2) }
const text = (report: Report): string => formatReport(report, { colour: false, columns: 200 })

describe('what is too large to be taken apart is compared as it is', () => {
  test('a file of 3 MB in a column', async () => {
    const same = `UPDATE t SET file = decode(repeat('ab', 3000000), 'hex') WHERE id = 1`
    expect((await look(safe, [same])).verdict).toBe('race-free')
  })

  test('random bytes', async () => {
    const drawn = `UPDATE t SET file = decode('${randomBytes(500_000).toString('hex')}', 'hex') WHERE id = 1`
    expect((await look(safe, [drawn])).verdict).toBe('race-free')
  })

  test('an answer of 5 MB', async () => {
    const answers: Flow = async (context) => {
      await set(1)(context)
      return { pdf: Buffer.alloc(5_000_000, 'q'), text: 'x '.repeat(1_000_000) }
    }
    expect((await look({ a: answers, b: set(2) })).verdict).toBe('race-free')
  })

  test('an answer that is large and differs', async () => {
    const append: Flow = async ({ pool, flow }) => {
      const { rows } = await pool.query(`SELECT coalesce(doc, '') AS doc FROM t WHERE id = 1`)
      const doc = `${rows[0].doc}${flow.repeat(600_000)}`
      await pool.query('UPDATE t SET doc = $1 WHERE id = 1', [doc])
    }
    const report = await look({ a: append, b: append })
    expect(report.verdict).toBe('race')
    expect(text(report)).toMatch(/‹600000 characters, sha256 [0-9a-f]+/)
  })

  test('a text with 20,000 brackets', async () => {
    const deep = `UPDATE t SET doc = repeat('[', 20000) || repeat(']', 20000) WHERE id = 1`
    expect((await look(safe, [deep])).verdict).toBe('race-free')
  })
})

test('an error that throws when it is read is an error of its flow', async () => {
  const odd: Flow = async (context) => {
    await set(1)(context)
    throw Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new TypeError('getter of message')
      },
    })
  }
  const { verdict, notes } = await look({ a: odd, b: set(2) })
  expect(verdict).toBe('race-free')
  expect(notes.map(({ message }) => message).join()).toContain('an error that cannot be read')
})

test('a value is compared with the table of its own schema', async () => {
  const add: Flow = async ({ pool }) => {
    const { rows } = await pool.query('SELECT v FROM public.acc WHERE id = 1')
    await pool.query('UPDATE public.acc SET v = $1 WHERE id = 1', [rows[0].v + 1])
  }
  expect(text(await look({ a: add, b: add }))).toContain(
    'acc 1: v is 1; after every serial order it is 2',
  )
})

test('classes are no more than the interleavings that they stand for', async () => {
  const unawaited: Flow = async ({ pool, flow }) => {
    const first = pool.query('INSERT INTO log (what) VALUES ($1)', [flow])
    await pool.query('UPDATE t SET v = v + 1 WHERE id = 1')
    await first
  }
  const { coverage } = await look({ a: unawaited, b: set(1) }, [], { budget: { schedules: 60 } })
  expect(coverage.interleavings).toBeGreaterThanOrEqual(BigInt(coverage.classes))
  expect(coverage.interleavings).toBeGreaterThan(15n)
})

describe('what is said of a flow that is refused', () => {
  const spend: Flow = async ({ pool }) => {
    const { rowCount } = await pool.query('UPDATE t SET v = v - 1 WHERE id = 1 AND v > 0')
    if (rowCount === 0) throw new Error('insufficient funds')
  }
  const funds = ['UPDATE t SET v = 1 WHERE id = 1']

  test.each<[string, NonNullable<ExploreOptions['symmetric']>]>([
    ['without symmetric', false],
    ['with symmetric', true],
    ['with a group', [['a', 'b']]],
  ])('is nothing where it succeeds in another order, %s', async (_, symmetric) => {
    const report = await look({ a: spend, b: spend }, funds, { symmetric })
    expect([report.verdict, report.notes]).toEqual(['race-free', []])
  })

  test.each<[string, NonNullable<ExploreOptions['symmetric']>]>([
    ['without symmetric', false],
    ['with symmetric', true],
  ])('is told where it never succeeds, %s', async (_, symmetric) => {
    const { notes } = await look({ a: spend, b: spend }, [], { symmetric })
    expect(notes.map(({ kind }) => kind)).toContain('always-refused')
  })

  test('is not why it sends nothing through the explorer', async () => {
    const { Pool } = (await import('pg')).default
    const own = new Pool({ connectionString: url })
    const report = await look({ a: () => spend({ pool: own } as never), b: spend }, funds)
    await own.end()
    expect(report.trouble?.message).toMatch(
      /^a sent no statement .* Let it connect with the pool or the url of its context\.$/,
    )
  })
})
