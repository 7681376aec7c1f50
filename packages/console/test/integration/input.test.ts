/** What is sent to hurt: paths, sizes, bytes, time. Over real sockets, since clients tidy up before they send. */
import { connect } from 'node:net'
import { waitUntil } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { serverLimits } from '../../src/node/listen.ts'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  login,
  openDatabase,
  raw,
  startConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

const started = (base?: string) =>
  startConsole({
    driver: database.driver,
    auth,
    actions: ['cancel'],
    audit: () => undefined,
    ...(base === undefined ? {} : { base }),
  })

/** The status of one raw request. */
async function statusOf(port: number, request: string): Promise<string> {
  const answer = await raw(port, request)
  return answer.split(' ')[1] ?? 'closed'
}

const get = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${tokens.view}\r\nConnection: close\r\n\r\n`

describe('paths', () => {
  const traversals = [
    '/../package.json',
    '/../../etc/passwd',
    '/assets/../../package.json',
    '/assets/..%2f..%2fpackage.json',
    '/assets/%2e%2e/%2e%2e/package.json',
    '/assets/%2e%2e%2f%2e%2e%2fpackage.json',
    '/assets/..%5c..%5cpackage.json',
    '/assets/..\\..\\package.json',
    '/assets/....//....//package.json',
    '/assets/%252e%252e%252fpackage.json',
    '/assets/..%c0%af..%c0%afpackage.json',
    '/assets/%00',
    '/assets/app.js%00.png',
    '/assets//etc/passwd',
    '/assets/',
    '/assets',
    '/.git/config',
    '/.env',
    '/src/main.ts',
    '/index.html',
    '/api/session/1/../../../etc/passwd',
    '/api/session/..%2f..%2fx',
    '/__proto__',
    '/assets/__proto__',
    '/api/constructor',
    '/api/actions/constructor',
    '/api/session/1e3',
    '/api/session/-1',
    '/api/session/99999999999',
  ]

  test.each(traversals)('%s is nothing', async (path) => {
    const { port } = await started()
    expect(await statusOf(port, get(path))).toMatch(/^40[045]$/)
  })

  test.each(['//evil.example/api/info', 'http://evil.example/api/info', '*', 'api/info'])(
    'a target that is no path of ours is refused: %s',
    async (target) => {
      const { port } = await started()
      expect(await statusOf(port, get(target))).toBe('400')
    },
  )

  test('control: the files that there are, are there', async () => {
    const { port, get: fetched } = await started()
    expect(await statusOf(port, get('/'))).toBe('200')
    const html = await (await fetched('/')).text()
    const [, script = ''] = /src="\.\/(assets\/[^"]+\.js)"/.exec(html) ?? []
    const file = await fetched(`/${script}`)
    expect(file.status).toBe(200)
    expect(file.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
    expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(file.headers.get('x-content-type-options')).toBe('nosniff')
  })

  test('under a base path, encoded slashes lead nowhere and the base alone is the page', async () => {
    const { port } = await started('/ops/console')
    const status = (path: string): Promise<string> => statusOf(port, get(path))
    expect(await status('/ops/console/api/info')).toBe('200')
    expect(await status('/ops/console')).toBe('200')
    expect(await status('/ops/console/')).toBe('200')
    for (const path of [
      '/ops%2fconsole/api/info',
      '/ops/console%2fapi%2finfo',
      '/ops/console/api%2finfo',
      '/ops/consoleapi/info',
      '/ops/console//api/info',
      '/OPS/console/api/info',
      '/ops/console/../../etc/passwd',
    ]) {
      expect([path, await status(path)]).toEqual([path, '404'])
    }
    // Dots are taken out before anything is looked up: these are the same path, and need the same token.
    expect(await status('/ops/console/x/../api/info')).toBe('200')
    const unknown = `GET /ops/console/x/../api/info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
    expect(await statusOf(port, unknown)).toBe('401')
  })

  test.each(['//evil.example', '/a/../b', '/a b', '/a"b', 'a', '/api', '/assets/x', '/a%2fb'])(
    'a base path that could be misread is refused: %s',
    async (base) => {
      await expect(started(base)).rejects.toThrow(/base/)
    },
  )
})

