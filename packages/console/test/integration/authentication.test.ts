/** Who is let in: nobody by default. */
import { createHash } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Revocations } from '../../src/auth/revocations.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { createConsole } from '../../src/server/create-console.ts'
import {
  auth,
  bearer,
  type Browser,
  codeOf,
  type Database,
  login,
  openDatabase,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

const routes = [
  '/api/info',
  '/api/locks',
  '/api/events',
  '/api/session/1',
  '/api/history',
  '/api/history/tree',
  '/api/lock-minutes',
  '/api/names',
  '/api/transactions',
  '/api/books',
  '/api/account?book=a&key=b',
  '/api/keys?book=a',
  '/api/usage?book=a&key=b',
  '/api/followers',
  '/api/holds',
  '/api/leases',
  '/api/schedules',
  '/api/claims',
  '/api/jobs',
  '/api/job?id=00000000-0000-4000-8000-000000000000',
  '/api/doctor',
  '/api/nothing',
  '/metrics',
]

describe('closed by default', () => {
  test('without credentials nothing is answered, and nothing is asked of the database', async () => {
    const asked: string[] = []
    const observer = new Proxy({}, { get: (_, name) => () => asked.push(String(name)) })
    const { get } = await startConsole({ observer: observer as never })
    for (const path of ['/', '/login', '/assets/x', ...routes]) {
      const response = await get(path, bearer(tokens.view))
      expect([path, response.status]).toEqual([path, 503])
      expect(await response.text()).toContain('closed')
    }
    expect(asked).toEqual([])
  })

  test('an empty list of tokens is no credentials', async () => {
    const { get } = await startConsole({ driver: database.driver, auth: { tokens: [] } })
    expect((await get('/api/info')).status).toBe(503)
  })

  test.each([
    ['a short token', { token: 'short' }],
    ['no token', {}],
    ['both', { token: tokens.view, tokenHash: 'a'.repeat(64) }],
    ['a hash that is none', { tokenHash: 'abc' }],
    ['no such role', { token: tokens.view, role: 'admin' }],
    ['no moment', { token: tokens.view, expiresAt: 'soon' }],
  ])('tokens that protect nothing are refused: %s', async (_, token) => {
    const options = { auth: { tokens: [{ name: 'x', role: 'view', ...token }] } }
    await expect(startConsole(options as never)).rejects.toThrow(/^auth\.tokens: /)
  })
})

describe('tokens', () => {
  test('no token: every route of data is refused', async () => {
    const { get } = await startConsole({ driver: database.driver, auth })
    for (const path of routes) {
      const response = await get(path)
      expect([path, response.status, await codeOf(response)]).toEqual([path, 401, 'NOT_LOGGED_IN'])
    }
  })

  test('a wrong token is refused, the right one is let in', async () => {
    const { get } = await startConsole({ driver: database.driver, auth })
    const wrong = await get('/api/info', bearer(`${tokens.view}x`))
    expect([wrong.status, await codeOf(wrong)]).toEqual([401, 'TOKEN_WRONG'])
    const right = await get('/api/info', bearer(tokens.view))
    expect(await right.json()).toMatchObject({
      identity: { name: 'view token', role: 'view' },
      actions: [],
      databases: [{ name: 'main', features: { doctor: true, actions: true } }],
    })
  })

  test('a wrong token is not made good by a right cookie', async () => {
    const started = await startConsole({ driver: database.driver, auth })
    const { cookie } = await login(started, tokens.view)
    const headers = { cookie, authorization: `Bearer ${tokens.view}x` }
    expect((await started.get('/api/info', { headers })).status).toBe(401)
    expect((await started.get('/api/info', { headers: { cookie } })).status).toBe(200)
  })

  test('a token may be configured by its hash alone', async () => {
    const tokenHash = createHash('sha256').update(tokens.view).digest('hex')
    const { get } = await startConsole({
      driver: database.driver,
      auth: { tokens: [{ name: 'x', role: 'view', tokenHash }] },
    })
    expect((await get('/api/info', bearer(tokens.view))).status).toBe(200)
    // The hash itself opens nothing.
    expect((await get('/api/info', bearer(tokenHash))).status).toBe(401)
  })

  test('an expired token is refused, as bearer, at login, and with the session it made', async () => {
    let nowMs = Date.UTC(2026, 0, 1)
    const expiresAt = new Date(nowMs + 60_000)
    const started = await startConsole(
      {
        driver: database.driver,
        auth: { tokens: [{ name: 'x', role: 'view', token: tokens.view, expiresAt }] },
      },
      { now: () => nowMs },
    )
    const { cookie } = await login(started, tokens.view)
    const all = async (): Promise<string[]> => [
      await codeOf(await started.get('/api/info', bearer(tokens.view))),
      await codeOf(await started.get('/api/info', { headers: { cookie } })),
      await login(started, tokens.view).then(
        () => 'none',
        (error: Error) => error.message,
      ),
    ]
    expect(await all()).toEqual(['none', 'none', 'none'])
    nowMs += 60_000
    expect(await all()).toEqual(['TOKEN_EXPIRED', 'TOKEN_EXPIRED', 'login: 401'])
  })

  test('a metrics token scrapes and sees nothing else; a view token may scrape too', async () => {
    const { get } = await startConsole({ driver: database.driver, auth, metrics: true })
    const scraped = await get('/metrics', bearer(tokens.metrics))
    expect(scraped.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(await scraped.text()).toMatch(/^# HELP holdfast_/)
    expect(await codeOf(await get('/api/locks', bearer(tokens.metrics)))).toBe('ROLE_TOO_LOW')
    expect((await get('/metrics', bearer(tokens.view))).status).toBe(200)
    expect((await get('/metrics')).status).toBe(401)
  })

  test('who guesses has to wait, others do not', async () => {
    let nowMs = Date.UTC(2026, 0, 1)
    const { get } = await startConsole(
      {
        driver: database.driver,
        auth,
        clientAddress: (request) => request.headers.get('x-test-address') ?? undefined,
      },
      { now: () => nowMs },
    )
    const from = (address: string, token: string): Promise<Response> =>
      get('/api/info', {
        headers: { authorization: `Bearer ${token}`, 'x-test-address': address },
      })
    for (let guess = 0; guess < 10; guess += 1) {
      expect((await from('10.0.0.1', `guess-${guess}-aaaaaaaaaaaaaaaa`)).status).toBe(401)
    }
    const refused = await from('10.0.0.1', 'guess-11-aaaaaaaaaaaaaaaa')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await from('10.0.0.2', 'guess-12-aaaaaaaaaaaaaaaa')).status).toBe(401)
    nowMs += 60_000
    expect((await from('10.0.0.1', 'guess-13-aaaaaaaaaaaaaaaa')).status).toBe(401)
  })

  test('R4: a right token is let in, however many wrong ones came from its address', async () => {
    const started = await startConsole({ driver: database.driver, auth })
    const wrong = (): Promise<Response> =>
      started.get('/api/info', bearer('wrong-wrong-wrong-wrong-wrong'))
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => (await wrong()).status),
    )
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect((await wrong()).status).toBe(429)
    expect((await started.get('/api/info', bearer(tokens.view))).status).toBe(200)
    // So is whoever logs in at the page.
    expect(await login(started, tokens.operate)).toHaveProperty('csrf')
  })

  test('R4: a token that has expired counts by its name, and nobody else is slowed down', async () => {
    const old = {
      name: 'old',
      role: 'view',
      token: 'old-old-old-old-old-old',
      expiresAt: '2001-01-01',
    } as const
    const started = await startConsole({
      driver: database.driver,
      auth: { tokens: [...auth.tokens, old] },
    })
    const codes: string[] = []
    for (let count = 0; count < 11; count += 1) {
      codes.push(await codeOf(await started.get('/api/info', bearer(old.token))))
    }
    expect(codes.at(0)).toBe('TOKEN_EXPIRED')
    expect(codes.at(-1)).toBe('TOO_MANY_ATTEMPTS')
    expect(await codeOf(await started.get('/api/info', bearer('wrong-wrong-wrong-wrong')))).toBe(
      'TOKEN_WRONG',
    )
  })
})

