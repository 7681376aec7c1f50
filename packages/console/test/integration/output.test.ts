/** What leaves the server: data that stays data, and nothing that was to be masked. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { createHoldfast, type Holdfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { eventsOf } from '../support/events-of.ts'
import {
  auth,
  bearer,
  type Database,
  openDatabase,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

const attack = `</script><img src=x onerror=alert(1)>"'\u2028`
/** Occurs in everything that may be private; never in a namespace, book, table or schedule. */
const secret = 'zebra77'

let database: Database
let application: pg.Pool
let hf: Holdfast<pg.PoolClient>
const curtain = deferred<void>()
const playing: Promise<unknown>[] = []

beforeAll(async () => {
  database = await openDatabase()
  application = new pg.Pool({ connectionString: database.url, application_name: 'shop' })
  hf = createHoldfast(fromPg(application))
  await migrate(fromPg(application))
  await application.query('CREATE TABLE jobs (id int)')
  await ledger()
  await hf.leases.acquire(`import:${secret}`, { ttl: '1 h', note: `note ${secret}` })
  await hf
    .schedule({
      name: 'nightly',
      guarantee: 'at-most-once',
      handler: () => {
        throw new Error(`failed for ${secret}`)
      },
    })
    .runNow()
    .catch(() => undefined)
  await incident()
  const recorder = await hf.observe.record({ every: '1 s' })
  await recorder.stop()
})

afterAll(async () => {
  curtain.resolve()
  await Promise.allSettled(playing)
  await application.end()
  await database.end()
})

async function ledger(): Promise<void> {
  const calls = hf.quota({ name: 'api-calls', limit: 100, per: 'month', timeZone: 'UTC' })
  await calls.consume(`user-${secret}`, 1, { operationId: `op-${secret}` })
  await calls.hold(`user-${secret}`, 5, { operationId: `hold-${secret}`, ttl: '1 h' })
}

/** One holds a lock with a payload in its name and runs a statement with one in its text; one waits. */
async function incident(): Promise<void> {
  const key = lockKey('cart', `${attack}${secret}`)
  const held = deferred<void>()
  const holder = hf.guard(key, async (tx) => {
    await tx.query(`SELECT '${attack.replaceAll("'", "''")}', '${secret}', 4711 -- ${secret}`)
    held.resolve()
    await curtain.promise
  })
  playing.push(holder)
  await held.promise
  playing.push(hf.guard(key, () => Promise.resolve(), { waitMs: 600_000, queue: false }))
  await waitUntil('somebody waits', async () => {
    const { sessions } = await hf.observe.locks()
    return sessions.find(({ waitsFor }) => waitsFor !== undefined)
  })
}

const start = (options: Partial<ConsoleOptions> = {}): Promise<StartedConsole> =>
  startConsole({ driver: database.driver, auth, ...options })

const account = `/api/account?book=api-calls&key=user-${secret}`
/** Every route of data, and whether the secret is in it if nothing is masked. */
const routes: readonly (readonly [string, boolean])[] = [
  ['/api/locks', true],
  ['/api/history', false],
  ['/api/lock-minutes', false],
  ['/api/names', true],
  ['/api/transactions', true],
  ['/api/books', false],
  [account, true],
  ['/api/keys?book=api-calls', true],
  [account.replace('account', 'usage'), false],
  ['/api/followers', false],
  ['/api/holds', true],
  ['/api/leases', true],
  ['/api/schedules', true],
  ['/api/claims', false],
  ['/api/doctor', false],
]

async function treeOf({ get }: StartedConsole) {
  const response = await get('/api/locks', bearer(tokens.view))
  return (await response.json()) as {
    at: string
    roots: number[]
    sessions: { pid: number; query: string; label: string; holds: { name: string }[] }[]
  }
}

describe('payloads in names, keys and SQL', () => {
  test('come back as JSON that no browser reads as anything else', async () => {
    const one = await start()
    const tree = await treeOf(one)
    const [root] = tree.roots
    const holder = tree.sessions.find(({ pid }) => pid === root)
    expect(holder?.holds[0]?.name).toBe(`cart:${attack}${secret}`)
    expect(holder?.query).toContain('onerror=alert(1)')
    for (const [path] of [...routes, [`/api/session/${root}`]] as const) {
      const { status, headers } = await one.get(path, bearer(tokens.view))
      expect([path, status]).toEqual([path, 200])
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    }
  })

  test('in a request are not in its answer', async () => {
    const { get } = await start()
    const payload = encodeURIComponent(attack)
    for (const path of [
      `/${payload}`,
      `/api/${payload}`,
      `/api/session/${payload}`,
      `/api/locks?database=${payload}`,
      `/api/names?limit=${payload}`,
      `/api/history/tree?at=${payload}`,
      `/api/account?book=${payload}&key=${payload}&before=${payload}`,
    ]) {
      const text = await (await get(path, bearer(tokens.view))).text()
      expect(text).not.toContain('onerror')
    }
  })

  test('cannot break out of an event', async () => {
    const one = await start()
    const events = await eventsOf(one, '/api/events', { until: 2 })
    expect(events.map(({ event }) => event)).toEqual(['tree', 'tree'])
    expect(events[0]?.data).toContain('onerror')
    expect(JSON.parse(events[0]?.data ?? '')).toHaveProperty('hotKeys')
  })
})

