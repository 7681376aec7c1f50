/** What may be done: nothing by default, and then what was switched on, by who may, written down. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { waitUntil } from '@holdfast/testkit'
import { createHoldfast } from 'holdfast'
import { createObserver } from 'holdfast/observe'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import {
  act,
  type AuditedConsole,
  auth,
  bearer,
  codeOf,
  type Database,
  openDatabase,
  startAudited,
  startConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
  await migrate(database.driver)
})
afterAll(() => database.end())

const every = ['cancel', 'terminate', 'schedule-pause', 'schedule-resume', 'schedule-run'] as const

async function started(options: Partial<ConsoleOptions> = {}): Promise<AuditedConsole> {
  return await startAudited({
    driver: database.driver,
    ownApplication: 'console-test',
    actions: every,
    ...options,
  })
}

async function connection(name = 'shop'): Promise<{ client: pg.Client; pid: number }> {
  const client = new pg.Client({ connectionString: database.url, application_name: name })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
  return { client, pid: rows[0].pid }
}

/** A transaction that nobody is in: for what is refused before anybody looks. */
const never = '2001-01-01T00:00:00.000000Z'
const on = (pid: number): object => ({
  pid,
  startedAt: never,
  transactionStartedAt: null,
  confirm: String(pid),
})

/** What a page sends: the transaction that it shows. */
async function shown(pid: number): Promise<object> {
  const session = await createObserver(database.driver).session(pid)
  const { startedAt = never, transactionStartedAt = null } = session ?? {}
  return { pid, startedAt, transactionStartedAt, confirm: String(pid) }
}

describe('who may', () => {
  test('a read-only token may not, and that is written down', async () => {
    const { one, audit } = await started()
    const { client, pid } = await connection()
    for (const action of every) {
      const response = await act(one, action, on(pid), tokens.view)
      expect([response.status, await codeOf(response)]).toEqual([403, 'ROLE_TOO_LOW'])
    }
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
    expect(audit.map(({ who, result, code }) => [who, result, code])).toEqual(
      every.map(() => ['view token', 'refused', 'ROLE_TOO_LOW']),
    )
  })

  test('R5: the audit of a refused attempt says what it was about', async () => {
    const { one, audit } = await started({ actions: [] })
    await act(one, 'terminate', on(4711), tokens.view)
    await act(one, 'cancel', on(4712))
    await act(one, 'schedule-pause', { schedule: 'nightly', confirm: 'nightly' })
    await act(one, 'cancel', { nothing: true })
    expect(audit.map(({ target, code }) => [target, code])).toEqual([
      ['4711', 'ROLE_TOO_LOW'],
      ['4712', 'ACTION_NOT_ALLOWED'],
      ['nightly', 'ACTION_NOT_ALLOWED'],
      ['unknown', 'ACTION_NOT_ALLOWED'],
    ])
  })

  test('nor a token for metrics, nor nobody', async () => {
    const { one, audit } = await started()
    expect((await act(one, 'terminate', on(1), tokens.metrics)).status).toBe(403)
    expect((await act(one, 'terminate', on(1), 'nobody-nobody-nobody-nobody')).status).toBe(401)
    expect(audit).toEqual([])
  })

  test('nothing is switched on by default, also not for operate', async () => {
    const { one } = await started({ actions: [] })
    const { client, pid } = await connection()
    for (const action of every) {
      expect(await codeOf(await act(one, action, on(pid)))).toBe('ACTION_NOT_ALLOWED')
    }
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
  })

  test('a token may have less than the console allows, and never more', async () => {
    const narrow = 'narrow-narrow-narrow-narrow'
    const { one } = await started({
      actions: ['cancel', 'schedule-pause'],
      auth: {
        tokens: [
          { name: 'n', role: 'operate', token: narrow, actions: ['schedule-pause', 'terminate'] },
        ],
      },
    })
    expect(await codeOf(await act(one, 'cancel', on(1), narrow))).toBe('ACTION_NOT_ALLOWED')
    expect(await codeOf(await act(one, 'terminate', on(1), narrow))).toBe('ACTION_NOT_ALLOWED')
    const info = await (await one.get('/api/info', bearer(narrow))).json()
    expect(info).toMatchObject({ actions: ['schedule-pause'] })
  })

  test('an observer alone can do nothing', async () => {
    const one = await startConsole({
      observer: createObserver(database.driver),
      auth,
      actions: every,
      audit: () => undefined,
    })
    expect(await codeOf(await act(one, 'cancel', on(1)))).toBe('ACTION_NOT_ALLOWED')
    expect((await one.get('/api/doctor', bearer(tokens.view))).status).toBe(404)
  })
})

