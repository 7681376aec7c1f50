/** Which keys and moments are the same, what views have in them, and answers that are seldom returned. */
import { sample, withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import type { DatabaseContext } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE session (name text PRIMARY KEY, started timestamptz NOT NULL, who text);
      CREATE TABLE cart (id serial PRIMARY KEY, who text);
      CREATE TABLE pay (id serial PRIMARY KEY, cart_id int, source_id int, cart_ids int[], doc jsonb);
      CREATE TABLE prize (id int PRIMARY KEY, taken boolean NOT NULL);
      CREATE MATERIALIZED VIEW taken AS SELECT count(*) AS n FROM prize WHERE taken;
      CREATE MATERIALIZED VIEW empty AS SELECT count(*) AS n FROM prize WITH NO DATA`),
  )
})

const seed = async ({ query }: DatabaseContext): Promise<void> => {
  await query('TRUNCATE session, cart, pay, prize RESTART IDENTITY')
  await query('INSERT INTO prize VALUES (1, false), (2, false)')
  await query('REFRESH MATERIALIZED VIEW taken')
}

type Work = (pool: Pool, who: string) => Promise<unknown>
const seeded = (work: Work, more: Partial<ExploreOptions> = {}): Promise<Report> =>
  explore({
    url,
    seed,
    onProgress: () => undefined,
    budget: { ms: 60_000 },
    flows: { a: ({ pool }) => work(pool, 'a'), b: ({ pool }) => work(pool, 'b') },
    ...more,
  } as ExploreOptions)

const words = ({ notes }: Report): string => notes.map(({ message }) => message).join('\n')

describe('moments that are the same', () => {
  /** Whoever comes second is told when it began; nothing but the moment tells the two apart. */
  const begin =
    (now: string): Work =>
    async (pool) => {
      const { rows } = await pool.query(`SELECT started FROM session WHERE name = 'x'`)
      if (rows[0]) return { started: rows[0].started }
      const made = await pool.query(
        `INSERT INTO session (name, started) VALUES ('x', ${now})
         ON CONFLICT (name) DO UPDATE SET started = excluded.started RETURNING started`,
      )
      return { started: made.rows[0].started }
    }

  test('race: two are told to have begun, and one row is left', async () => {
    const { verdict, failure } = await seeded(begin('now()'))
    expect(verdict).toBe('race')
    expect(failure?.message).toContain('moments that are the same')
  })

  test('two that fall into one millisecond hide it in a replay; it is no proof then, and not race-free', async () => {
    const { verdict } = await seeded(begin(`date_trunc('milliseconds', clock_timestamp())`))
    expect(['race', 'inconclusive']).toContain(verdict)
  })

  test('safe: each is told of its own row', async () => {
    const work: Work = async (pool, who) => {
      await pool.query('INSERT INTO session (name, started, who) VALUES ($1, now(), $1)', [who])
      const { rows } = await pool.query('SELECT started FROM session WHERE name = $1', [who])
      return { at: new Date(), started: rows[0].started }
    }
    expect((await seeded(work)).verdict).toBe('race-free')
  })
})

describe('numbers that are keys of new rows', () => {
  /** Two sequences, drawn in one order here and in the other one there. */
  const pay =
    (write: (pool: Pool, cart: number) => Promise<unknown>, answer?: 'ids'): Work =>
    async (pool, who) => {
      const cart = await pool.query('INSERT INTO cart (who) VALUES ($1) RETURNING id', [who])
      const second = await pool.query('INSERT INTO cart (who) VALUES ($1) RETURNING id', [who])
      const [one, two] = [cart.rows[0].id as number, second.rows[0].id as number]
      await write(pool, one)
      return answer === 'ids' ? { ids: [one, two] } : undefined
    }

  test.each<[string, Work]>(
    sample(
      [
        ['in a list of ids', pay(async () => undefined, 'ids')],
        [
          'in a column without a foreign key',
          pay((pool, cart) => pool.query('INSERT INTO pay (cart_id) VALUES ($1)', [cart])),
        ],
        [
          'in an array',
          pay((pool, cart) => pool.query('INSERT INTO pay (cart_ids) VALUES ($1)', [[cart]])),
        ],
        [
          'in a document',
          pay((pool, cart) =>
            pool.query('INSERT INTO pay (doc) VALUES ($1)', [
              { cart: { id: cart }, cartIds: [cart] },
            ]),
          ),
        ],
      ],
      2,
    ),
  )('safe: %s', async (_, work) => {
    expect((await seeded(work)).verdict).toBe('race-free')
  })

  test('no proof: in a column with the name of no table', async () => {
    const work = pay((pool, cart) => pool.query('INSERT INTO pay (source_id) VALUES ($1)', [cart]))
    const report = await seeded(work)
    expect(report.verdict).toBe('bounded')
    expect(words(report)).toContain('public.pay.source_id may hold keys')
  })

  test('race: of the wrong row, in a column with the name of no table', async () => {
    const report = await seeded(async (pool, who) => {
      await pool.query('INSERT INTO cart (who) VALUES ($1)', [who])
      const { rows } = await pool.query('SELECT max(id) AS id FROM cart')
      await pool.query('INSERT INTO pay (source_id, doc) VALUES ($1, $2)', [
        rows[0].id,
        JSON.stringify({ who }),
      ])
    })
    expect(report.verdict).toBe('race')
  })
})

describe('materialized views', () => {
  const claim: Work = async (pool, who) => {
    await pool.query('UPDATE prize SET taken = true WHERE id = $1', [who === 'a' ? 1 : 2])
    await pool.query('REFRESH MATERIALIZED VIEW taken')
  }

  test('race: what is in them is compared', async () => {
    const late: Work = async (pool, who) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
        await client.query('UPDATE prize SET taken = true WHERE id = $1', [who === 'a' ? 1 : 2])
        await client.query('REFRESH MATERIALIZED VIEW taken')
        await client.query('COMMIT')
      } finally {
        client.release()
      }
    }
    expect((await seeded(late)).verdict).toBe('race')
  })

  test('safe: refreshed after the commit', async () => {
    expect((await seeded(claim)).verdict).toBe('race-free')
  })

  test('one that was not filled costs the proof', async () => {
    const fill: Work = async (pool) => {
      await pool.query('REFRESH MATERIALIZED VIEW empty')
    }
    const unfilled = async (context: DatabaseContext): Promise<void> => {
      await seed(context)
      await context.query('REFRESH MATERIALIZED VIEW empty WITH NO DATA')
    }
    const report = await seeded(fill, { seed: unfilled })
    expect(report.verdict).toBe('bounded')
    expect(words(report)).toContain('public.empty was not compared')
  })
})

describe('answers that are seldom returned', () => {
  const claim =
    (answer: (won: boolean) => unknown): Work =>
    async (pool) => {
      const { rows } = await pool.query('SELECT taken FROM prize WHERE id = 1')
      const won = rows[0].taken === false
      if (won) await pool.query('UPDATE prize SET taken = true WHERE id = 1')
      return answer(won)
    }

  test.each<[string, (won: boolean) => unknown]>(
    sample([
      ['the cause of an Error', (won) => new Error('no', { cause: won ? 'first' : 'second' })],
      ['a Map', (won) => new Map([[{ at: 1 }, won]])],
      ['a Set', (won) => new Set([won])],
      ['bytes', (won) => new Uint8Array([won ? 1 : 2])],
      ['a Date', (won) => new Date(won ? 0 : 1)],
      ['1n and 1', (won) => (won ? 1n : 1)],
      ['the class of an object', (won) => (won ? new Won() : new Lost())],
      ['undefined in a list', (won) => [won ? undefined : null]],
      [
        'the body of a Request',
        (won) => new Request('http://x/', { method: 'POST', body: `${won}` }),
      ],
      [
        'a stream that a Response reads',
        (won) => new Response(new Blob([won ? 'won' : 'lost']).stream()),
      ],
    ]),
  )('race: %s', async (_, answer) => {
    expect((await seeded(claim(answer))).verdict).toBe('race')
  })

  test.each<[string, (won: boolean) => unknown, string]>([
    [
      'a generator',
      (won) =>
        (function* () {
          yield won
        })(),
      'Generator',
    ],
    ['a stream', (won) => new Blob([won ? 'won' : 'lost']).stream(), 'ReadableStream'],
    ['a WeakMap', () => new WeakMap(), 'WeakMap'],
  ])('no proof: %s', async (_, answer, named) => {
    const report = await seeded(claim(answer))
    expect(report.verdict).toBe('bounded')
    expect(words(report)).toContain(named)
  })

  test('race: what an error that is thrown was made from', async () => {
    const answer = claim((won) => {
      throw new TypeError('no', { cause: new Error(won ? 'first' : 'second') })
    })
    const other: Work = async (pool) => {
      await pool.query('SELECT 1')
    }
    const report = await seeded(
      (pool, who) => (who === 'c' ? other(pool, who) : answer(pool, who)),
      {
        flows: {
          a: ({ pool }) => answer(pool, 'a'),
          b: ({ pool }) => answer(pool, 'b'),
          c: ({ pool }) => other(pool, 'c'),
        },
      },
    )
    expect(report.verdict).toBe('race')
  })
})

class Won {}
class Lost {}

test('a flow that fails in every order is told', async () => {
  const report = await seeded(async (pool, who) => {
    await pool.query('UPDATE prize SET taken = true WHERE id = 1')
    if (who === 'a') throw new TypeError('undefined is not a function')
  })
  expect(words(report)).toMatch(/a fails in every order/)
})
