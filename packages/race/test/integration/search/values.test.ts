/** Findings of the review, by their ids: which values are chance, and which are compared. */
import { randomUUID } from 'node:crypto'
import { sample, withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { formatReport } from '../../../src/report/terminal/format-report.ts'
import type { DatabaseContext, Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE tally (id int PRIMARY KEY, n int NOT NULL);
      INSERT INTO tally VALUES (1, 0);
      CREATE TABLE sub (id int PRIMARY KEY, until timestamptz, ms bigint, plain text, doc jsonb NOT NULL DEFAULT '{}',
                        list text[] NOT NULL DEFAULT '{}', log text NOT NULL DEFAULT '', owner uuid, price numeric);
      CREATE TABLE cart (id serial PRIMARY KEY, state text);
      CREATE TABLE line (id serial PRIMARY KEY, cart_id int REFERENCES cart, who text);
      CREATE TABLE ev (id serial PRIMARY KEY, who text, part int);
      CREATE TABLE bid (id serial PRIMARY KEY, who text);
      CREATE TABLE prize (id int PRIMARY KEY, taken boolean NOT NULL)`),
  )
})

/** Whatever is there between the explorations is emptied; `now()` is another one each time. */
const seedAt =
  (until: string) =>
  async ({ query }: DatabaseContext): Promise<void> => {
    await query('TRUNCATE tally, sub, cart, line, ev, bid, prize RESTART IDENTITY')
    await query('INSERT INTO tally VALUES (1, 0)')
    await query('INSERT INTO prize VALUES (1, false)')
    await query(
      `INSERT INTO sub (id, until, ms, plain)
       SELECT 1, at, (extract(epoch FROM at) * 1000)::bigint, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
       FROM (SELECT (${until})::timestamptz AS at) AS one`,
    )
  }

const look = (options: Omit<ExploreOptions, 'url'>): Promise<Report> =>
  explore({ url, onProgress: () => undefined, budget: { ms: 60_000 }, ...options })

type Work = (pool: Pool, who: string) => Promise<unknown>
const both = (work: Work): Readonly<Record<string, Flow>> => ({
  a: ({ pool }) => work(pool, 'a'),
  b: ({ pool }) => work(pool, 'b'),
})
const seeded = (work: Work, until = 'now()'): Promise<Report> =>
  look({ seed: seedAt(until), flows: both(work) })

interface Sub {
  readonly until: Date
  readonly ms: string
  readonly plain: string
  readonly doc: {
    readonly n?: number
    readonly items?: readonly unknown[]
    readonly [key: string]: unknown
  }
  readonly list: readonly string[]
  readonly log: string
  readonly owner: string | null
  readonly price: string | null
}
const read = async (pool: Pool): Promise<Sub> => {
  const { rows } = await pool.query<Sub>('SELECT * FROM sub WHERE id = 1')
  return rows[0] as Sub
}
const write = (pool: Pool, column: keyof Sub, value: unknown): Promise<unknown> =>
  pool.query(`UPDATE sub SET ${column} = $1 WHERE id = 1`, [value])

const day = 86_400_000
const month = 30 * day

describe('X22: times that move with the clock are compared by their distance from it', () => {
  const inDays = (from: number | Date, days: number): Date => new Date(Number(from) + days * day)
  const extend: Work = async (pool) => write(pool, 'until', inDays((await read(pool)).until, 30))

  test.each<[string, string, Work]>(
    sample([
      ['of the seed', 'now()', extend],
      ['in two weeks', `now() + interval '14 days'`, extend],
      ['two years ago', `now() - interval '2 years'`, extend],
      [
        'an hour',
        'now()',
        async (pool) => write(pool, 'until', inDays((await read(pool)).until, 1 / 24)),
      ],
      [
        'computed by the server',
        'now()',
        async (pool) => {
          const { rows } = await pool.query('SELECT until::text AS until FROM sub')
          await pool.query(`UPDATE sub SET until = $1::timestamptz + interval '30 days'`, [
            rows[0].until,
          ])
        },
      ],
      [
        'from the later one of both',
        `'2020-01-01'`,
        async (pool) =>
          write(pool, 'until', inDays(Math.max(Number((await read(pool)).until), Date.now()), 30)),
      ],
      [
        'in milliseconds',
        'now()',
        async (pool) => write(pool, 'ms', Number((await read(pool)).ms) + month),
      ],
      [
        'as a text',
        'now()',
        async (pool) =>
          write(pool, 'plain', inDays(Date.parse((await read(pool)).plain), 30).toISOString()),
      ],
      [
        'inside of a document',
        'now()',
        async (pool) => {
          const { doc } = await read(pool)
          const from = typeof doc['until'] === 'string' ? Date.parse(doc['until']) : Date.now()
          await write(pool, 'doc', { until: inDays(from, 30) })
        },
      ],
      [
        'only in what is answered',
        'now()',
        async (pool) => {
          const until = inDays((await read(pool)).until, 30)
          await write(pool, 'until', until)
          return { until }
        },
      ],
    ]),
  )('30 days are not 60: %s', async (_, until, work) => {
    expect((await seeded(work, until)).verdict).toBe('race')
  })

  test.each<[string, Work]>([
    ['the server adds', (pool) => pool.query(`UPDATE sub SET until = until + interval '30 days'`)],
    [
      'in milliseconds',
      async (pool) => {
        const added = await pool.query('UPDATE sub SET ms = ms + $1 RETURNING ms, until', [month])
        return added.rowCount === 1
      },
    ],
    [
      'seconds, milliseconds and texts of now',
      async (pool, who) => {
        const at = { who, at: new Date(), expires: Math.floor(Date.now() / 1_000) + 600 }
        await pool.query('UPDATE sub SET doc = doc || $1', [JSON.stringify({ [who]: at })])
        return at
      },
    ],
  ])('safe: %s', async (_, work) => {
    expect((await seeded(work)).verdict).toBe('race-free')
  })
})

describe('X23: beside what is random the rest is compared, and so is where the same value stands', () => {
  const nanoid = (): string => Math.random().toString(36).slice(2)

  test.each<[string, Work]>(
    sample(
      [
        [
          'a cart whose items have ids',
          async (pool, sku) => {
            const { doc } = await read(pool)
            await write(pool, 'doc', { items: [...(doc.items ?? []), { id: randomUUID(), sku }] })
          },
        ],
        [
          'a count beside a nonce',
          async (pool) => {
            const { doc } = await read(pool)
            await write(pool, 'doc', { n: (doc.n ?? 0) + 1, nonce: randomUUID() })
          },
        ],
        [
          'a document in a text',
          async (pool) => {
            const { log } = await read(pool)
            const { n } = log === '' ? { n: 0 } : (JSON.parse(log) as { n: number })
            await write(pool, 'log', JSON.stringify({ n: n + 1, nonce: nanoid() }))
          },
        ],
        [
          'a list of texts',
          async (pool) => write(pool, 'list', [...(await read(pool)).list, randomUUID()]),
        ],
        [
          'keys of a document',
          async (pool, who) =>
            write(pool, 'doc', { ...(await read(pool)).doc, [randomUUID()]: who }),
        ],
        [
          'a text of ids',
          async (pool) => write(pool, 'log', `${(await read(pool)).log}${randomUUID()};`),
        ],
        [
          'a text with names',
          async (pool, who) => write(pool, 'log', `${(await read(pool)).log}${who}${nanoid()};`),
        ],
        [
          'a key that is made once, and answered',
          async (pool) => {
            const { owner } = await read(pool)
            if (owner !== null) return { owner }
            const key = randomUUID()
            await write(pool, 'owner', key)
            return { owner: key }
          },
        ],
        [
          'two rows alike, and what refers to them',
          async (pool, who) => {
            await pool.query(`INSERT INTO cart (state) VALUES ('open')`)
            const { rows } = await pool.query('SELECT max(id) AS id FROM cart')
            await pool.query('INSERT INTO line (cart_id, who) VALUES ($1, $2)', [rows[0].id, who])
          },
        ],
      ],
      2,
    ),
  )('race: %s', async (_, work) => {
    expect((await seeded(work)).verdict).toBe('race')
  })

  test.each<[string, Work]>([
    [
      'items are added by the server',
      async (pool, sku) => {
        const item = JSON.stringify({ [sku]: { id: randomUUID(), nonce: nanoid() } })
        await pool.query('UPDATE sub SET doc = doc || $1', [item])
      },
    ],
    [
      'a key that is made once',
      async (pool) => {
        await pool.query('UPDATE sub SET owner = coalesce(owner, $1)', [randomUUID()])
        return { owner: (await read(pool)).owner }
      },
    ],
    [
      'a line for its own cart',
      async (pool, who) => {
        const { rows } = await pool.query(`INSERT INTO cart (state) VALUES ('open') RETURNING id`)
        await pool.query('INSERT INTO line (cart_id, who) VALUES ($1, $2)', [rows[0].id, who])
        return { id: rows[0].id, file: `/files/${who}-${nanoid()}.png` }
      },
    ],
  ])('safe: %s', async (_, work) => {
    expect((await seeded(work)).verdict).toBe('race-free')
  })

  test.each(sample([0, 1, 2, 3]))(
    'safe: what run %s draws happens to be letters alone',
    async (letters) => {
      const drawn = ['', '', '', ''].map(() => nanoid().padEnd(12, '1a2b'))
      drawn[letters] = 'vfijzysxwiok'
      let runs = 0
      const work: Work = async (pool, who) => {
        const nonce = who === 'a' ? (drawn[runs++] ?? `${nanoid()}7x8y9z`) : 'b'
        await pool.query('UPDATE sub SET doc = doc || $1', [JSON.stringify({ [who]: nonce })])
      }
      expect((await seeded(work)).verdict).toBe('race-free')
    },
  )

  test.each(sample([0, 1, 2, 3]))('safe: what run %s draws could be a time', async (timely) => {
    const drawn = ['', '', '', ''].map((_, at) => `97${at}4061523849${at}2${at}`)
    drawn[timely] = '1735682940137592'
    let runs = 0
    const work: Work = async (pool, who) => {
      const nonce = who === 'a' ? (drawn[runs++] ?? `98${runs}51604738${100 + runs}`) : 'b'
      await pool.query('UPDATE sub SET doc = doc || $1', [JSON.stringify({ [who]: nonce })])
    }
    expect((await seeded(work)).verdict).toBe('race-free')
  })

  test('what is neither a time nor a key cannot be compared, and costs the proof', async () => {
    const raise: Work = async (pool) =>
      write(pool, 'price', Number((await read(pool)).price ?? 0) + Math.random() * 100)
    const { verdict, notes } = await seeded(raise)
    expect(verdict).toBe('bounded')
    expect(notes.map(({ message }) => message).join()).toContain('public.sub.price')
  })
})

describe('X24: an answer is looked into, and what cannot be looked into costs the proof', () => {
  /** The table ends alike in every order; only the answers tell that two have won. */
  const claim =
    (answer: (won: boolean) => unknown): Work =>
    async (pool) => {
      const { rows } = await pool.query('SELECT taken FROM prize WHERE id = 1')
      if (rows[0].taken === true) return answer(false)
      await pool.query('UPDATE prize SET taken = true WHERE id = 1')
      return answer(true)
    }
  class Hidden {
    readonly #won: boolean
    constructor(won: boolean) {
      this.#won = won
    }
    tell(): boolean {
      return this.#won
    }
  }
  class Shown {
    readonly #won: boolean
    constructor(won: boolean) {
      this.#won = won
    }
    get won(): boolean {
      return this.#won
    }
  }

  test.each<[string, (won: boolean) => unknown]>(
    sample([
      ['the body of a Response', (won) => new Response(won ? 'won' : 'lost')],
      ['a Response inside of an object', (won) => ({ answers: [Response.json({ won })] })],
      [
        'the type of a Response',
        (won) => new Response('', { headers: { 'content-type': won ? 'a/b' : 'a/c' } }),
      ],
      ['a getter', (won) => Object.defineProperty({}, 'won', { get: () => won })],
      ['a getter of a class', (won) => new Shown(won)],
      ['a symbol', (won) => ({ [Symbol.for('won')]: won })],
      ['-0', (won) => (won ? -0 : 0)],
      ['1 and a text', (won) => (won ? '1' : 1)],
      ['toJSON', (won) => ({ toJSON: () => ({ won }) })],
      [
        'far inside of a circle',
        (won) => {
          const circle = { one: { two: { three: { four: { won } } } }, self: {} }
          circle.self = circle
          return circle
        },
      ],
    ]),
  )('race: %s', async (_, answer) => {
    expect((await seeded(claim(answer))).verdict).toBe('race')
  })

  test.each<[string, (won: boolean) => unknown, string]>([
    ['a class that keeps it to itself', (won) => new Hidden(won), 'Hidden'],
    ['a function', (won) => () => won, 'function'],
    ['a promise in an object', (won) => ({ later: Promise.resolve(won) }), 'Promise'],
  ])('no proof: %s', async (_, answer, named) => {
    const { verdict, coverage, notes, trouble } = await seeded(claim(answer))
    expect([verdict, coverage.exhaustive, trouble]).toEqual(['bounded', false, undefined])
    expect(notes.map(({ message }) => message).join()).toContain(named)
  })

  test('safe: a Response, a class and toJSON', async () => {
    const once: Work = async (pool) => {
      const { rowCount } = await pool.query('UPDATE prize SET taken = true WHERE NOT taken')
      const response = Response.json({ won: rowCount }, { status: rowCount === 1 ? 201 : 409 })
      return { response, at: { toJSON: () => new Date() }, shown: new Shown(rowCount === 1) }
    }
    // Its getter shows what the class keeps; whether it keeps more nobody can tell.
    const { verdict, notes, trouble } = await seeded(once)
    expect([verdict, notes.map(({ kind }) => kind), trouble]).toEqual([
      'bounded',
      ['unseen'],
      undefined,
    ])
    const bare: Work = async (pool) => {
      const { rowCount } = await pool.query('UPDATE prize SET taken = true WHERE NOT taken')
      return Response.json({ won: rowCount }, { status: rowCount === 1 ? 201 : 409 })
    }
    expect((await seeded(bare)).verdict).toBe('race-free')
  })
})

describe('X25: a number may be a key, or not', () => {
  const two: Work = async (pool, who) => {
    await pool.query('INSERT INTO ev (who, part) VALUES ($1, 1)', [who])
    await pool.query('INSERT INTO ev (who, part) VALUES ($1, 2)', [who])
    return 2
  }

  test('a constant is no race: that it is no key cannot be told, and that is said', async () => {
    const { verdict, notes } = await seeded(two)
    expect(verdict).toBe('bounded')
    expect(notes.map(({ message }) => message).join()).toMatch(/a returned 2.*key/)
  })

  test('a key stays one', async () => {
    const own: Work = async (pool, who) => {
      const { rows } = await pool.query('INSERT INTO ev (who) VALUES ($1) RETURNING id', [who])
      await pool.query('INSERT INTO ev (who, part) VALUES ($1, 2)', [who])
      return rows[0].id
    }
    expect((await seeded(own)).verdict).toBe('race-free')
  })

  test('a count is told as it was returned', async () => {
    const count: Work = async (pool, who) => {
      const { rows } = await pool.query('SELECT count(*)::int AS n FROM bid')
      await pool.query('INSERT INTO bid (who) VALUES ($1)', [who])
      return rows[0].n + 1
    }
    const report = await seeded(count)
    expect(report.verdict).toBe('race')
    const text = formatReport(report, { colour: false, columns: 200 })
    expect(text).toMatch(/a returned 1 and b returned 1/)
    expect(text).not.toContain('‹new›')
  })
})

test('X26: a refusal that some serial order gives is not told as one that none gives', async () => {
  const bid: Work = async (pool, who) => {
    await pool.query('INSERT INTO bid (who) VALUES ($1)', [who])
    const { rowCount } = await pool.query('SELECT who FROM bid')
    if (rowCount === 1) return { status: 201 }
    await pool.query('DELETE FROM bid WHERE who = $1', [who])
    return { status: 409 }
  }
  const { verdict, notes } = await seeded(bid)
  const text = notes.map(({ message }) => message).join('\n')
  expect([verdict, text]).toEqual(['race-free', expect.not.stringContaining('in no serial order')])
  expect(text).toMatch(
    /a returned \{"status":409\} and b returned \{"status":409\}.*no serial order gives both/,
  )
})