describe('sessions', () => {
  test('a statement is cancelled, a session is ended, both before and after written down', async () => {
    const { one, audit } = await started()
    const { client, pid } = await connection()
    const sleeping = client.query('SELECT pg_sleep(60)')
    const outcome = sleeping.catch((error: unknown) => error)
    await waitUntil('it sleeps', async () => {
      const { rows } = await database.pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'`,
        [pid],
      )
      return rows[0]
    })
    await act(one, 'cancel', await shown(pid))
    expect(await outcome).toMatchObject({ code: '57014' })
    audit.length = 0
    const response = await act(one, 'terminate', await shown(pid))
    expect(await response.json()).toEqual({ done: true })
    await expect(client.query('SELECT 1')).rejects.toThrow(/terminat|closed|queryable/)
    const entry = {
      who: 'operate token',
      role: 'operate',
      action: 'terminate',
      database: 'main',
      target: String(pid),
    }
    expect(audit).toMatchObject([
      { ...entry, result: 'asked' },
      { ...entry, result: 'done' },
    ])
    expect(new Date(audit[0]?.at ?? '').getTime()).toBeGreaterThan(0)
  })

  test('one that was not confirmed, or not as it is, stays', async () => {
    const { one, audit } = await started()
    const { client, pid } = await connection()
    for (const confirm of [undefined, '', 'yes', true, pid, String(pid + 1), ` ${pid}`]) {
      const body = { ...(await shown(pid)), confirm }
      expect(await codeOf(await act(one, 'terminate', body))).toBe('NOT_CONFIRMED')
    }
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
    expect(audit.length).toBeGreaterThan(0)
    for (const told of audit) {
      expect(told).toMatchObject({ result: 'refused', code: 'NOT_CONFIRMED' })
    }
  })

  test('pids that are none', async () => {
    const { one } = await started()
    for (const pid of [0, -1, 1.5, 2 ** 31, '1', null, [1], { a: 1 }]) {
      const body = { ...on(1), pid, confirm: JSON.stringify(pid) }
      const response = await act(one, 'terminate', body)
      expect([response.status, await codeOf(response)]).toEqual([400, 'BAD_REQUEST'])
    }
  })

  test('only a client of this database: not the server itself, not a neighbour, not the console', async () => {
    const { one, audit } = await started()
    const { client } = await connection()
    const { rows } = await client.query(
      `SELECT pid FROM pg_stat_activity WHERE backend_type <> 'client backend' LIMIT 3`,
    )
    const elsewhere = await openDatabase()
    const neighbour = await elsewhere.pool.query('SELECT pg_backend_pid() AS pid')
    // Another one than the action itself will use.
    const other = await database.pool.connect()
    const own = await other.query('SELECT pg_backend_pid() AS pid')
    const pids = [...rows, ...neighbour.rows, ...own.rows].map(({ pid }) => pid as number)
    expect(pids.length).toBe(5)
    for (const pid of pids) {
      const body = await shown(pid)
      expect(await codeOf(await act(one, 'terminate', body))).toBe('NO_SUCH_SESSION')
    }
    await expect(elsewhere.pool.query('SELECT 1')).resolves.toBeDefined()
    await expect(other.query('SELECT 1')).resolves.toBeDefined()
    other.release()
    expect(audit.at(-1)).toMatchObject({ result: 'failed', code: 'NO_SUCH_SESSION' })
    await elsewhere.end()
  })

  test('not one that got the process id of the one that was seen', async () => {
    const { one } = await started()
    const { client, pid } = await connection()
    const right = await shown(pid)
    const wrong = { ...right, startedAt: never }
    expect(await codeOf(await act(one, 'terminate', wrong))).toBe('NO_SUCH_SESSION')
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
    expect(await (await act(one, 'terminate', right)).json()).toEqual({ done: true })
  })

  test('R3: not a transaction that a pooled session has begun since', async () => {
    const { one, audit } = await started()
    const { client, pid } = await connection()
    await client.query('BEGIN')
    const seen = await shown(pid)
    await client.query('COMMIT')
    await client.query('BEGIN')
    for (const action of ['cancel', 'terminate']) {
      const response = await act(one, action, seen)
      expect([response.status, await codeOf(response)]).toEqual([409, 'TRANSACTION_OVER'])
    }
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(audit.at(-1)).toMatchObject({ result: 'failed', code: 'TRANSACTION_OVER' })
  })

  test('R3: not without saying which transaction is meant', async () => {
    const { one } = await started()
    const { client, pid } = await connection()
    const { startedAt, transactionStartedAt } = on(pid) as Record<string, unknown>
    const wrong = [
      {},
      { startedAt },
      { transactionStartedAt },
      { startedAt: 1, transactionStartedAt },
    ]
    for (const seen of [...wrong, { startedAt, transactionStartedAt: 7 }]) {
      const response = await act(one, 'terminate', { pid, ...seen, confirm: String(pid) })
      expect([response.status, await codeOf(response)]).toEqual([400, 'BAD_REQUEST'])
    }
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
  })
})

