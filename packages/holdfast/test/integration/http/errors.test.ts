/** Errors of a real database, in the real frameworks, over real sockets: what the caller is told. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { deferred } from '@holdfast/testkit'
import { initTRPC, TRPCError } from '@trpc/server'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { HoldfastError } from '../../../src/errors.ts'
import {
  expressErrors,
  fastifyErrors,
  fetchErrors,
  honoErrors,
  type HttpErrorOptions,
  refusalAnswerOf,
  trpcErrors,
  trpcRetryAfter,
} from '../../../src/http/index.ts'
import { lockKey } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const secret = 'ann@example.org'

/** What is thrown in a route. */
type Work = () => Promise<unknown>

const works: Record<string, Work> = {
  async locked() {
    const key = lockKey('http-cart', secret)
    const [held, end] = [deferred<void>(), deferred<void>()]
    const holder = fixture.hf.guard(key, async () => {
      held.resolve()
      await end.promise
    })
    await held.promise
    try {
      return await fixture
        .create()
        .guard(key, async () => 'never', { wait: 'nowait', queue: false })
    } finally {
      end.resolve()
      await holder
    }
  },
  async quota() {
    const calls = fixture.hf.quota({ name: fresh(), limit: 1, per: 'day' })
    await calls.consume(secret, 1, { operationId: fresh() })
    return await calls.withHold(
      secret,
      { estimate: 1, operationId: fresh(), ttl: '10 s' },
      async () => 1,
    )
  },
  async duplicate() {
    const key = fresh()
    const [begun, end] = [deferred<void>(), deferred<void>()]
    const first = fixture.hf.once(key, async () => {
      begun.resolve()
      await end.promise
    })
    await begun.promise
    try {
      return await fixture.create({ wait: 'nowait' }).once(key, async () => 'never')
    } finally {
      end.resolve()
      await first
    }
  },
  async closed() {
    const hf = fixture.create()
    await hf.close()
    return await hf.guard(lockKey('http-closed', secret), async () => 'never')
  },
  mistake: () => fixture.hf.guard({ name: secret } as never, async () => 'never'),
  own: () => Promise.reject(new Error(`mine: ${secret}`)),
}

const expected: Record<string, { status: number; after: string | null; body: object }> = {
  locked: { status: 423, after: '1', body: { code: 'LOCK_BUSY' } },
  quota: { status: 429, after: expect.stringMatching(/^\d+$/), body: { reason: 'insufficient' } },
  duplicate: { status: 409, after: '1', body: { code: 'ONCE_TIMEOUT' } },
  closed: { status: 503, after: '1', body: {} },
  mistake: { status: 500, after: null, body: {} },
}

type Open = (options: HttpErrorOptions) => Promise<Server>

async function listening(server: Server): Promise<Server> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return server
}

/** The path says what is thrown. */
const workOf = (path: string): Work => works[path.slice(1)] as Work

const frameworks: Record<string, Open> = {
  async Express(options) {
    const app = express()
    app.get('/{*any}', async (request, response) => {
      response.json(await workOf(request.path)())
    })
    app.use(expressErrors(options))
    app.use(((error, _request, response, _next) => {
      response.status(418).json({ own: error.message })
    }) satisfies express.ErrorRequestHandler)
    return await listening(createServer(app))
  },
  async Fastify(options) {
    const app = fastify()
    app.setErrorHandler<Error>((error, _request, reply) => reply.code(418).send(error.message))
    // The handler of a scope; what it throws goes to the one around it.
    app.register(async (scope) => {
      scope.setErrorHandler(fastifyErrors(options))
      scope.get('/*', async (request) => await workOf(request.url)())
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(async () => await app.close())
    return app.server
  },
  async Hono(options) {
    const app = new Hono()
    app.use(honoErrors(options))
    app.onError((error, c) => c.text(error.message, 418))
    app.get('/*', async (c) => c.json((await workOf(c.req.path)()) as object))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    if (!server.listening) await once(server, 'listening')
    return await listening(server)
  },
  /** As a route handler of Next.js is called: by whoever throws what is not a Response. */
  async fetch(options) {
    const GET = fetchErrors(
      async (request: Request) => Response.json(await workOf(new URL(request.url).pathname)()),
      options,
    )
    const app = new Hono()
    app.onError((error, c) => c.text(error.message, 418))
    app.get('/*', (c) => GET(c.req.raw))
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    if (!server.listening) await once(server, 'listening')
    return await listening(server)
  },
}

async function ask(server: Server, path: string): Promise<Response> {
  const { port } = server.address() as AddressInfo
  return await fetch(`http://127.0.0.1:${port}/${path}`)
}

describe.each(Object.entries(frameworks))('%s', (_, open) => {
  test.each(Object.entries(expected))(
    'U9: %s is answered',
    async (what, { status, after, body }) => {
      const logged: HoldfastError[] = []
      const server = await open({ log: (error) => logged.push(error) })
      const response = await ask(server, what)
      expect([response.status, response.headers.get('retry-after')]).toEqual([status, after])
      expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json\b/)
      const text = await response.text()
      expect(JSON.parse(text)).toEqual({ status, title: expect.any(String), ...body })
      // Neither the key nor its namespace, and no sentence that is for whoever wrote the program.
      expect(text).not.toMatch(/ann@|http-|pid|guard|holdfast/i)
      expect(logged).toHaveLength(1)
    },
  )

  test('an error of the application is left to the application', async () => {
    const response = await ask(await open({}), 'own')
    expect(response.status).toBe(418)
    expect(await response.text()).toContain('mine')
  })

  test('another status, for who wants it', async () => {
    const response = await ask(await open({ statuses: { LOCK_BUSY: 503 } }), 'locked')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await response.text()).not.toContain('LOCK_BUSY')
  })
})