describe('R4: behind a proxy', () => {
  /** A proxy as people have it: it adds whom it was asked by, and passes on what it was sent. */
  async function proxyTo(port: number): Promise<string> {
    const proxy = createServer((message, response) => {
      const came = [message.headers['x-forwarded-for'] ?? [], message.socket.remoteAddress].flat()
      const headers = { ...message.headers, 'x-forwarded-for': came.join(', ') }
      const onward = request({ port, path: message.url, method: message.method, headers })
      onward.on('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      message.pipe(onward)
    })
    await new Promise<void>((resolve) => {
      proxy.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => void proxy.close())
    return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  }

  /** How many of twelve wrong tokens get as far as being called wrong; each says it comes from elsewhere. */
  async function guesses(options: Partial<ConsoleOptions>, proxied: boolean): Promise<number> {
    const { origin, port } = await startConsole({ driver: database.driver, auth, ...options })
    const asked = proxied ? await proxyTo(port) : origin
    let count = 0
    for (let guess = 0; guess < 12; guess += 1) {
      const { status } = await fetch(`${asked}/api/info`, {
        headers: {
          ...bearer('wrong-wrong-wrong-wrong').headers,
          'x-forwarded-for': `203.0.113.${guess}`,
        },
      })
      if (status === 401) count += 1
    }
    return count
  }

  test('a header is not believed unless the console is told to', async () => {
    expect(await guesses({}, false)).toBe(10)
    expect(await guesses({}, true)).toBe(10)
  })

  test('one proxy is believed about whom it was asked by, and its clients about nothing', async () => {
    expect(await guesses({ trustProxy: 1 }, true)).toBe(10)
    expect(await guesses({ trustProxy: ['127.0.0.0/8'] }, false)).toBe(12)
    expect(await guesses({ trustProxy: ['10.0.0.0/8'] }, true)).toBe(10)
  })

  test('two are believed about one more, and a list about all that are in it', async () => {
    expect(await guesses({ trustProxy: 2 }, true)).toBe(12)
    expect(await guesses({ trustProxy: ['127.0.0.1', '::1'] }, true)).toBe(12)
  })
})

describe('S24: mounted as a handler of requests, which is not told who connects', () => {
  /** The last of many wrong tokens from one client, then a wrong and a right one from another. */
  async function statuses(options: Partial<ConsoleOptions>): Promise<readonly number[]> {
    const { fetch: answer, close } = createConsole({ driver: database.driver, auth, ...options })
    onTestFinished(close)
    const ask = async (client: string, token: string): Promise<number> => {
      const headers = { ...bearer(token).headers, 'x-forwarded-for': `${client}, 10.0.0.9` }
      return (await answer(new Request('https://ops.example.com/api/info', { headers }))).status
    }
    let last = 0
    for (let guess = 0; guess < 61; guess += 1) last = await ask('203.0.113.1', 'x'.repeat(20))
    return [last, await ask('203.0.113.2', 'x'.repeat(20)), await ask('203.0.113.2', tokens.view)]
  }

  test.each<[string, Partial<ConsoleOptions>]>([
    ['how many proxies there are', { trustProxy: 2 }],
    ['which proxies there are', { trustProxy: ['10.0.0.0/8'] }],
    [
      'where a request comes from',
      { clientAddress: ({ headers }) => headers.get('x-forwarded-for')?.split(',')[0] },
    ],
  ])('told %s, it counts by client', async (_, options) => {
    expect(await statuses(options)).toEqual([429, 401, 200])
  })

  test('told nothing, it counts them together, and lets the right token in', async () => {
    expect(await statuses({})).toEqual([429, 429, 200])
  })
})

describe('sessions', () => {
  test('the cookie is out of reach of scripts and of other sites', async () => {
    const started = await startConsole({ driver: database.driver, auth })
    const { setCookie } = await login(started, tokens.view)
    expect(setCookie).toMatch(
      new RegExp(`^holdfast_${started.port}=[\\w.-]+; Path=/; HttpOnly; SameSite=Strict$`),
    )
    expect(setCookie).not.toContain(tokens.view)
  })

  test('anywhere but on this machine it is Secure, and of this host alone', async () => {
    const { assembleConsole } = await import('../../src/server/create-console.ts')
    const { fetch: answer, close } = assembleConsole({ driver: database.driver, auth }, {})
    for (const url of ['http://ops.example.com/api/login', 'https://localhost/api/login']) {
      const response = await answer(
        new Request(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ token: tokens.view }),
        }),
      )
      expect(response.headers.get('set-cookie')).toMatch(
        /^__Host-holdfast=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      )
    }
    close()
  })

  test('ends when idle, and at the latest after its time, however busy', async () => {
    let nowMs = Date.UTC(2026, 0, 1)
    const started = await startConsole(
      { driver: database.driver, auth: { ...auth, idleMinutes: 30, absoluteHours: 1 } },
      { now: () => nowMs },
    )
    let { cookie } = await login(started, tokens.view)
    const ask = async (): Promise<string> => {
      const response = await started.get('/api/info', { headers: { cookie } })
      cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
      return await codeOf(response)
    }
    nowMs += 29 * 60_000
    expect(await ask()).toBe('none')
    nowMs += 29 * 60_000
    expect(await ask()).toBe('none')
    // An hour after the login, two minutes after the last request.
    nowMs += 2 * 60_000
    expect(await ask()).toBe('SESSION_EXPIRED')
    ;({ cookie } = await login(started, tokens.view))
    nowMs += 30 * 60_000
    expect(await ask()).toBe('SESSION_EXPIRED')
  })

  test('a cookie that was changed, made elsewhere or cut is refused', async () => {
    const started = await startConsole({ driver: database.driver, auth })
    const other = await startConsole({ driver: database.driver, auth })
    const { cookie } = await login(started, tokens.view)
    const foreign = (await login(other, tokens.view)).cookie.replace(
      String(other.port),
      String(started.port),
    )
    const [name = '', value = ''] = cookie.split('=')
    const parts = value.split('.')
    const later = [...parts.slice(0, 3), (Date.now() + 1e9).toString(36), parts[4]].join('.')
    for (const bad of [
      foreign,
      `${name}=${later}`,
      cookie.slice(0, -1),
      `${name}=`,
      `${name}=....`,
    ]) {
      const response = await started.get('/api/info', { headers: { cookie: bad } })
      expect(await codeOf(response)).toBe('SESSION_EXPIRED')
    }
    expect((await started.get('/api/info', { headers: { cookie } })).status).toBe(200)
  })

  test('logging out ends it on the server, also for who has copied the cookie', async () => {
    const started = await startConsole({ driver: database.driver, auth })
    const { cookie, csrf } = await login(started, tokens.view)
    const headers = { cookie, origin: started.origin, 'x-holdfast-csrf': csrf }
    const response = await started.get('/api/logout', { method: 'POST', headers })
    expect(response.headers.get('set-cookie')).toMatch(/=; Path=\/; .*Max-Age=0/)
    expect((await started.get('/api/info', { headers: { cookie } })).status).toBe(401)
  })

  const secret = 's'.repeat(32)

  /** The status that each console gives to whoever has the cookie, whichever of them it is of. */
  async function statusesAt(
    consoles: readonly StartedConsole[],
    cookie: string,
  ): Promise<readonly number[]> {
    return await Promise.all(
      consoles.map(async ({ get, port }) => {
        const headers = { cookie: cookie.replace(/^holdfast_\d+/, `holdfast_${port}`) }
        return (await get('/x/api/info', { headers })).status
      }),
    )
  }

  async function logOut({ get, origin }: StartedConsole, { cookie, csrf }: Browser): Promise<void> {
    const headers = { cookie, origin, 'x-holdfast-csrf': csrf }
    expect((await get('/x/api/logout', { method: 'POST', headers })).status).toBe(200)
  }

  /** What a team would keep in a table. */
  function sharedRevocations(): Revocations {
    const ids = new Set<string>()
    return {
      add: async (id) => void ids.add(id),
      has: async (id) => ids.has(id),
    }
  }

  test('S14: a session is good at the process that started it, and at no other with the same secret', async () => {
    const options = { driver: database.driver, base: '/x', auth: { ...auth, secret } }
    const both = [await startConsole(options), await startConsole(options)] as const
    const browser = await login(both[0], tokens.view, '/x')
    expect(await statusesAt(both, browser.cookie)).toEqual([200, 401])
    await logOut(both[0], browser)
    expect(await statusesAt(both, browser.cookie)).toEqual([401, 401])
  })

  test("S14: consoles that share who has logged out take each other's sessions until then", async () => {
    const shared = { ...auth, secret, revocations: sharedRevocations() }
    const options = { driver: database.driver, base: '/x', auth: shared }
    const both = [await startConsole(options), await startConsole(options)] as const
    const browser = await login(both[0], tokens.view, '/x')
    expect(await statusesAt(both, browser.cookie)).toEqual([200, 200])
    await logOut(both[0], browser)
    expect(await statusesAt(both, browser.cookie)).toEqual([401, 401])
    // And neither does one that has not got the token it was made with.
    const kept = await login(both[0], tokens.view, '/x')
    const token = { name: 'view token', role: 'view', token: 'x'.repeat(20) } as const
    const rotated = await startConsole({ ...options, auth: { ...shared, tokens: [token] } })
    expect(await statusesAt([both[1], rotated], kept.cookie)).toEqual([200, 401])
  })

  test('S14: who has logged out is not let in while nobody can tell', async () => {
    const failing = { add: () => undefined, has: () => Promise.reject(new Error('no connection')) }
    const revocations: Revocations = failing
    const options = { driver: database.driver, base: '/x', auth: { ...auth, secret, revocations } }
    const one = await startConsole(options)
    const { cookie } = await login(one, tokens.view, '/x')
    expect(await statusesAt([one], cookie)).toEqual([502])
  })

  test('S14: shared revocations need a shared secret', () => {
    const revocations = sharedRevocations()
    expect(() =>
      createConsole({ driver: database.driver, auth: { ...auth, revocations } }),
    ).toThrow(/auth.secret/)
  })

  test('S13: behind a proxy with TLS the declared origin makes the cookie Secure, and of that host alone', async () => {
    const origins = ['https://ops.example.com']
    const started = await startConsole({ driver: database.driver, auth, origins })
    // The proxy talks to this machine, and says nothing of the name that the browser knows.
    const headers = { 'content-type': 'application/json', origin: 'https://ops.example.com' }
    const body = JSON.stringify({ token: tokens.view })
    const response = await started.get('/api/login', { method: 'POST', headers, body })
    const setCookie = response.headers.get('set-cookie') ?? ''
    expect(setCookie).toMatch(
      /^__Host-holdfast=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    )
    // What is not Secure is not read either: a neighbour could have set it.
    const [cookie = ''] = setCookie.split(';')
    const plain = cookie.replace('__Host-holdfast', `holdfast_${started.port}`)
    for (const [shown, status] of [
      [cookie, 200],
      [plain, 401],
    ] as const)
      expect((await started.get('/api/info', { headers: { cookie: shown } })).status).toBe(status)
  })

  test.each(['http://ops.example.com', 'ops.example.com', 'https://ops.example.com/x', '*'])(
    'S13: %s is no origin to declare',
    (origin) => {
      const options = { driver: database.driver, auth, origins: [origin] }
      expect(() => createConsole(options)).toThrow(/origins/)
    },
  )
})

describe('the host application says who it is', () => {
  test('and nobody else is let in', async () => {
    const { get } = await startConsole({
      driver: database.driver,
      auth: {
        authenticate: (request) =>
          request.headers.get('x-user') === 'ada' ? { name: 'ada', role: 'view' } : undefined,
      },
    })
    expect((await get('/api/info')).status).toBe(401)
    const ada = await get('/api/info', { headers: { 'x-user': 'ada' } })
    expect(await ada.json()).toMatchObject({ identity: { name: 'ada', role: 'view' } })
  })

  test('a role that does not exist is none', async () => {
    const { get } = await startConsole({
      driver: database.driver,
      auth: { authenticate: () => ({ name: 'x', role: 'constructor' as 'view' }) },
    })
    expect(await codeOf(await get('/api/info'))).toBe('ROLE_TOO_LOW')
  })

  test('if it fails, nobody is let in, and the reason stays inside', async () => {
    const { get } = await startConsole({
      driver: database.driver,
      auth: {
        authenticate: () => {
          throw new Error('secret reason')
        },
      },
    })
    const response = await get('/api/info')
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('secret reason')
  })
})
