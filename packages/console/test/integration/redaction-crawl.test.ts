/** R2: with `redact: true` nothing that users wrote leaves, at whatever route, in whatever event. */
import { fromPg } from 'holdfast/drivers/pg'
import { examine } from 'holdfast/health'
import type { ObservedLease } from 'holdfast/observe'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiRoutes } from '../../src/server/api-routes.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import type { ConsoleInside } from '../../src/server/create-console.ts'
import { Redactor } from '../../src/watch/redactor.ts'
import { type ReportRules, reportRules } from '../../src/watch/report-rules.ts'
import type { Rules } from '../../src/watch/rule.ts'
import type { AuditEntry } from '../../src/server/actions.ts'
import { eventsOf } from '../support/events-of.ts'
import { type PlantedDatabase, plantedDatabase } from '../support/planted-database.ts'
import {
  auth,
  bearer,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

let database: PlantedDatabase
let looking: pg.Pool
beforeAll(async () => {
  database = await plantedDatabase()
  looking = new pg.Pool({ connectionString: database.url, max: 3, application_name: 'looking' })
})
afterAll(async () => {
  await looking.end()
  await database.end()
})

const actions = [
  'job-retry',
  'job-delete',

  'cancel',
  'terminate',
  'schedule-pause',
  'schedule-resume',
  'schedule-run',
] as const

function start(
  options: Partial<ConsoleOptions>,
  inside: Partial<ConsoleInside> = {},
): Promise<StartedConsole> {
  const driver = fromPg(looking)
  const { metrics } = database
  const all = { driver, auth, actions, metrics, audit: () => undefined, ...options }
  return startConsole(all, { pollMs: 50, ...inside })
}

/** Every way to ask each route of the router, and what came back: status, headers and body. */
async function* crawl(
  console: StartedConsole,
  init: RequestInit,
): AsyncGenerator<readonly [path: string, answer: string]> {
  const told = async (path: string, more: RequestInit = {}): Promise<[string, string]> => {
    const response = await console.get(path, { ...init, ...more })
    const headers = [...response.headers].map((header) => header.join(': ')).join('\n')
    return [`${path} ${response.status}`, `${headers}\n\n${await response.text()}`]
  }
  const json = async <T>(path: string): Promise<Partial<T>> =>
    (await (await console.get(path, init)).json().catch(() => ({}))) as Partial<T>
  const { sessions = [] } = await json<{ sessions: { pid: number; holds: { name: string }[] }[] }>(
    '/api/locks',
  )
  const { points = [] } = await json<{ points: { at: string }[] }>('/api/history')
  const { jobs = [] } = await json<{ jobs: { id: string }[] }>('/api/jobs')
  const known: Readonly<Record<string, readonly string[]>> = {
    'api/session/<pid>': sessions.map(({ pid }) => `/api/session/${pid}`),
    'api/history': [
      '/api/history',
      ...sessions.flatMap(({ holds }) =>
        holds.slice(0, 1).map(({ name }) => `/api/history?lock=${encodeURIComponent(name)}`),
      ),
    ],
    'api/history/tree': points
      .slice(-2)
      .map(({ at }) => `/api/history/tree?at=${encodeURIComponent(at)}`),
    'api/account': database.accounts.map(
      ({ key, scope }) =>
        `/api/account?${new URLSearchParams({ book: 'credits', key, scope }).toString()}`,
    ),
    'api/keys': ['/api/keys?book=credits', '/api/keys?book=credits&limit=2'],
    'api/usage': database.accounts.map(
      ({ key, scope }) =>
        `/api/usage?${new URLSearchParams({ book: 'credits', key, scope }).toString()}`,
    ),
    'api/job': jobs.map(({ id }) => `/api/job?id=${id}`),
    'api/transactions': ['/api/transactions?limit=200'],
  }
  for (const { path, method } of apiRoutes) {
    if (path === 'api/events') {
      for (const { data } of await eventsOf(console, '/api/events', { until: 2, init })) {
        yield [path, data]
      }
    } else if (method === 'GET') {
      for (const one of known[path] ?? [`/${path}`]) yield await told(one)
    } else {
      // With what people type: none of it may come back, and nothing here is confirmed.
      const [schedule] = database.schedules
      const headers = new Headers(init.headers)
      headers.set('content-type', 'application/json')
      for (const body of [{ schedule, pid: 1, token: schedule }, { schedule, confirm: 'no' }, []]) {
        yield await told(`/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      }
    }
  }
}

/** Where something planted was found, by route. */
async function leaksOf(console: StartedConsole, init: RequestInit): Promise<[string, string[]][]> {
  const leaks: [string, string[]][] = []
  for await (const [path, answer] of crawl(console, init)) {
    const found = database.planted.foundIn(answer)
    if (found.length > 0) leaks.push([path.replace(/[?\d].*/, ''), found])
  }
  return leaks
}

const { leases, transactions } = reportRules
const plain = 'plain'
/** The rules with one field said to be safe, and what must then be found. */
const oneFieldLess: readonly [string, Partial<ReportRules>, [string, string[]]][] = [
  [
    'the note of a lease',
    { leases: { leases: { ...(leases.leases as Rules<ObservedLease>), note: plain } } },
    ['/api/leases ', ['lease note']],
  ],
  [
    'who holds vacuum back',
    {
      transactions: {
        ...transactions,
        oldestXmin: { age: plain, by: plain, who: plain, pid: plain },
      },
    },
    ['/api/transactions', [expect.stringMatching(/application name|lock key/)]],
  ],
]

describe('R2: a crawl of everything that the router answers', () => {
  test('there is enough to be found', () => {
    expect(database.planted.count).toBeGreaterThanOrEqual(200)
  })

  test('with redact: true it finds none of the planted texts', async () => {
    const one = await start({ redact: true })
    expect(await leaksOf(one, bearer(tokens.operate))).toEqual([])
    expect(await leaksOf(one, bearer(tokens.view))).toEqual([])
  })

  test('nor for a token of the wrong role, a wrong token, and nobody', async () => {
    const one = await start({ redact: true })
    for (const init of [bearer(tokens.metrics), bearer('wrong-wrong-wrong-wrong'), {}]) {
      expect(await leaksOf(one, init)).toEqual([])
    }
  })

  test('nor in what the doctor says when everything here is overdue', async () => {
    const limits = { transactionMs: 1, idleMs: 1, overdueMs: 1 }
    const findings = await examine(fromPg(looking), { limits })
    expect(database.planted.foundIn(JSON.stringify(findings))).toEqual([
      'lock key',
      'prepared transaction',
      'schedule name',
    ])
    const redactor = new Redactor({ keys: true, queries: true }, Buffer.from('key'))
    expect(database.planted.foundIn(redactor.json('doctor', { findings }))).toEqual([])
  })

  test('control: without it the crawl finds them, wherever people put them', async () => {
    const one = await start({ redact: false })
    const found = new Set((await leaksOf(one, bearer(tokens.view))).flatMap(([, places]) => places))
    expect([...found].toSorted()).toEqual(shown)
    const [metrics] = await leaksOf(one, bearer(tokens.metrics))
    expect(metrics).toEqual(['/metrics ', ['lease name', 'schedule name']])
  })

  test.each(oneFieldLess)(
    'control: with %s shown as it is, the crawl finds it',
    async (_, rules, leak) => {
      const one = await start({ redact: true }, { reportRules: { ...reportRules, ...rules } })
      expect(await leaksOf(one, bearer(tokens.view))).toContainEqual(leak)
    },
  )

  test('what is masked can still be acted on, and the audit says which it was', async () => {
    const entries: AuditEntry[] = []
    const one = await start({ redact: true, audit: (entry) => void entries.push(entry) })
    const answer = await one.get('/api/schedules', bearer(tokens.operate))
    const { schedules } = (await answer.json()) as {
      schedules: { name: string; paused: boolean }[]
    }
    const [first] = schedules
    const pause = (schedule: string | undefined): Promise<Response> =>
      one.get('/api/actions/schedule-pause', {
        method: 'POST',
        headers: { ...bearer(tokens.operate).headers, 'content-type': 'application/json' },
        body: JSON.stringify({ schedule, confirm: schedule }),
      })
    expect(await (await pause(first?.name)).json()).toEqual({ done: true })
    expect((await pause(database.schedules[0])).status).toBe(404)
    expect(entries.map(({ result }) => result)).toEqual(['asked', 'done'])
    expect(database.schedules).toContain(entries[0]?.target)
  })
})

/** Where text of users is shown by a console that masks nothing; elsewhere it is never read. */
const shown: readonly string[] = [
  'SQL alias',
  'SQL channel',
  'SQL comment',
  'SQL number',
  'SQL setting',
  'SQL text',
  'account key',
  'account scope',
  'application name',
  'feature',
  'follower',
  'forged label',
  'job error',
  'job key',
  'job payload',
  'job scope',
  'lease name',
  'lease note',
  'lease scope',
  'lock key',
  'note',
  'note field',
  'once key',
  'operation id',
  'prepared transaction',
  'schedule name',
  'tick error',
  'tick holder',
]
