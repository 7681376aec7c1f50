/** What reports said to strangers that was not so, or that PostgreSQL refused: names, stories and first fixes. */
import { withClient } from '@holdfast/testkit'
import pg, { type PoolClient } from 'pg'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import type { Report } from '../../src/core/model.ts'
import { explore } from '../../src/explore.ts'
import { explainRace, type RaceExplanation } from '../../src/report/explain-race.ts'
import { formatReport } from '../../src/report/terminal/format-report.ts'
import type { DatabaseContext, Flow } from '../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE plain (id int PRIMARY KEY, balance int NOT NULL);
      CREATE TABLE stamped (id int PRIMARY KEY, balance int NOT NULL, updated_at timestamptz);
      CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.updated_at := now(); RETURN NEW; END $$;
      CREATE TRIGGER stamp BEFORE UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION stamp();
      CREATE TABLE limits (ip text PRIMARY KEY, hits int NOT NULL);
      CREATE TABLE prof (u int PRIMARY KEY, name text, mail text);
      CREATE TABLE seats (id int PRIMARY KEY, booked_by int);
      CREATE TABLE tasks (id int PRIMARY KEY, locked_at timestamptz);
      CREATE TABLE users (id int PRIMARY KEY, n int NOT NULL);
      CREATE TABLE uploads (id serial PRIMARY KEY, user_id int REFERENCES users);
      CREATE TABLE picks (id serial PRIMARY KEY, user_id int NOT NULL, qty int);
      CREATE TABLE codes (id serial PRIMARY KEY, code text)`),
  )
})

const seed = async ({ query }: DatabaseContext): Promise<void> => {
  await query(
    'TRUNCATE plain, stamped, limits, prof, seats, tasks, users, uploads, codes, picks RESTART IDENTITY',
  )
  await query('INSERT INTO plain VALUES (1, 100), (2, 0)')
  await query('INSERT INTO stamped VALUES (1, 100, now()), (2, 0, now())')
  await query(`INSERT INTO limits VALUES ('ip', 2)`)
  await query(`INSERT INTO prof VALUES (1, 'n', 'm')`)
  await query('INSERT INTO seats VALUES (1, NULL), (2, NULL), (3, NULL)')
  await query('INSERT INTO tasks VALUES (1, NULL), (2, NULL), (3, NULL)')
  await query('INSERT INTO users VALUES (1, 0)')
  await query('INSERT INTO uploads (user_id) SELECT 1 FROM generate_series(1, 99)')
  await query(`INSERT INTO codes (code) VALUES ('SAVE')`)
}

type Body = (client: PoolClient, flow: string, pool: pg.Pool) => Promise<unknown>
const transaction =
  (body: Body, begin = 'BEGIN'): Flow =>
  async ({ pool, flow }) => {
    const client = await pool.connect()
    try {
      await client.query(begin)
      const answer = await body(client, flow, pool)
      await client.query('COMMIT')
      return answer
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }

const run = (a: Flow, b: Flow = a): Promise<Report> =>
  explore({ url, seed, flows: { a, b }, onProgress: () => undefined, budget: { ms: 60_000 } })

async function told(a: Flow, b: Flow = a): Promise<RaceExplanation> {
  const report = await run(a, b)
  expect(report.verdict).toBe('race')
  return explainRace(report) as RaceExplanation
}

describe('a transfer', () => {
  const transfer = (table: string): Flow =>
    transaction(async (client) => {
      const { rows } = await client.query(`SELECT balance FROM ${table} WHERE id = 1`)
      if (rows[0].balance < 60) throw new Error('insufficient funds')
      await client.query(`UPDATE ${table} SET balance = balance - 60 WHERE id = 1`)
      await client.query(`UPDATE ${table} SET balance = balance + 60 WHERE id = 2`)
    })

  test.each(['plain', 'stamped'])('is a stale check, on the table %s', async (table) => {
    const { anomaly, why, fixes } = await told(transfer(table))
    expect(anomaly).toBe('stale check')
    expect(why).not.toContain('different rows')
    expect(fixes[0]?.code).toContain('AND balance >= 60')
  })
})

describe('ON CONFLICT DO UPDATE that adds', () => {
  const hit = transaction(async (client) => {
    const { rows } = await client.query(`SELECT hits FROM limits WHERE ip = 'ip'`)
    if ((rows[0]?.hits ?? 0) >= 3) throw new Error('limited')
    await client.query(
      `INSERT INTO limits (ip, hits) VALUES ('ip', 1) ON CONFLICT (ip) DO UPDATE SET hits = limits.hits + 1`,
    )
  })

  test('replaces nothing, and needs no UPDATE', async () => {
    const { anomaly, why, fixes } = await told(hit)
    expect(anomaly).toBe('stale check')
    expect(why).not.toContain('replaced')
    expect(fixes.map(({ code }) => code).join()).not.toContain('UPDATE limits SET')
    expect(fixes[0]?.code).toContain(`FROM limits WHERE ip = 'ip' FOR UPDATE`)
  })
})

test('whoever saves the whole row compares the whole row', async () => {
  const save = (set: Record<string, string>): Flow =>
    transaction(async (client) => {
      const { rows } = await client.query('SELECT name, mail FROM prof WHERE u = 1')
      const row = { ...rows[0], ...set }
      await client.query('UPDATE prof SET name = $1, mail = $2 WHERE u = 1', [row.name, row.mail])
    })
  const { fixes } = await told(save({ name: 'new' }), save({ mail: 'other' }))
  expect(fixes[0]?.code).toMatch(/WHERE u = 1 AND /)
  expect(fixes[0]?.code).toContain(`mail = 'm'`)
  expect(fixes[0]?.code).toMatch(/AND (?:.* AND )?name = 'n'/)
})

describe('one row of a queue taken twice is a double claim, whatever its column is called', () => {
  test.each([
    ['seats', 'booked_by', '7'],
    ['tasks', 'locked_at', 'now()'],
  ])('%s.%s', async (table, column, value) => {
    const claim = transaction(async (client) => {
      const { rows } = await client.query(
        `SELECT id FROM ${table} WHERE ${column} IS NULL ORDER BY id LIMIT 1`,
      )
      await client.query(`UPDATE ${table} SET ${column} = ${value} WHERE id = $1`, [rows[0].id])
      return { taken: rows[0].id }
    })
    const { anomaly, fixes } = await told(claim)
    expect(anomaly).toBe('double claim')
    expect(fixes[0]?.code).toContain('FOR UPDATE SKIP LOCKED')
  })
})

describe('a suggested lock is SQL that the server takes', () => {
  test.each<[string, string, string]>([
    [
      'an alias',
      'SELECT u.n FROM users u WHERE u.id = 1',
      'FROM users u WHERE u.id = 1 FOR UPDATE',
    ],
    [
      'an outer join',
      'SELECT u.n FROM uploads p RIGHT JOIN users u ON p.user_id = u.id WHERE u.id = 1 LIMIT 1',
      'FOR UPDATE OF u',
    ],
    [
      'two tables',
      'SELECT u.n FROM users AS u, uploads p WHERE p.user_id = u.id AND u.id = 1 LIMIT 1',
      'FOR UPDATE OF u',
    ],
  ])('%s', async (_, read, wanted) => {
    const add = transaction(async (client) => {
      const { rows } = await client.query(read)
      await client.query('UPDATE users SET n = $1 WHERE id = 1', [rows[0].n + 1])
    })
    const { fixes } = await told(add)
    const lock = fixes.find(({ code }) => code?.includes('FOR UPDATE'))?.code ?? ''
    expect(lock).toContain(wanted)
    await withClient(url, (client) => client.query(`EXPLAIN ${lock.replace('…', '1')}`))
  })
})

test('at REPEATABLE READ a lock on the parent row comes with the level at which it helps', async () => {
  const add = (first: string, lock?: string): Flow =>
    transaction(async (client) => {
      if (lock !== undefined) await client.query(lock)
      const { rows } = await client.query(
        'SELECT count(*)::int AS n FROM uploads WHERE user_id = 1',
      )
      if (rows[0].n >= 100) throw new Error('quota exceeded')
      await client.query('INSERT INTO uploads (user_id) VALUES (1)')
    }, first)
  const { fixes } = await told(add('BEGIN ISOLATION LEVEL REPEATABLE READ'))
  const [begin = '', lock = ''] = (fixes[0]?.code ?? '').split('; ')
  expect([begin, lock]).toEqual([
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    'SELECT 1 FROM users WHERE id = 1 FOR UPDATE',
  ])
  expect((await run(add(begin, lock))).verdict).toBe('race-free')
})

test('a constant that happens to equal a key of its table is shown as it is', async () => {
  const add = (user: number): Flow =>
    transaction(async (client) => {
      const { rows } = await client.query('SELECT count(*)::int AS n FROM picks')
      if (rows[0].n > 0) throw new Error('full')
      await client.query(`INSERT INTO picks (user_id, qty) VALUES (${user}, 5)`)
    })
  const text = formatReport(await run(add(1), add(2)), { colour: false })
  expect(text).toMatch(/\+ 2 {8}5/)
  expect(text).not.toContain('‹new› public.')
})

describe('a lock by name', () => {
  const redeem = transaction(async (client, flow) => {
    const { rows } = await client.query(`SELECT id FROM codes WHERE code = 'SAVE'`)
    if (rows.length > 1) throw new Error('redeemed')
    await client.query(`INSERT INTO codes (code) SELECT 'SAVE' WHERE $1 <> ''`, [flow])
  })

  test('is SQL where the project has no Holdfast', async () => {
    vi.spyOn(process, 'cwd').mockReturnValue('/')
    try {
      const { fixes } = await told(redeem)
      const all = fixes.map(({ code = '' }) => code).join('\n')
      expect(all).toContain(`SELECT pg_advisory_xact_lock(hashtext('codes SAVE'))`)
      expect(all).not.toContain('hf.')
    } finally {
      vi.restoreAllMocks()
    }
  })
})

describe('the client of the transaction forgotten', () => {
  const spend = (lock: string): Flow =>
    transaction(async (client, _, pool) => {
      const { rows } = await client.query(`SELECT balance FROM plain WHERE id = 1 ${lock}`)
      if (rows[0].balance < 60) throw new Error('insufficient funds')
      await pool.query('UPDATE plain SET balance = balance - 60 WHERE id = 1 AND balance >= 60')
      await client.query('UPDATE users SET n = n + 1 WHERE id = 1')
    })

  test('a flow that waits for itself is told so', async () => {
    const { trouble } = await run(spend('FOR UPDATE'))
    expect(trouble?.message).toMatch(
      /a waits for a lock that it holds itself: .*connection 2 waits for it \(3\): UPDATE plain .*client\.query\(\), not pool\.query\(\)/,
    )
  })

  test('a write beside the transaction is to be brought into it, before anything is locked', async () => {
    const { fixes } = await told(spend(''))
    const lock = fixes.find(({ code }) => code?.includes('FOR UPDATE'))
    expect(lock?.text).toMatch(/^Send \(\d+\) and \(\d+\) through one client/)
  })

  test('a pool of its own is what the explorer does not see', async () => {
    const own = new pg.Pool({ connectionString: url })
    const add: Flow = async ({ pool }) => {
      const { rows } = await own.query('SELECT n FROM users WHERE id = 1')
      await pool.query('UPDATE users SET n = $1 WHERE id = 1', [rows[0].n + 1])
    }
    const { verdict, trouble } = await run(add)
    await own.end()
    expect([verdict, trouble?.kind]).toEqual(['inconclusive', 'not-reproduced'])
    expect(trouble?.message).toContain('A client that a flow does not get from its context')
  })
})

test('flows that only read are told that they do', async () => {
  const look: Flow = ({ pool }) => pool.query('SELECT n FROM users').then(() => undefined)
  const report = await run(look)
  expect(report.verdict).toBe('vacuous')
  expect(formatReport(report, { colour: false })).toContain('No flow writes or locks anything')
})
