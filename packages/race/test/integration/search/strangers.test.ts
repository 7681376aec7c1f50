/** What strangers made the explorer say that was not so. */
import { withClient } from '@holdfast/testkit'
import { Client, type PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore, type ExploreOptions } from '../../../src/explore.ts'
import { record } from '../../../src/record.ts'
import { explainRace } from '../../../src/report/explain-race.ts'
import { formatReport } from '../../../src/report/terminal/format-report.ts'
import { readStamp } from '../../../src/run/catalogue/catalogue.ts'
import { connectControl } from '../../../src/run/connection/control.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE x (id int PRIMARY KEY, v int);
      CREATE TABLE log (id int PRIMARY KEY, v int);
      CREATE TABLE cfg (id int PRIMARY KEY);
      CREATE TABLE carts (id serial PRIMARY KEY, status text);
      CREATE TABLE items (id serial PRIMARY KEY, cart_id int REFERENCES carts, name text);
      CREATE TABLE agents (id int PRIMARY KEY, busy bool);
      CREATE TABLE audit (id serial PRIMARY KEY, what text);
      CREATE TABLE held (id int PRIMARY KEY, until timestamptz, note text);
      CREATE TABLE products (id int PRIMARY KEY, stock int NOT NULL);
      CREATE TABLE orders (id serial PRIMARY KEY, product_id int REFERENCES products, who text);
      CREATE TABLE bookings (room int, a int, b int, who text);
      CREATE TABLE one (one int, n int);
      INSERT INTO cfg VALUES (1);
      INSERT INTO one VALUES (1, 0)`),
  )
})

const look = (options: Omit<ExploreOptions, 'url'>): Promise<Report> =>
  explore({
    url,
    onProgress: () => undefined,
    seed: async ({ query }) => {
      await query('TRUNCATE x, log, carts, items, agents, audit, held, bookings RESTART IDENTITY')
      await query('TRUNCATE products, orders RESTART IDENTITY')
      await query('INSERT INTO x VALUES (1, 0); INSERT INTO log VALUES (1, 0)')
      await query('INSERT INTO agents VALUES (1, false), (2, false)')
      await query(`INSERT INTO held VALUES (1, '2024-05-01 10:00:00.123+00', '‹a›')`)
      await query('INSERT INTO products VALUES (1, 1)')
    },
    ...options,
  })

async function withOne<T>({ pool }: FlowContext, work: (client: PoolClient) => Promise<T>) {
  const client = await pool.connect()
  try {
    return await work(client)
  } finally {
    client.release()
  }
}

const value = async (on: Pick<PoolClient, 'query'>): Promise<number> =>
  (await on.query<{ v: number }>('SELECT v FROM x WHERE id = 1')).rows[0]?.v ?? -1
const raise: Flow = ({ pool }) => pool.query('UPDATE x SET v = v + 1 WHERE id = 1')
const readTwice: Flow = async ({ pool }) => [await value(pool), await value(pool)]

describe('races that were called race-free', () => {
  const flows: Readonly<Record<string, Readonly<Record<string, Flow>>>> = {
    'a key of a row that another flow has made, in a table and in an answer': (() => {
      const add: Flow = async ({ pool, flow }) => {
        await pool.query(`INSERT INTO carts (status) VALUES ('open')`)
        const { rows } = await pool.query<{ id: number }>('SELECT max(id) AS id FROM carts')
        const id = rows[0]?.id
        await pool.query('INSERT INTO items (cart_id, name) VALUES ($1, $2)', [id, flow])
        return { id }
      }
      return { a: add, b: add }
    })(),
    'a row of the seed, whose key was also drawn in another table': (() => {
      const assign: Flow = async ({ pool }) => {
        const { rows } = await pool.query<{ id: number }>(
          'SELECT id FROM agents WHERE NOT busy ORDER BY id LIMIT 1',
        )
        await pool.query('UPDATE agents SET busy = true WHERE id = $1', [rows[0]?.id])
        await pool.query(`INSERT INTO audit (what) VALUES ('assigned')`)
        return { agentId: rows[0]?.id }
      }
      return { a: assign, b: assign }
    })(),
    'a moment with a fraction of a second, which the seed wrote': (() => {
      const extend: Flow = async ({ pool }) => {
        const { rows } = await pool.query<{ until: Date }>('SELECT until FROM held')
        const until = new Date(Number(rows[0]?.until) + 3_600_000)
        await pool.query('UPDATE held SET until = $1', [until])
      }
      return { a: extend, b: extend }
    })(),
    'a text that looks like one of our own words': (() => {
      const append: Flow = async ({ pool, flow }) => {
        const { rows } = await pool.query<{ note: string }>('SELECT note FROM held')
        await pool.query('UPDATE held SET note = $1', [`${rows[0]?.note}${flow}`])
      }
      return { a: append, b: append }
    })(),
    'BEGIN inside of a transaction': {
      w: (context) =>
        withOne(context, async (client) => {
          const note = () => client.query('UPDATE log SET v = v + 1 WHERE id = 1')
          await note()
          await note()
          await client.query('BEGIN')
          await client.query('UPDATE x SET v = v + 1 WHERE id = 1')
          await client.query('BEGIN')
          await note()
          await client.query('COMMIT')
        }),
      r: readTwice,
    },
    'a savepoint beside another statement': {
      w: (context) =>
        withOne(context, async (client) => {
          await client.query('BEGIN')
          await client.query('UPDATE x SET v = v + 1 WHERE id = 1')
          await client.query('SAVEPOINT s; SELECT id FROM cfg')
          await client
            .query('INSERT INTO cfg VALUES (1)')
            .catch(() => client.query('ROLLBACK TO s'))
          await client.query('COMMIT')
        }),
      r: readTwice,
    },
    'a message between sessions': {
      l: (context) =>
        withOne(context, async (client) => {
          let heard = 0
          client.on('notification', () => (heard += 1))
          await client.query('LISTEN ch')
          await client.query('SELECT id FROM cfg')
          await client.query('UNLISTEN ch')
          client.removeAllListeners('notification')
          return { heard }
        }),
      n: ({ pool }) => pool.query(`SELECT pg_notify('ch', 'x')`),
    },
    'a level that was taken back': {
      r: (context) =>
        withOne(context, async (client) => {
          await client.query(`SET default_transaction_isolation = 'repeatable read'`)
          await client.query('SELECT id FROM cfg')
          await client.query('RESET default_transaction_isolation')
          await client.query('BEGIN')
          const seen = [await value(client), await value(client)]
          await client.query('COMMIT')
          return seen
        }),
      w: raise,
    },
    'an answer that JSON would make alike': {
      r: async ({ pool }) => ((await value(pool)) === (await value(pool)) ? null : Number.NaN),
      w: raise,
    },
  }

  test.each(Object.entries(flows))('%s', async (_, both) => {
    const { verdict } = await look({ flows: both })
    expect(verdict).toBe('race')
  })

  test('a first query of a transaction that takes its snapshot and reads nothing', async () => {
    for (const rng of [1, 2, 3]) {
      const { verdict } = await look({
        rng,
        flows: {
          r: (context) =>
            withOne(context, async (client) => {
              const before = await value(client)
              await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
              await client.query('SELECT current_database()')
              const after = await value(client)
              await client.query('COMMIT')
              return [before, after]
            }),
          w: raise,
        },
      })
      expect(verdict).toBe('race')
    }
  })

  test('orders that should have been alike and were not cost the proof', async () => {
    await withClient(url, (client) =>
      client.query(`
        CREATE FUNCTION raise_x() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN UPDATE x SET v = v + 5; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION raise_x()`),
    )
    const { verdict, coverage } = await look({
      flows: { w: ({ pool }) => pool.query(`INSERT INTO audit (what) VALUES ('x')`), r: readTwice },
    })
    await withClient(url, (client) => client.query('DROP TRIGGER late ON audit'))
    expect([verdict, coverage.exhaustive]).not.toEqual(['race-free', true])
  })

  test('a name in `oracle` that is none is refused', async () => {
    const looking = look({ flows: { a: raise, b: raise }, oracle: { tables: ['walets'] } })
    await expect(looking).rejects.toThrow('no table or column named walets')
  })
})

describe('no races that were called so', () => {
  test('two connections of one flow, in either order', async () => {
    const { verdict } = await look({
      flows: {
        w: ({ pool }) =>
          Promise.all([
            pool.query('UPDATE x SET v = 1 WHERE id = 1'),
            pool.query('UPDATE x SET v = 2 WHERE id = 1'),
          ]),
        r: ({ pool }) => pool.query('UPDATE log SET v = 1 WHERE id = 1'),
      },
    })
    expect(verdict).not.toBe('race')
  })

  test('the body of an answer, read as a text', async () => {
    const add: Flow = async ({ pool, flow }) => {
      const { rows } = await pool.query(
        'INSERT INTO orders (product_id, who) VALUES (1, $1) RETURNING id',
        [flow],
      )
      return [JSON.stringify(rows[0]), `/orders/${rows[0].id}`]
    }
    const { verdict, failure } = await look({ flows: { a: add, b: add, c: add } })
    expect([verdict, failure?.message]).toEqual(['race-free', undefined])
  })
})

describe('stories', () => {
  test('a lost update is one, also beside a row that refers to it', async () => {
    const buy: Flow = (context) =>
      withOne(context, async (client) => {
        await client.query('BEGIN')
        const { rows } = await client.query<{ stock: number }>(
          'SELECT stock FROM products WHERE id = 1',
        )
        await client.query('UPDATE products SET stock = $1 WHERE id = 1', [
          (rows[0]?.stock ?? 0) - 1,
        ])
        await client.query('INSERT INTO orders (product_id, who) VALUES (1, $1)', [context.flow])
        await client.query('COMMIT')
      })
    const told = explainRace(await look({ flows: { a: buy, b: buy } }))
    expect(told?.anomaly).toBe('lost update')
    expect(told?.fixes[0]?.code).toContain('SET stock = stock - 1 WHERE id = 1')
  })

  test('times that overlap are no unique index', async () => {
    const book: Flow = async ({ pool, flow }) => {
      const { rowCount } = await pool.query(
        'SELECT FROM bookings WHERE room = $1 AND a < $2 AND b > $3',
        [1, 5, 2],
      )
      if (rowCount === 0) {
        await pool.query('INSERT INTO bookings VALUES ($1, $2, $3, $4)', [1, 2, 5, flow])
      }
    }
    const told = explainRace(await look({ flows: { a: book, b: book } }))
    expect(told?.anomaly).toBe('check-then-insert')
    expect(JSON.stringify(told?.fixes)).not.toContain('UNIQUE')
  })
})

describe("state: 'restore'", () => {
  const add: Flow = ({ pool }) => pool.query('UPDATE one SET n = n + 1')
  const restoring = { state: 'restore' as const, flows: { a: add, b: add } }

  test('a sequence that was set, and a table with a column of its own name', async () => {
    const asked = `SELECT last_value, is_called, (SELECT n FROM one) AS n FROM audit_id_seq`
    const { before, after } = await withClient(url, async (client) => {
      await client.query(`SELECT setval('audit_id_seq', 42, false)`)
      const before = (await client.query(asked)).rows
      await explore({
        url,
        onProgress: () => undefined,
        ...restoring,
        flows: {
          a: ({ pool }) => pool.query(`INSERT INTO audit (what) VALUES ('x')`),
          b: add,
        },
      })
      return { before, after: (await client.query(asked)).rows }
    })
    expect(after).toEqual(before)
  })

  test('what would change the rows that are put back is refused beforehand', async () => {
    await withClient(url, (client) => client.query('ALTER TABLE one ADD CHECK (n < 0) NOT VALID'))
    const exploring = explore({ url, onProgress: () => undefined, ...restoring })
    await expect(exploring).rejects.toThrow('a constraint that is NOT VALID')
    await withClient(url, (client) => client.query('ALTER TABLE one DROP CONSTRAINT one_n_check'))
  })
})

describe('what is read from the server, and not guessed', () => {
  test('the level of a session that has it from its connection', async () => {
    const { steps } = await record({
      url,
      flow: async (context) => {
        const options = '-c default_transaction_isolation=serializable'
        const own = new Client({ connectionString: context.url, options })
        await own.connect()
        await value(own)
        await own.end()
        await value(context.pool)
      },
    })
    const levels = steps.map(({ footprint }) => footprint.isolation)
    expect(levels).toEqual(['serializable', 'read committed'])
  })

  test('a rule that was made since', async () => {
    const control = await connectControl(url)
    const before = await readStamp(control)
    await control.query('CREATE RULE quiet AS ON DELETE TO held DO INSTEAD NOTHING')
    expect(await readStamp(control)).not.toBe(before)
    await control.query('DROP RULE quiet ON held')
    await control.close()
  })

  test('a table that only the CHECK of a domain looks at', async () => {
    await withClient(url, (client) =>
      client.query(`
        CREATE FUNCTION few(int) RETURNS bool LANGUAGE sql AS 'SELECT $1 >= (SELECT v FROM x WHERE id = 1)';
        CREATE DOMAIN few AS int CHECK (few(VALUE));
        CREATE TABLE priced (n few)`),
    )
    const { steps } = await record({
      url,
      state: 'restore',
      flow: (context) =>
        withOne(context, async (client) => {
          await client.query('BEGIN')
          await value(client)
          await client.query('INSERT INTO priced VALUES (5)')
          await client.query('COMMIT')
        }),
    })
    await withClient(url, (client) => client.query('DROP DOMAIN few CASCADE; DROP FUNCTION few'))
    expect(steps[2]?.footprint.touches).toContainEqual({ object: 'public.x', mode: 'read' })
  })
})

describe('words', () => {
  test('flows that always fail are not free of races', async () => {
    const typo: Flow = ({ pool }) => pool.query('SELECT * FROM walets')
    const report = await look({ flows: { a: typo, b: typo } })
    expect([report.verdict, report.trouble?.kind]).toEqual(['vacuous', 'always-fails'])
    expect(formatReport(report, { columns: 400 })).toMatch(/covered +nothing: only orders of whole/)
  })

  test('flows that are always refused are told', async () => {
    const refuse: Flow = async ({ pool }) => {
      await pool.query('SELECT v FROM x WHERE id = 1 LIMIT 1')
      return { status: 409 }
    }
    const { notes } = await look({ flows: { a: refuse, b: refuse } })
    expect(notes.map(({ kind }) => kind)).toEqual(['always-refused'])
  })

  test('LIMIT is noted, unless there is one row at most', async () => {
    const some: Flow = ({ pool }) => pool.query('SELECT v FROM x WHERE v = 0 LIMIT 1')
    const { notes } = await look({ flows: { a: some, b: raise } })
    expect(notes.map(({ kind }) => kind)).toContain('unordered-limit')
  })

  test('a lock that found no row is named', async () => {
    const book: Flow = (context) =>
      withOne(context, async (client) => {
        await client.query('BEGIN')
        const { rowCount } = await client.query('SELECT FROM bookings WHERE room = 1 FOR UPDATE')
        if (rowCount === 0)
          await client.query('INSERT INTO bookings VALUES (1, 2, 5, $1)', [context.flow])
        await client.query('COMMIT')
      })
    const told = explainRace(await look({ flows: { a: book, b: book } }))
    expect(told?.why).toContain('but it found no row')
  })
})