describe('schedules', () => {
  test('are paused, resumed and asked for a tick', async () => {
    const { one, audit } = await started()
    const hf = createHoldfast(database.driver)
    const nightly = hf.schedule({
      name: 'nightly',
      guarantee: 'at-most-once',
      every: '1 h',
      handler: () => Promise.resolve(),
    })
    await nightly.runNow()
    const schedule = { schedule: 'nightly', confirm: 'nightly' }
    const done = async (action: string): Promise<unknown> =>
      (await act(one, action, schedule)).json()
    expect(await done('schedule-pause')).toEqual({ done: true })
    expect(await done('schedule-pause')).toEqual({ done: false })
    expect(await done('schedule-run')).toEqual({ done: true })
    expect(await done('schedule-resume')).toEqual({ done: true })
    expect(audit.filter(({ result }) => result !== 'asked').map(({ result }) => result)).toEqual([
      'done',
      'nothing',
      'done',
      'done',
    ])
    expect(await codeOf(await act(one, 'schedule-run', { schedule: 'x', confirm: 'x' }))).toBe(
      'NO_SUCH_SCHEDULE',
    )
  })
})

describe('the audit', () => {
  test('comes first: if it cannot be written, nothing is done', async () => {
    const { one } = await started({
      audit: () => {
        throw new Error('disk full')
      },
    })
    const { client, pid } = await connection()
    const response = await act(one, 'terminate', await shown(pid))
    expect([response.status, await codeOf(response)]).toEqual([500, 'FAILED'])
    await expect(client.query('SELECT 1')).resolves.toBeDefined()
  })

  test('is on a channel too', async () => {
    const heard: unknown[] = []
    const hear = (entry: unknown): void => void heard.push(entry)
    subscribe('holdfast:console.action', hear)
    onTestFinished(() => void unsubscribe('holdfast:console.action', hear))
    const { one, audit } = await started()
    await act(one, 'cancel', on(2 ** 31 - 1))
    expect(heard).toEqual(audit)
    expect(heard).toHaveLength(2)
  })
})