describe('the page', () => {
  test('runs only our own files, in no frame, and tells nobody where it came from', async () => {
    const { get } = await start()
    const { headers } = await get('/')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy.split('; ').toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
      "trusted-types 'none'",
    ])
    expect(policy).not.toMatch(/unsafe|https?:|data:|\*/)
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin')
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    expect(headers.get('permissions-policy')).toContain('camera=()')
  })

  test('refusals carry the same headers', async () => {
    const { get } = await start()
    for (const path of ['/api/info', '/nothing', '/api/login']) {
      const { headers, status } = await get(path)
      expect(status).toBeGreaterThanOrEqual(400)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })
})

describe('redaction', () => {
  test('control: without it, the secret is where it is expected', async () => {
    const { get } = await start()
    for (const [path, expected] of routes) {
      const text = await (await get(path, bearer(tokens.view))).text()
      expect([path, text.includes(secret)]).toEqual([path, expected])
    }
  })

  test('keys and queries are masked in every answer, in events and in the history', async () => {
    const one = await start({ redact: true })
    const tree = await treeOf(one)
    const [root] = tree.roots
    const at = encodeURIComponent(tree.at)
    const paths = [
      ...routes.map(([path]) => path),
      `/api/session/${root}`,
      `/api/history/tree?at=${at}`,
    ]
    for (const path of paths) {
      const response = await one.get(path, bearer(tokens.view))
      expect([path, response.status]).toEqual([path, 200])
      expect([path, (await response.text()).includes(secret)]).toEqual([path, false])
    }
    for (const { data } of await eventsOf(one, '/api/events', { until: 2 })) {
      expect(data).not.toContain(secret)
      expect(data).not.toContain('onerror')
    }
  })

  test('what a key belongs to stays, and the same key has the same mask', async () => {
    const one = await start({ redact: true })
    const { sessions, roots } = await treeOf(one)
    const holder = sessions.find(({ pid }) => pid === roots[0])
    const name = holder?.holds[0]?.name ?? ''
    expect(name).toMatch(/^cart:•\w{6}$/)
    expect(holder?.label).toMatch(/^cart:•\w{6}$/)
    expect(holder?.query.trim()).toBe('SELECT ?, ?, ?')
    const waiting = sessions.find(({ pid }) => pid !== roots[0]) as never as {
      waitsFor: { name: string; namespace: string }
    }
    expect(waiting.waitsFor).toMatchObject({ name, namespace: 'cart' })
    // It can be followed: the history knows the lock by its mask.
    const history = await one.get(
      `/api/history?lock=${encodeURIComponent(name)}`,
      bearer(tokens.view),
    )
    const { points } = (await history.json()) as {
      points: { holders: number[]; waiting: number }[]
    }
    expect(points.at(-1)).toMatchObject({ holders: [roots[0]], waiting: 1 })
  })

  test('either alone, and by a function of the user', async () => {
    const keys = await treeOf(await start({ redact: { keys: () => 'X' } }))
    const queries = await treeOf(await start({ redact: { queries: true } }))
    const [one, other] = [keys, queries].map(({ sessions, roots }) =>
      sessions.find(({ pid }) => pid === roots[0]),
    )
    expect([one?.holds[0]?.name, one?.query.includes(secret)]).toEqual(['cart:X', true])
    expect(other?.holds[0]?.name).toContain(secret)
    expect(other?.query).not.toContain(secret)
  })

  test('the page is told that it is on', async () => {
    const { get } = await start({ redact: { keys: true } })
    const info = await (await get('/api/info', bearer(tokens.view))).json()
    expect(info).toMatchObject({ redaction: { keys: true, queries: false } })
  })
})

describe('errors', () => {
  test('of the database tell a code: no text, no address, no stack', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://me:hunter2@127.0.0.1:1/nowhere' })
    const { get } = await startConsole({ driver: fromPg(pool), auth })
    for (const path of ['/api/locks', '/api/books', '/api/doctor']) {
      const response = await get(path, bearer(tokens.view))
      const text = await response.text()
      expect([path, response.status]).toEqual([path, 502])
      expect(text).not.toMatch(/hunter2|127\.0\.0\.1|nowhere|ECONNREFUSED|node_modules|\bat /)
    }
    await pool.end()
  })

  test('without the schema, what needs it says so, and the tree is there', async () => {
    const empty = await openDatabase()
    const { get } = await startConsole({ driver: empty.driver, auth })
    const statuses = async (...paths: string[]): Promise<number[]> =>
      await Promise.all(paths.map(async (path) => (await get(path, bearer(tokens.view))).status))
    expect(await statuses('/api/locks', '/api/transactions', '/api/doctor')).toEqual([
      200, 200, 200,
    ])
    const books = await get('/api/books', bearer(tokens.view))
    expect(await books.json()).toMatchObject({ error: { code: 'SCHEMA_MISSING' } })
    await empty.end()
  })
})