describe('sizes', () => {
  test('a long address, many and long parameters', async () => {
    const one = await started()
    const read = (path: string): Promise<Response> => one.get(path, bearer(tokens.view))
    expect(await codeOf(await read(`/api/names?namespace=${'a'.repeat(4_096)}`))).toBe(
      'URL_TOO_LONG',
    )
    expect(await codeOf(await read(`/api/names?namespace=${'a'.repeat(1_025)}`))).toBe(
      'BAD_REQUEST',
    )
    const many = Array.from({ length: 17 }, (_, index) => `p${index}=1`).join('&')
    expect(await codeOf(await read(`/api/info?${many}`))).toBe('BAD_REQUEST')
  })

  test.each([
    'limit=0',
    'limit=-1',
    'limit=1001',
    'limit=1e3',
    'limit=0x10',
    'limit=99999999999999999999',
    'limit=NaN',
    'limit=%00',
    "limit=1'--",
  ])('a number that is none, or too large: %s', async (query) => {
    const one = await started()
    const response = await one.get(`/api/names?${query}`, bearer(tokens.view))
    expect([response.status, await codeOf(response)]).toEqual([400, 'BAD_REQUEST'])
  })

  test('large headers end the connection before anything is read', async () => {
    const { port } = await started()
    const request = `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(serverLimits.maxHeaderBytes)}\r\n\r\n`
    expect(await statusOf(port, request)).toBe('431')
  })

  test('a large body is refused, by what it says and by what it is', async () => {
    const one = await started()
    const large = JSON.stringify({ token: 'a'.repeat(5_000) })
    const headers = { 'content-type': 'application/json' }
    const said = await one.get('/api/login', { method: 'POST', headers, body: large })
    expect([said.status, await codeOf(said)]).toEqual([413, 'BODY_TOO_LARGE'])
    // In chunks, no length is said; it is cut off where the limit is.
    const chunks = Array.from({ length: 64 }, () => `1000\r\n${'a'.repeat(4_096)}\r\n`).join('')
    const answer = await raw(
      one.port,
      `POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
  })

  test('bodies that are no small object', async () => {
    const one = await started()
    const headers = { 'content-type': 'application/json' }
    for (const body of [
      '',
      'null',
      '[]',
      '1',
      '"x"',
      '{',
      '{"token":1}',
      '{"token":""}',
      '{"__proto__":{"token":"x"}}',
      `{"token":"${'a'.repeat(600)}"}`,
    ]) {
      const response = await one.get('/api/login', { method: 'POST', headers, body })
      expect([body, await codeOf(response)]).toEqual([body, 'BAD_REQUEST'])
    }
  })
})

describe('bytes', () => {
  test('two requests in one, by two lengths or both kinds of length, are refused', async () => {
    const { port } = await started()
    const head = 'POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n'
    const smuggled = 'GET /api/info HTTP/1.1\r\nHost: a\r\n\r\n'
    for (const lengths of [
      'Content-Length: 0\r\nContent-Length: 40\r\n',
      'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n',
      'Transfer-Encoding: chunked, identity\r\n',
      'Transfer-Encoding : chunked\r\n',
    ]) {
      const answer = await raw(port, `${head}${lengths}\r\n0\r\n\r\n${smuggled}`)
      expect([lengths, answer.split(' ')[1]]).toEqual([lengths, '400'])
      expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
    }
  })

  test('what was not read of a body is not taken for the next request', async () => {
    const { port } = await started()
    const smuggled = `GET /api/info HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${tokens.view}\r\n\r\n`
    const answer = await raw(
      port,
      `POST /api/info HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n${smuggled}`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 4/)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  test('a line break in what we send back cannot make a header', async () => {
    const { port } = await started()
    for (const path of [
      '/x%0d%0aset-cookie:%20a=b',
      '/api/session/1%0d%0ax:y',
      '/api/info?database=%0d%0ax:%20y',
    ]) {
      const answer = await raw(port, get(path))
      const [head = ''] = answer.split('\r\n\r\n')
      expect(head).not.toMatch(/^(set-cookie: a|x:)/im)
    }
    const split = `GET / HTTP/1.1\r\nHost: a\rSet-Cookie: a=b\r\nConnection: close\r\n\r\n`
    expect(await statusOf(port, split)).toBe('400')
  })

  test('methods that are none', async () => {
    const { port } = await started()
    for (const method of ['TRACE', 'CONNECT', 'FOO', 'get']) {
      const request = `${method} /api/info HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
      expect(await statusOf(port, request)).toMatch(/^(400|401|405|closed|)$/)
    }
  })

  test('an upgrade to another protocol is not made', async () => {
    const { port } = await started()
    const answer = await raw(
      port,
      'GET /api/events HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    expect(answer).not.toContain('101')
  })
})

describe('time', () => {
  const quick = { ...serverLimits, headersTimeoutMs: 400, requestTimeoutMs: 800 }

  /** Sends a byte now and then until the server has had enough; says how long that took. */
  function dribble(port: number, start: string, then: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>()
    const startedMs = performance.now()
    const socket = connect(port, '127.0.0.1', () => socket.write(start))
    const timer = setInterval(() => socket.write(then), 40)
    const end = (): void => {
      clearInterval(timer)
      resolve(performance.now() - startedMs)
    }
    socket.resume()
    socket.on('error', () => undefined)
    socket.on('close', end)
    onTestFinished(() => {
      clearInterval(timer)
      socket.destroy()
    })
    return promise
  }

  test.each([
    ['headers', 'GET / HTTP/1.1\r\nHost: a\r\n', 'X: y\r\n'],
    [
      'a body',
      'POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n',
      'a',
    ],
  ])('who dribbles %s is cut off, and others are served meanwhile', async (_, start, then) => {
    const one = await startConsole({ driver: database.driver, auth }, {}, quick)
    const slow = Array.from({ length: 20 }, () => dribble(one.port, start, then))
    const served = await one.get('/api/locks', bearer(tokens.view))
    expect(served.status).toBe(200)
    for (const tookMs of await Promise.all(slow)) expect(tookMs).toBeLessThan(10_000)
  })

  test('control: a server that sets no limits lets them stay', async () => {
    const patient = { ...quick, headersTimeoutMs: 0, requestTimeoutMs: 0 }
    const one = await startConsole({ driver: database.driver, auth }, {}, patient)
    const slow = dribble(one.port, 'GET / HTTP/1.1\r\nHost: a\r\n', 'X: y\r\n')
    const first = await Promise.race([slow, longerThan(3 * quick.requestTimeoutMs)])
    expect(first).toBe('still there')
  })

  test('no more connections than there is room for', async () => {
    const one = await startConsole(
      { driver: database.driver, auth },
      {},
      { ...serverLimits, maxConnections: 3 },
    )
    let closed = 0
    const sockets = Array.from({ length: 6 }, () => {
      const socket = connect(one.port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.on('close', () => {
        closed += 1
      })
      socket.resume()
      return socket
    })
    await waitUntil('the ones that are too many are closed', () => closed === 3 || undefined)
    expect(sockets.filter(({ destroyed }) => !destroyed)).toHaveLength(3)
    for (const socket of sockets) socket.destroy()
  })

  test('a body that never ends is given up', async () => {
    const one = await startConsole({ driver: database.driver, auth })
    const { cookie } = await login(one, tokens.view)
    expect(cookie).not.toBe('')
    const answer = await raw(
      one.port,
      'POST /api/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{',
    )
    expect(answer).toMatch(/^HTTP\/1.1 408 /)
    // By us, also where another server than ours stands in front and waits longer.
    expect(answer).toContain('BODY_TOO_SLOW')
  })
})

/** The control needs a time in which nothing happens; nothing is ordered by it. */
function longerThan(ms: number): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  setTimeout(() => resolve('still there'), ms)
  return promise
}
