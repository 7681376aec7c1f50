/** What reports say of races that really happened: the recogniser on real runs. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import type { Failure, Report } from '../../src/core/model.ts'
import { explore } from '../../src/explore.ts'
import { explainFailure } from '../../src/report/explain.ts'
import { htmlReport } from '../../src/report/page/html-report.ts'
import type { DatabaseContext, Flow } from '../../src/run/options.ts'
import { formatReport } from '../../src/report/terminal/format-report.ts'
import '../../src/vitest.ts'

const { directUrl: url } = await testDatabase()
const admin = new pg.Client(url)

beforeAll(async () => {
  await admin.connect()
  await admin.query(`
    CREATE TABLE users (id int PRIMARY KEY, active boolean NOT NULL);
    CREATE TABLE uploads (id serial PRIMARY KEY, user_id int NOT NULL REFERENCES users, name text);
    CREATE TABLE stock (sku text PRIMARY KEY, qty int NOT NULL);
    CREATE TABLE jobs (id int PRIMARY KEY, status text NOT NULL, worker text);
    CREATE TABLE doctors (name text PRIMARY KEY, on_call boolean NOT NULL);
    CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
    CREATE TABLE members (id serial PRIMARY KEY, email text);
    CREATE TABLE slots (id serial PRIMARY KEY, email text UNIQUE);
    CREATE TABLE orders (id serial PRIMARY KEY, user_id int NOT NULL);
    CREATE TABLE only_once (id int NOT NULL)`)
})
afterAll(() => admin.end())

async function seed({ query }: DatabaseContext): Promise<void> {
  await query(`TRUNCATE users, uploads, stock, jobs, doctors, accounts, members, slots, orders, only_once
    RESTART IDENTITY`)
  await query('INSERT INTO users VALUES (1, true)')
  await query(`INSERT INTO uploads (user_id, name) SELECT 1, n::text FROM generate_series(1, 99) n`)
  await query(`INSERT INTO stock VALUES ('A-1', 5)`)
  await query(`INSERT INTO jobs VALUES (7, 'pending', NULL), (8, 'pending', NULL)`)
  await query(`INSERT INTO doctors VALUES ('alice', true), ('bob', true)`)
  await query('INSERT INTO accounts VALUES (1, 50), (2, 50)')
}

type Query = (text: string, values?: unknown[]) => Promise<pg.QueryResult>

/** A flow that is one transaction. */
function transaction(body: (query: Query) => Promise<unknown>, level = ''): Flow {
  return async ({ pool }) => {
    const client = await pool.connect()
    try {
      await client.query(`BEGIN ${level}`.trim())
      const value = await body((text, values) => client.query(text, values))
      await client.query('COMMIT')
      return value
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
}

/** A flow whose statements commit one by one. */
function loose(body: (query: Query) => Promise<unknown>): Flow {
  return ({ pool }) => body((text, values) => pool.query(text, values))
}

const count = 'SELECT count(*)::int AS used FROM uploads WHERE user_id = $1'
const lockUser = 'SELECT FROM users WHERE id = $1 FOR UPDATE'

const upload =
  (name: string, before = '') =>
  async (query: Query): Promise<void> => {
    if (before !== '') await query(before, [1])
    const { rows } = await query(count, [1])
    if (rows[0].used >= 100) throw new Error('quota exceeded')
    await query('INSERT INTO uploads (user_id, name) VALUES ($1, $2)', [1, name])
  }

const take =
  (locking: 'none' | 'late' | 'early') =>
  async (query: Query): Promise<void> => {
    const read = 'SELECT qty FROM stock WHERE sku = $1'
    const { rows } = await query(locking === 'early' ? `${read} FOR UPDATE` : read, ['A-1'])
    if (locking === 'late') await query(`${read} FOR UPDATE`, ['A-1'])
    await query('UPDATE stock SET qty = $1 WHERE sku = $2', [rows[0].qty - 1, 'A-1'])
  }

const takeOne = async (query: Query): Promise<void> => {
  const { rows } = await query('SELECT qty FROM stock WHERE sku = $1', ['A-1'])
  if (rows[0].qty < 5) throw new Error('too few')
  await query('UPDATE stock SET qty = qty - 1 WHERE sku = $1', ['A-1'])
}

const claim =
  (worker: string) =>
  async (query: Query): Promise<unknown> => {
    const { rows } = await query(`SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT 1`)
    if (rows.length === 0) return undefined
    await query(`UPDATE jobs SET status = 'running', worker = $1 WHERE id = $2`, [
      worker,
      rows[0].id,
    ])
    return rows[0].id
  }

const goHome =
  (who: string) =>
  async (query: Query): Promise<void> => {
    const { rows } = await query('SELECT name FROM doctors WHERE on_call = true')
    if (rows.length < 2) throw new Error('somebody must stay')
    await query('UPDATE doctors SET on_call = false WHERE name = $1', [who])
  }

const transfer =
  (from: number, to: number) =>
  async (query: Query): Promise<void> => {
    await query('UPDATE accounts SET balance = balance - 1 WHERE id = $1', [from])
    await query('UPDATE accounts SET balance = balance + 1 WHERE id = $1', [to])
  }

const register =
  (table: string) =>
  async (query: Query): Promise<void> => {
    const { rows } = await query(`SELECT id FROM ${table} WHERE email = $1`, ['a@example.org'])
    if (rows.length === 0)
      await query(`INSERT INTO ${table} (email) VALUES ($1)`, ['a@example.org'])
  }

/** Swallows the duplicate and goes on in the failed transaction. */
const findOrCreate = async (query: Query): Promise<void> => {
  const { rows } = await query('SELECT id FROM slots WHERE email = $1', ['a@example.org'])
  if (rows.length > 0) return
  await query('INSERT INTO slots (email) VALUES ($1)', ['a@example.org']).catch(() => undefined)
  await query('SELECT id FROM slots WHERE email = $1', ['a@example.org'])
}

const migrate = async (query: Query): Promise<unknown> => {
  const { rowCount } = await query(
    'INSERT INTO only_once (id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM only_once WHERE id = $1)',
    [1],
  )
  return rowCount
}

const sum = async (query: Query): Promise<number> => {
  const one = await query('SELECT balance FROM accounts WHERE id = 1')
  const two = await query('SELECT balance FROM accounts WHERE id = 2')
  return one.rows[0].balance + two.rows[0].balance
}

const order = async (query: Query): Promise<void> => {
  const { rows } = await query('SELECT active FROM users WHERE id = $1', [1])
  if (rows[0].active !== true) throw new Error('not active')
  await query('INSERT INTO orders (user_id) VALUES ($1)', [1])
}

const deactivate = async (query: Query): Promise<void> => {
  const { rows } = await query('SELECT id FROM orders WHERE user_id = $1', [1])
  if (rows.length > 0) throw new Error('has orders')
  await query('UPDATE users SET active = false WHERE id = $1', [1])
}

function exploreTwo(alice: Flow, bob: Flow, rest: object = {}): Promise<Report> {
  return explore({ url, seed, flows: { alice, bob }, ...rest })
}

describe('names of races that happened', () => {
  test.each<[string, Flow, Flow, string | RegExp, object?]>([
    [
      'check-then-insert',
      transaction(upload('a')),
      transaction(upload('b')),
      'Lock the parent row',
    ],
    [
      'check-then-insert',
      loose(upload('a')),
      loose(upload('b')),
      'SELECT 1 FROM users WHERE id = 1 FOR UPDATE',
    ],
    [
      'check-then-insert',
      transaction(upload('a', lockUser)),
      transaction(upload('b')),
      'Let bob take the lock',
    ],
    [
      'check-then-insert',
      loose(upload('a', lockUser)),
      loose(upload('b', lockUser)),
      /BEGIN before the lock/,
    ],
    [
      'check-then-insert',
      transaction(upload('a', lockUser), 'ISOLATION LEVEL REPEATABLE READ'),
      transaction(upload('b', lockUser), 'ISOLATION LEVEL REPEATABLE READ'),
      'at READ COMMITTED',
    ],
    ['check-then-insert', loose(migrate), loose(migrate), 'CREATE UNIQUE INDEX ON only_once (id)'],
    [
      'check-then-insert',
      transaction(register('members')),
      transaction(register('members')),
      'CREATE UNIQUE INDEX ON members (email)',
    ],
    [
      'lost update',
      transaction(take('none')),
      transaction(take('none')),
      "SET qty = qty - 1 WHERE sku = 'A-1'",
    ],
    ['lost update', loose(take('none')), loose(take('none')), 'FOR UPDATE'],
    ['lost update', transaction(take('late')), transaction(take('late')), 'Move the lock'],
    [
      'unhandled duplicate',
      transaction(findOrCreate),
      transaction(findOrCreate),
      'INSERT INTO slots … ON CONFLICT DO NOTHING',
    ],
    ['stale check', transaction(takeOne), transaction(takeOne), /^Lock the row when reading it/],
    ['double claim', loose(claim('a')), loose(claim('b')), 'FOR UPDATE SKIP LOCKED'],
    [
      'write skew',
      transaction(goHome('alice')),
      transaction(goHome('bob')),
      'FROM doctors WHERE on_call = true FOR UPDATE',
    ],
    ['read skew', transaction(sum), transaction(transfer(1, 2)), 'REPEATABLE READ READ ONLY'],
    ['write skew', transaction(order), transaction(deactivate), "lockKey('users', id)"],
    [
      'deadlock',
      transaction(transfer(1, 2)),
      transaction(transfer(2, 1)),
      'ORDER BY id FOR UPDATE',
      { deadlocks: 'fail' },
    ],
    [
      'lost after crash',
      loose(transfer(1, 2)),
      loose(transfer(1, 2)),
      'one transaction',
      { crash: true },
    ],
  ])('%s %#', async (anomaly, alice, bob, fix, rest) => {
    const report = await exploreTwo(alice, bob, rest)
    expect(report).toHaveRace(anomaly)
    const found = explainFailure(report, report.failure as Failure)
    expect(found.anomaly).toBe(anomaly)
    expect(found.fixes.map(({ text, code = '' }) => `${text} ${code}`).join('\n')).toMatch(fix)
    // Every step that the sentence names is one of the run.
    const named = [...found.why.matchAll(/\((\d+)\)/g)].map(([, number]) => Number(number))
    expect(named.length).toBeGreaterThan(0)
    expect(Math.max(...named)).toBeLessThanOrEqual(found.history.moments.length)
    expect(htmlReport(report)).toContain('<svg class="picture large"')
  })
})

describe('and of those that cannot', () => {
  test.each<[string, Flow, Flow]>([
    [
      'the row of the user locked first',
      transaction(upload('a', lockUser)),
      transaction(upload('b', lockUser)),
    ],
    ['the row locked when it is read', transaction(take('early')), transaction(take('early'))],
  ])('%s', async (_, alice, bob) => {
    const report = await exploreTwo(alice, bob)
    expect(report).toBeRaceFree()
    expect(() => expect(report).toHaveRace()).toThrow(/no race in/)
  })

  test.each<[string, Flow]>([
    ['23505', transaction(register('slots'))],
    ['40001', transaction(take('none'), 'ISOLATION LEVEL REPEATABLE READ')],
  ])('an error %s that leaves nothing behind is noted', async (sqlstate, flow) => {
    const report = await exploreTwo(flow, flow)
    expect(report).toBeRaceFree()
    expect(formatReport(report)).toContain(sqlstate)
  })

  test('flows that never meet are vacuous', async () => {
    // A mutex of the application: one connects when the other is done.
    let last: Promise<unknown> = Promise.resolve()
    const alone = (flow: Flow): Flow => {
      return (context) => {
        last = last.then(() => flow(context))
        return last
      }
    }
    const add = (name: string): Flow => alone(transaction(upload(name)))
    const report = await explore({ url, seed, flows: { alice: add('a'), bob: add('b') } })
    expect(() => expect(report).toBeRaceFree()).toThrow(/VACUOUS/)
  })
})
