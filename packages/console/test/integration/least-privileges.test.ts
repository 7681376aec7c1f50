/** The role that docs/security.md makes is enough for every page, and cannot do anything else. */
import { readFileSync } from 'node:fs'
import { createHoldfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { createObserver } from 'holdfast/observe'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  openDatabase,
  startConsole,
  tokens,
} from '../support/started-console.ts'
import { isHostile } from '../../../holdfast/test/support/hostile-database.ts'

const page = readFileSync(new URL('../../../../docs/security.md', import.meta.url), 'utf8')
const [looking = '', acting = ''] = [...page.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(
  ([, text = '']) => text,
)

let owner: Database
let pool: pg.Pool
let role = ''

beforeAll(async () => {
  owner = await openDatabase()
  await migrate(owner.driver)
  // Roles belong to the whole server, which other tests use at the same time.
  const { rows } = await owner.pool.query('SELECT current_database() AS name')
  role = `console_${rows[0].name}`
  await owner.pool.query(looking.replaceAll('holdfast_console', `"${role}"`))
  const url = new URL(owner.url)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent('change me')
  pool = new pg.Pool({ connectionString: url.href, max: 3 })

  const hf = createHoldfast(owner.driver)
  const calls = hf.quota({ name: 'api-calls', limit: 100, per: 'month', timeZone: 'UTC' })
  await calls.consume('user-1', 1, { operationId: 'a' })
  await calls.hold('user-1', 1, { operationId: 'b', ttl: '1 h' })
})

afterAll(async () => {
  await pool.end()
  await owner.pool.query(`DROP OWNED BY "${role}"; DROP ROLE "${role}"`)
  await owner.end()
})

test('it can look at everything', async () => {
  const { get } = await startConsole({ driver: fromPg(pool), auth })
  for (const path of [
    '/api/locks',
    '/api/lock-minutes',
    '/api/names',
    '/api/transactions',
    '/api/books',
    '/api/account?book=api-calls&key=user-1',
    '/api/keys?book=api-calls',
    '/api/usage?book=api-calls&key=user-1',
    '/api/followers',
    '/api/holds',
    '/api/leases',
    '/api/schedules',
    '/api/claims',
    '/api/doctor',
  ]) {
    const response = await get(path, bearer(tokens.view))
    expect([path, response.status, await response.text()]).toEqual([path, 200, expect.anything()])
  }
})

test('it sees the query and the lock of somebody else', async () => {
  const { get } = await startConsole({ driver: fromPg(pool), auth })
  const hf = createHoldfast(owner.driver)
  await hf.guard(lockKey('cart', 7), async (tx) => {
    const { rows } = await tx.query('SELECT pg_backend_pid() AS pid')
    const response = await get(`/api/session/${rows[0].pid}`, bearer(tokens.view))
    expect(await response.json()).toMatchObject({
      session: {
        hidden: false,
        query: 'SELECT pg_backend_pid() AS pid',
        holds: [{ name: 'cart:7' }],
      },
    })
  })
})

test('a role without the schema is told so on every page', async () => {
  const nobody = `nobody_${role}`
  await owner.pool.query(`CREATE ROLE "${nobody}" LOGIN`)
  const url = new URL(owner.url)
  url.username = encodeURIComponent(nobody)
  const bare = new pg.Pool({ connectionString: url.href, max: 2 })
  const { get } = await startConsole({ driver: fromPg(bare), auth })
  for (const path of ['/api/claims', '/api/leases', '/api/books', '/api/schedules']) {
    const response = await get(path, bearer(tokens.view))
    expect([path, response.status, await codeOf(response)]).toEqual([path, 409, 'SCHEMA_MISSING'])
  }
  await bare.end()
  await owner.pool.query(`DROP ROLE "${nobody}"`)
})

test('it can change nothing', async () => {
  for (const statement of [
    'DELETE FROM holdfast.balance',
    'UPDATE holdfast.work SET id = id',
    'INSERT INTO holdfast.lease DEFAULT VALUES',
    `SELECT holdfast.note_locks('[]', '[]')`,
    `SELECT holdfast.pause_schedule('x', true)`,
    'CREATE TABLE holdfast.x ()',
    // A hostile database lets everybody create there.
    ...(isHostile ? [] : ['CREATE TABLE public.x ()']),
    'TABLE pg_catalog.pg_authid',
  ]) {
    const refused = await pool.query(statement).catch((error: unknown) => error)
    expect([statement, refused]).toEqual([statement, expect.objectContaining({ code: '42501' })])
  }
})

test('it cannot act, until it is given that too', async () => {
  const { get } = await startConsole({
    driver: fromPg(pool),
    auth,
    actions: ['terminate', 'schedule-pause', 'job-retry', 'job-delete'],
    audit: () => undefined,
  })
  const act = async (action: string, body: object): Promise<Response> =>
    await get(`/api/actions/${action}`, {
      method: 'POST',
      headers: { ...bearer(tokens.operate).headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  // Not of a superuser, whom nobody else may signal.
  const app = `app_${role}`
  await owner.pool.query(`CREATE ROLE "${app}" LOGIN`)
  const url = new URL(owner.url)
  url.username = encodeURIComponent(app)
  const client = new pg.Client({ connectionString: url.href })
  client.on('error', () => undefined)
  await client.connect()
  const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
  const pid = rows[0].pid as number
  const session = await createObserver(owner.driver).session(pid)
  const { startedAt, transactionStartedAt = null } = session ?? {}
  const target = { pid, startedAt, transactionStartedAt, confirm: String(pid) }
  const refused = await act('terminate', target)
  expect(refused.status).toBe(403)
  expect(await refused.json()).toMatchObject({
    error: {
      code: 'SIGNAL_RIGHT_MISSING',
      next: expect.stringContaining('GRANT pg_signal_backend'),
    },
  })
  await owner.pool.query(`REVOKE pg_read_all_stats FROM "${role}"`)
  const unseen = await act('terminate', target)
  expect([unseen.status, await codeOf(unseen)]).toEqual([403, 'STATS_RIGHT_MISSING'])
  await owner.pool.query(`GRANT pg_read_all_stats TO "${role}"`)
  const jobs = createHoldfast(owner.driver).work({ queue: 'mails' })
  const [{ id } = { id: '' }, other] = await jobs.enqueue([
    { payload: 1, maxAttempts: 1 },
    { payload: 2, maxAttempts: 1 },
  ])
  await jobs.fail(await jobs.claim(2))
  const notYet = await act('job-retry', { job: id, confirm: id })
  expect(await codeOf(notYet)).toBe('SCHEMA_MISSING')
  await owner.pool.query(acting.replaceAll('holdfast_console', `"${role}"`))
  expect(await (await act('terminate', target)).json()).toEqual({ done: true })
  await client.end()
  await owner.pool.query(`DROP ROLE "${app}"`)
  expect(await (await act('job-retry', { job: id, confirm: id })).json()).toEqual({ done: true })
  const deleted = await act('job-delete', { job: other?.id, confirm: other?.id })
  expect(await deleted.json()).toEqual({ done: true })
  const paused = await act('schedule-pause', { schedule: 'x', confirm: 'x' })
  expect(await codeOf(paused)).not.toBe('DATABASE_FAILED')
})
