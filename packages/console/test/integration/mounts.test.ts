/** The console inside other servers: the real Hono, Express and Fastify, and a handler as Next calls it. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  type ConsoleOptions,
  createConsole,
  type HoldfastConsole,
  toFastify,
  toNode,
} from '../../src/index.ts'
import { openEvents } from '../support/events-of.ts'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  login,
  openDatabase,
  type StartedConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

const base = '/ops/console'

function mounted(options: Partial<ConsoleOptions> = {}): HoldfastConsole {
  const made = createConsole({
    driver: database.driver,
    auth,
    actions: ['cancel'],
    audit: () => undefined,
    ...options,
  })
  onTestFinished(made.close)
  return made
}

async function at(server: Server): Promise<StartedConsole> {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  return reachable((server.address() as AddressInfo).port, () => {
    server.closeAllConnections()
    server.close()
  })
}

function reachable(port: number, close: () => void): StartedConsole {
  onTestFinished(close)
  const origin = `http://127.0.0.1:${port}`
  return {
    origin,
    port,
    get: (path, init) => fetch(`${origin}${path}`, { redirect: 'manual', ...init }),
    close: () => Promise.resolve(close()),
  }
}

const hosts: Readonly<Record<string, () => Promise<StartedConsole>>> = {
  'node:http': () => at(createServer(toNode(mounted({ base })))),
  'Express, mounted': async () => {
    const app = express()
    app.use(base, toNode(mounted()))
    return await at(createServer(app))
  },
  'Express, behind a body parser and in a router': async () => {
    const app = express()
    app.use(express.json())
    const router = express.Router()
    router.use('/console', toNode(mounted()))
    app.use('/ops', router)
    return await at(createServer(app))
  },
  Fastify: async () => {
    const app = fastify()
    await app.register(toFastify(mounted()), { prefix: base })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    return reachable(port, () => {
      app.server.closeAllConnections()
      void app.close()
    })
  },
  'Hono, whose mount takes the base off': async () => {
    const app = new Hono()
    app.mount(base, mounted({ base }).fetch)
    return await at(createServer(toNode({ fetch: async (request) => await app.fetch(request) })))
  },
  'Hono, by a route': async () => {
    const app = new Hono()
    const { fetch: answer } = mounted({ base })
    app.all(`${base}/*`, (context) => answer(context.req.raw))
    return await at(createServer(toNode({ fetch: async (request) => await app.fetch(request) })))
  },
  'a route handler, as Next calls it': async () => {
    // app/ops/console/[[...path]]/route.ts: export const GET = console.fetch, with a context as second argument.
    const { fetch: GET, fetch: POST } = mounted({ base })
    const handlers = { GET, POST, HEAD: GET } as Record<
      string,
      ((request: Request, context: object) => Promise<Response>) | undefined
    >
    return await at(
      createServer(
        toNode({
          fetch: async (request) => {
            const handle = handlers[request.method]
            const context = { params: Promise.resolve({ path: ['api', 'info'] }) }
            return (await handle?.(request, context)) ?? new Response(null, { status: 405 })
          },
        }),
      ),
    )
  },
}

describe.each(Object.entries(hosts))('in %s', (_, start) => {
  test('the page, its files and the data are there', async () => {
    const one = await start()
    for (const path of [base, `${base}/`, `${base}/locks`]) {
      const page = await one.get(path)
      const html = await page.text()
      expect([path, page.status]).toEqual([path, 200])
      const [, script = ''] = /src="([^"]+\.js)"/.exec(html) ?? []
      const file = await fetch(new URL(script, `${one.origin}${path}`))
      expect([path, script, file.status]).toEqual([path, script, 200])
    }
    const tree = await one.get(`${base}/api/locks`, bearer(tokens.view))
    expect(await tree.json()).toMatchObject({ roots: [] })
    expect((await one.get(`${base}/api/locks`)).status).toBe(401)
  })

  test('one can log in, listen, act and log out', async () => {
    const one = await start()
    const { cookie, csrf } = await login(one, tokens.operate, base)
    const events = await openEvents(one, `${base}/api/events`, { headers: { cookie } })
    expect((await events.next())?.event).toBe('tree')
    await events.close()
    const headers = {
      cookie,
      origin: one.origin,
      'x-holdfast-csrf': csrf,
      'content-type': 'application/json',
    }
    const pid = 2 ** 31 - 1
    const body = JSON.stringify({
      pid,
      startedAt: '2001-01-01T00:00:00.000000Z',
      transactionStartedAt: null,
      confirm: String(pid),
    })
    const action = await one.get(`${base}/api/actions/cancel`, { method: 'POST', headers, body })
    expect(await codeOf(action)).toBe('NO_SUCH_SESSION')
    const out = await one.get(`${base}/api/logout`, { method: 'POST', headers, body: '{}' })
    expect(out.status).toBe(200)
    expect((await one.get(`${base}/api/info`, { headers: { cookie } })).status).toBe(401)
  })

  test('wrong methods, bodies and paths are refused', async () => {
    const one = await start()
    const form = await one.get(`${base}/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `token=${tokens.view}`,
    })
    expect(form.status).toBe(415)
    const large = await one.get(`${base}/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: 'a'.repeat(5_000) }),
    })
    expect(large.status).toBe(413)
    expect((await one.get(`${base}/nothing`)).status).toBe(404)
    expect((await one.get(`${base}/api%2finfo`, bearer(tokens.view))).status).toBe(404)
  })
})

test('what comes before and after the console in an application is left alone', async () => {
  const app = express()
  app.use(base, toNode(mounted()))
  app.get('/ops', (_request, response) => void response.send('ops'))
  app.get('/opsconsole/api/info', (_request, response) => void response.send('other'))
  const one = await at(createServer(app))
  expect(await (await one.get('/ops')).text()).toBe('ops')
  expect(await (await one.get('/opsconsole/api/info')).text()).toBe('other')
})

test('a path that matched a pattern is not put into a page', async () => {
  const app = express()
  app.use('/:tenant/console', toNode(mounted()))
  const one = await at(createServer(app))
  const page = await one.get('/%22%3E%3Cscript%3Ealert(1)%3C/console/')
  const html = await page.text()
  expect(html).not.toMatch(/alert|%22/)
  expect(await (await one.get('/acme/console/')).text()).toContain('src="/acme/console/assets/')
})