test('settings that cannot work are told when they are given', () => {
  for (const wrong of [
    { status: {} },
    { statuses: { LOCK_BUSSY: 404 } },
    { statuses: { LOCK_BUSY: 200 } },
    { log: 'x' },
  ]) {
    for (const make of [expressErrors, fastifyErrors, honoErrors])
      expect(() => make(wrong as never)).toThrow(/OPTION_INVALID/)
  }
})

test('Express: what was said of another answer is not said of this one', async () => {
  const app = express()
  app.get('/locked', async (_request, response) => {
    response.set({ 'content-encoding': 'gzip', 'cache-control': 'public, max-age=3600' })
    response.json(await (works['locked'] as Work)())
  })
  app.use(expressErrors())
  const response = await ask(await listening(createServer(app)), 'locked')
  expect(response.status).toBe(423)
  expect(response.headers.get('cache-control')).toBe(null)
  expect(await response.json()).toMatchObject({ code: 'LOCK_BUSY' })
})

test('control: without it Express tells the caller what is for the log', async () => {
  const app = express()
  app.get('/locked', async (_request, response) => {
    response.json(await (works['locked'] as Work)())
  })
  const response = await ask(await listening(createServer(app)), 'locked')
  expect([response.status, response.headers.get('retry-after')]).toEqual([500, null])
  expect(await response.text()).toMatch(/http-cart.*pid/s)
})

test('Express: an answer that has begun is not answered again', async () => {
  const app = express()
  app.get('/begun', async (_request, response) => {
    response.write('half')
    await (works['locked'] as Work)()
  })
  app.use(expressErrors())
  const response = await ask(await listening(createServer(app)), 'begun')
  expect(response.status).toBe(200)
  await expect(response.text()).rejects.toThrow(/terminated/)
})

describe('tRPC', () => {
  async function open(): Promise<{ server: Server; causes: unknown[] }> {
    const t = initTRPC.create({ isDev: false })
    const procedure = t.procedure.use(trpcErrors(TRPCError))
    const router = t.router(
      Object.fromEntries(
        Object.entries(works).map(([name, work]) => [name, procedure.query(() => work())]),
      ),
    )
    const causes: unknown[] = []
    const handler = createHTTPHandler({
      router,
      responseMeta: trpcRetryAfter,
      onError: ({ error }) => causes.push(error.cause),
    })
    return { server: await listening(createServer(handler)), causes }
  }

  test.each([
    ['locked', 409, 'CONFLICT', '1'],
    ['quota', 429, 'TOO_MANY_REQUESTS', expect.stringMatching(/^\d+$/)],
    ['duplicate', 409, 'CONFLICT', '1'],
    ['closed', 503, 'SERVICE_UNAVAILABLE', '1'],
    ['mistake', 500, 'INTERNAL_SERVER_ERROR', null],
  ])('U9: %s is answered', async (what, status, code, after) => {
    const { server, causes } = await open()
    const response = await ask(server, what)
    expect([response.status, response.headers.get('retry-after')]).toEqual([status, after])
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({ error: { data: { code, httpStatus: status } } })
    expect(text).not.toMatch(/ann@|http-|pid|guard|holdfast/i)
    expect(causes).toMatchObject([{ code: expect.stringMatching(/^[A-Z_]+$/) }])
  })

  test('an error of the application stays as it is', async () => {
    const { server } = await open()
    const response = await ask(server, 'own')
    expect(response.status).toBe(500)
    expect(await response.text()).toContain('mine')
  })
})

test('a refused verdict is an answer, and tells nothing of the account', async () => {
  const stock = fixture.hf.stock({ name: fresh() })
  const lines = [{ sku: secret, quantity: 3 }]
  const verdict = await stock.reserve(lines, { externalId: fresh(), ttl: '1 s' })
  if (verdict.ok) throw new Error('there is none')
  expect(refusalAnswerOf(verdict)).toEqual({
    status: 409,
    headers: { 'content-type': 'application/problem+json' },
    body: { status: 409, title: expect.any(String), reason: 'insufficient' },
  })
  expect(refusalAnswerOf(verdict, { statuses: { insufficient: 402 } }).status).toBe(402)
})
