/** What a page of somebody else can make a browser send: nothing that does anything. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { assertSameOrigin } from '../../src/http/same-origin.ts'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  login,
  openDatabase,
  raw,
  startConsole,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

const json = { 'content-type': 'application/json' }
const body = JSON.stringify({
  pid: 2 ** 31 - 1,
  startedAt: '2001-01-01T00:00:00.000000Z',
  transactionStartedAt: null,
  confirm: String(2 ** 31 - 1),
})

async function started(): Promise<StartedConsole> {
  return await startConsole({
    driver: database.driver,
    auth,
    actions: ['cancel'],
    audit: () => undefined,
  })
}

describe('an action', () => {
  test('goes through with everything in place: it reaches the database, which knows no such pid', async () => {
    const one = await started()
    const { cookie, csrf } = await login(one, tokens.operate)
    const headers = { ...json, cookie, origin: one.origin, 'x-holdfast-csrf': csrf }
    const own = { ...headers, 'sec-fetch-site': 'same-origin' }
    for (const sent of [headers, own]) {
      const response = await one.get('/api/actions/cancel', { method: 'POST', headers: sent, body })
      expect(await codeOf(response)).toBe('NO_SUCH_SESSION')
    }
  })

  test.each([
    ['of another site', { origin: 'https://evil.example' }, 'CROSS_ORIGIN'],
    ['of another port', { origin: 'http://127.0.0.1:1' }, 'CROSS_ORIGIN'],
    ['of a page without an origin', { origin: 'null' }, 'CROSS_ORIGIN'],
    ['without an origin', { origin: undefined }, 'CROSS_ORIGIN'],
    ['by what the browser says', { 'sec-fetch-site': 'cross-site' }, 'CROSS_ORIGIN'],
    ['of a neighbour under the same domain', { 'sec-fetch-site': 'same-site' }, 'CROSS_ORIGIN'],
    ['without the token of the session', { 'x-holdfast-csrf': undefined }, 'CSRF_TOKEN_WRONG'],
    ['with an empty one', { 'x-holdfast-csrf': '' }, 'CSRF_TOKEN_WRONG'],
    ['with that of another session', { 'x-holdfast-csrf': 'other' }, 'CSRF_TOKEN_WRONG'],
  ])('is refused %s', async (_, change: Record<string, string | undefined>, code) => {
    const one = await started()
    const [mine, other] = [await login(one, tokens.operate), await login(one, tokens.operate)]
    const sent: Record<string, string | undefined> = {
      ...json,
      cookie: mine.cookie,
      origin: one.origin,
      'x-holdfast-csrf': mine.csrf,
      ...change,
    }
    if (sent['x-holdfast-csrf'] === 'other') sent['x-holdfast-csrf'] = other.csrf
    const headers = Object.fromEntries(
      Object.entries(sent).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    const response = await one.get('/api/actions/cancel', { method: 'POST', headers, body })
    expect([response.status, await codeOf(response)]).toEqual([403, code])
  })

  test('is refused as a form, which is all that a page of another site can post', async () => {
    const one = await started()
    const { cookie, csrf } = await login(one, tokens.operate)
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=x',
    ]) {
      const headers = { cookie, origin: one.origin, 'x-holdfast-csrf': csrf, 'content-type': type }
      const response = await one.get('/api/actions/cancel', { method: 'POST', headers, body })
      expect([response.status, await codeOf(response)]).toEqual([415, 'CONTENT_TYPE'])
    }
  })

  test('with a bearer token of a program needs no page, but is not for pages of others either', async () => {
    const one = await started()
    const program = { ...json, ...bearer(tokens.operate).headers }
    const act = (headers: Record<string, string>): Promise<Response> =>
      one.get('/api/actions/cancel', { method: 'POST', headers, body })
    expect(await codeOf(await act(program))).toBe('NO_SUCH_SESSION')
    expect(await codeOf(await act({ ...program, origin: 'https://evil.example' }))).toBe(
      'CROSS_ORIGIN',
    )
  })

  test('of a user of the host application needs a page of ours as well', async () => {
    const one = await startConsole({
      driver: database.driver,
      auth: { authenticate: () => ({ name: 'ada', role: 'operate' }) },
      actions: ['cancel'],
      audit: () => undefined,
    })
    const { csrf } = (await (await one.get('/api/info')).json()) as { csrf: string }
    const act = (headers: Record<string, string>): Promise<Response> =>
      one.get('/api/actions/cancel', { method: 'POST', headers: { ...json, ...headers }, body })
    expect(await codeOf(await act({}))).toBe('CROSS_ORIGIN')
    expect(await codeOf(await act({ origin: one.origin }))).toBe('CSRF_TOKEN_WRONG')
    expect(await codeOf(await act({ origin: one.origin, 'x-holdfast-csrf': csrf }))).toBe(
      'NO_SUCH_SESSION',
    )
  })

  test('behind a proxy that changes the host, the origin has to be named', async () => {
    const origin = 'https://ops.example.com'
    const options = { driver: database.driver, auth, audit: () => undefined }
    const codes: string[] = []
    for (const origins of [[], [origin]]) {
      const one = await startConsole({ ...options, actions: ['cancel'], origins })
      const { cookie, csrf } = await login(one, tokens.operate)
      const headers = { ...json, cookie, origin, 'x-holdfast-csrf': csrf }
      codes.push(
        await codeOf(await one.get('/api/actions/cancel', { method: 'POST', headers, body })),
      )
    }
    expect(codes).toEqual(['CROSS_ORIGIN', 'NO_SUCH_SESSION'])
  })

  test('the check itself lets through what comes from us: it is not red for everything', () => {
    const check = (headers: Record<string, string>) => () =>
      assertSameOrigin(
        new Headers(headers),
        { host: 'Console.example:8080', origins: [] },
        { needsOrigin: true },
      )
    expect(check({ origin: 'http://console.example:8080' })).not.toThrow()
    expect(check({ origin: 'https://console.example:8080' })).not.toThrow()
    expect(check({ origin: 'https://console.example' })).toThrow('another site')
    expect(check({ origin: 'file://' })).toThrow('another site')
  })
})

describe('reading', () => {
  test('is for our own pages, and for who types the address', async () => {
    const one = await started()
    const read = (site: string): Promise<Response> =>
      one.get('/api/info', {
        headers: { ...bearer(tokens.view).headers, 'sec-fetch-site': site },
      })
    expect([(await read('same-origin')).status, (await read('none')).status]).toEqual([200, 200])
    expect([(await read('cross-site')).status, (await read('same-site')).status]).toEqual([
      403, 403,
    ])
  })

  test('no page of another site is ever told that it may', async () => {
    const one = await started()
    for (const [path, method] of [
      ['/api/info', 'GET'],
      ['/api/info', 'OPTIONS'],
      ['/', 'GET'],
    ] as const) {
      const response = await one.get(path, {
        method,
        headers: { ...bearer(tokens.view).headers, origin: 'https://evil.example' },
      })
      const granted = [...response.headers.keys()].filter((name) =>
        name.startsWith('access-control'),
      )
      expect(granted).toEqual([])
    }
  })

  test('GET and HEAD of an action do nothing', async () => {
    const one = await started()
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
      const response = await one.get('/api/actions/cancel?pid=1&confirm=1', {
        method,
        ...bearer(tokens.operate),
      })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    }
  })

  test('another method by name, header or parameter is still the one that was sent', async () => {
    const one = await started()
    const headers = {
      ...bearer(tokens.operate).headers,
      'x-http-method-override': 'POST',
      'x-method-override': 'POST',
    }
    const response = await one.get('/api/actions/cancel?_method=POST', { headers })
    expect(response.status).toBe(405)
    expect((await one.get('/api/info', { method: 'POST', headers })).status).toBe(405)
  })
})

describe('a name that leads to this machine', () => {
  const hosts = ['localhost', '127.0.0.1', '[::1]', 'ops.example.com']

  test('is refused unless it is one of ours', async () => {
    const one = await startConsole({ driver: database.driver, auth, hosts })
    const ask = async (host: string): Promise<string> => {
      const authorization = `Authorization: Bearer ${tokens.view}`
      const answer = await raw(
        one.port,
        `GET /api/info HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\nConnection: close\r\n\r\n`,
      )
      return answer.split(' ')[1] ?? ''
    }
    expect(await ask(`localhost:${one.port}`)).toBe('200')
    expect(await ask('LOCALHOST')).toBe('200')
    expect(await ask('ops.example.com')).toBe('200')
    expect(await ask('[::1]:80')).toBe('200')
    expect(await ask('evil.example')).toBe('421')
    expect(await ask(`evil.example:${one.port}`)).toBe('421')
    expect(await ask('localhost.evil.example')).toBe('421')
    expect(await ask('localhost:80:80')).toBe('421')
    expect(await ask('user@localhost')).toBe('421')
    expect(await ask('')).toBe('421')
  })

  test('control: a console that was told no names answers to any', async () => {
    const one = await startConsole({ driver: database.driver, auth })
    const answer = await raw(
      one.port,
      `GET /api/info HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${tokens.view}\r\nConnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 200 /)
  })
})
