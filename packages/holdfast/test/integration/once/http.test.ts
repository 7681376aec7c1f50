import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { deferred, sample } from '@holdfast/testkit'
import express from 'express'
import { fastify, type FastifyReply, type FastifyRequest } from 'fastify'
import type { PoolClient } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type HttpAnswer,
  idempotentAnswer,
  idempotentExpress,
  idempotentFastify,
  idempotentFetch,
} from '../../../src/entries/once.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE payment (id text, amount int)')

/** What a shop does with a payment: one row, and an answer with an id that is new each time. */
async function pay(tx: PoolClient, body: { amount: number; fail?: number }): Promise<HttpAnswer> {
  const id = fresh()
  await tx.query('INSERT INTO payment VALUES ($1, $2)', [id, body.amount])
  if (body.fail !== undefined) return { status: body.fail, body: { error: 'no' } }
  return { status: 201, headers: { location: `/payments/${id}` }, body: { id } }
}

async function payments(amount: number): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM payment WHERE amount = $1', [amount])
  return rows.length
}

interface Sent {
  readonly key?: string
  readonly user?: string
  readonly body: { amount: number; fail?: number }
}

interface Seen {
  readonly status: number
  readonly body: unknown
  readonly replayed: boolean
  readonly retryAfter: string | null
  readonly location: string | null
}

type Client = (request: Sent) => Promise<Seen>

function headersOf({ key, user = 'ann' }: Sent): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-user': user,
    ...(key === undefined ? {} : { 'idempotency-key': key }),
  }
}

async function seen(response: Response): Promise<Seen> {
  const text = await response.text()
  return {
    status: response.status,
    body: text === '' ? undefined : JSON.parse(text),
    replayed: response.headers.get('idempotency-replayed') === 'true',
    retryAfter: response.headers.get('retry-after'),
    location: response.headers.get('location'),
  }
}

type Work = (tx: PoolClient, body: Sent['body']) => Promise<HttpAnswer>
type KeepIf = (answer: HttpAnswer) => boolean

const optional = (keepIf: KeepIf | undefined): { keepIf?: KeepIf } =>
  keepIf === undefined ? {} : { keepIf }

/** The three of them: as such, and in the real Express and Fastify. */
const frameworks: Record<string, (work: Work, keepIf?: KeepIf) => Client | Promise<Client>> = {
  fetch(work, keepIf) {
    const handler = idempotentFetch(
      fixture.hf.once,
      async (tx, request) => await work(tx, (await request.json()) as Sent['body']),
      { scope: (request) => request.headers.get('x-user') as string, ...optional(keepIf) },
    )
    return async (sent) =>
      await seen(
        await handler(
          new Request('http://shop/payments', {
            method: 'POST',
            headers: headersOf(sent),
            body: JSON.stringify(sent.body),
          }),
        ),
      )
  },
  async Express(work, keepIf) {
    const app = express()
    const handler = idempotentExpress<PoolClient, express.Request, express.Response>(
      fixture.hf.once,
      async (tx, request) => await work(tx, request.body as Sent['body']),
      { scope: (request) => request.get('x-user') as string, ...optional(keepIf) },
    )
    app.post('/payments', express.json(), handler)
    app.use(((error, _request, response, _next) => {
      response.status(500).json({ error: String(error) })
    }) satisfies express.ErrorRequestHandler)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    return posting(server)
  },
  async Fastify(work, keepIf) {
    const app = fastify()
    const handler = idempotentFastify<PoolClient, FastifyRequest, FastifyReply>(
      fixture.hf.once,
      async (tx, request) => await work(tx, request.body as Sent['body']),
      { scope: (request) => request.headers['x-user'] as string, ...optional(keepIf) },
    )
    app.post('/payments', handler)
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(async () => await app.close())
    return posting(app.server)
  },
}

/** Real requests to a server that listens. */
function posting(server: Server): Client {
  const { port } = server.address() as AddressInfo
  return async (sent) =>
    await seen(
      await fetch(`http://127.0.0.1:${port}/payments`, {
        method: 'POST',
        headers: headersOf(sent),
        body: JSON.stringify(sent.body),
      }),
    )
}

test.each([[''], [undefined], [null], ['\0']])(
  'S16: a scope that is nobody is refused: %j',
  async (user) => {
    const handler = idempotentFetch(fixture.hf.once, async () => ({ status: 201 }), {
      scope: () => user as string,
    })
    const headers = { 'idempotency-key': fresh() }
    const asking = handler(new Request('http://shop/payments', { method: 'POST', headers }))
    await expect(asking).rejects.toMatchObject({ code: 'ONCE_KEY_INVALID' })
  },
)

describe.each(Object.entries(frameworks))('%s', (_, open) => {
  let amount = Math.floor(Math.random() * 1_000_000)
  const nextAmount = (): number => (amount += 1)

  test('the same request again gets the same answer, and pays once', async () => {
    const send = await open(pay)
    const request = { key: fresh(), body: { amount: nextAmount() } }
    const first = await send(request)
    expect(first).toMatchObject({ status: 201, replayed: false })
    const again = await send(request)
    expect(again).toEqual({ ...first, replayed: true })
    expect(await payments(amount)).toBe(1)
  })

  test('while the first is at work: 409, try again', async () => {
    const [begun, end] = [deferred<void>(), deferred<void>()]
    const send = await open(async (tx, body) => {
      begun.resolve()
      await end.promise
      return await pay(tx, body)
    })
    const request = { key: fresh(), body: { amount: nextAmount() } }
    const first = send(request)
    await begun.promise
    expect(await send(request)).toMatchObject({ status: 409, retryAfter: '1' })
    end.resolve()
    expect(await first).toMatchObject({ status: 201 })
    expect(await payments(amount)).toBe(1)
  })

  test('something else under the same key: 422', async () => {
    const send = await open(pay)
    const key = fresh()
    await send({ key, body: { amount: nextAmount() } })
    expect(await send({ key, body: { amount: nextAmount() } })).toMatchObject({ status: 422 })
    expect(await payments(amount)).toBe(0)
  })

  test('the key of somebody else is another key', async () => {
    const send = await open(pay)
    const request = { key: fresh(), body: { amount: nextAmount() } }
    const ann = await send({ ...request, user: 'ann' })
    const bob = await send({ ...request, user: 'bob' })
    expect(bob).toMatchObject({ status: 201, replayed: false })
    expect(bob.body).not.toEqual(ann.body)
  })

  test('a refusal is kept; an answer of 500 is not, nor what it wrote', async () => {
    const send = await open(pay)
    const refused = { key: fresh(), body: { amount: nextAmount(), fail: 402 } }
    await send(refused)
    expect(await send(refused)).toMatchObject({ status: 402, replayed: true })
    const failed = { key: fresh(), body: { amount: nextAmount(), fail: 503 } }
    expect(await send(failed)).toMatchObject({ status: 503, replayed: false })
    expect(await payments(amount)).toBe(0)
    expect(await send(failed)).toMatchObject({ status: 503, replayed: false })
  })

  test.each([408, 409, 423, 425, 429, 500, 503])(
    'R8: %i passes: it is not kept, nor what it wrote',
    async (fail) => {
      let busy = true
      const send = await open(async (tx, body) => await pay(tx, busy ? { ...body, fail } : body))
      const request = { key: fresh(), body: { amount: nextAmount() } }
      expect(await send(request)).toMatchObject({ status: fail, replayed: false })
      expect(await payments(amount)).toBe(0)
      busy = false
      expect(await send(request)).toMatchObject({ status: 201, replayed: false })
      expect(await send(request)).toMatchObject({ status: 201, replayed: true })
      expect(await payments(amount)).toBe(1)
    },
  )

  test.each([400, 402, 403, 404, 410, 422])('R8: %i is final', async (fail) => {
    let refused = true
    const send = await open(async (tx, body) => await pay(tx, refused ? { ...body, fail } : body))
    const request = { key: fresh(), body: { amount: nextAmount() } }
    await send(request)
    refused = false
    expect(await send(request)).toMatchObject({ status: fail, replayed: true })
  })

  test('R8: keepIf says which answers are final', async () => {
    let runs = 0
    const keepIf = ({ status, body }: HttpAnswer): boolean =>
      status === 409 && (body as { error?: string }).error === 'no'
    const send = await open(async (tx, body) => {
      runs += 1
      return await pay(tx, body)
    }, keepIf)
    const sold = { key: fresh(), body: { amount: nextAmount(), fail: 409 } }
    await send(sold)
    expect(await send(sold)).toMatchObject({ status: 409, replayed: true })
    const paid = { key: fresh(), body: { amount: nextAmount() } }
    await send(paid)
    expect(await send(paid)).toMatchObject({ status: 201, replayed: false })
    expect([runs, await payments(amount)]).toEqual([3, 0])
  })

  test('without the header: 400', async () => {
    const send = await open(pay)
    expect(await send({ body: { amount: nextAmount() } })).toMatchObject({ status: 400 })
    const long = { key: 'x'.repeat(256), body: { amount } }
    expect(await send(long)).toMatchObject({ status: 400 })
    expect(await payments(amount)).toBe(0)
  })
})

test('without the header where it is not required, the work is simply done', async () => {
  const handler = idempotentFetch(fixture.hf.once, async (tx) => await pay(tx, { amount: -7 }), {
    scope: () => 'ann',
    required: false,
  })
  for (let at = 0; at < 2; at += 1) {
    const response = await handler(new Request('http://shop/payments', { method: 'POST' }))
    expect(response.status).toBe(201)
  }
  expect(await payments(-7)).toBe(2)
})

test('an error of the handler goes to Express, and nothing is kept', async () => {
  const handler = idempotentExpress(
    fixture.hf.once,
    async (tx: PoolClient) => {
      await pay(tx, { amount: -8 })
      throw new Error('mine')
    },
    { scope: () => 'ann' },
  )
  const errors: unknown[] = []
  const get = (name: string): string | undefined =>
    name === 'Idempotency-Key' ? 'a-key' : undefined
  const request = { method: 'POST', originalUrl: '/', get }
  await handler(request, {} as never, (error) => errors.push(error))
  expect(errors).toMatchObject([{ message: 'mine' }])
  expect(await payments(-8)).toBe(0)
})

test('S16: bodies that are no text are told apart by their bytes', async () => {
  const pays = idempotentFetch(
    fixture.hf.once,
    async (_, request) => ({
      status: 201,
      body: [...new Uint8Array(await request.arrayBuffer())],
    }),
    { scope: () => 'binary' },
  )
  const key = fresh()
  const send = async (...bytes: number[]): Promise<number> => {
    const body = Uint8Array.from(bytes)
    const headers = { 'idempotency-key': key }
    return (await pays(new Request('http://shop/files', { method: 'POST', headers, body }))).status
  }
  expect(await send(0xff)).toBe(201)
  expect(await send(0xff)).toBe(201)
  expect(await send(0xfe)).toBe(422)
  expect(await send(0xef, 0xbf, 0xbd)).toBe(422)
})

test('an answer that cannot be sent is not kept, and its work is not done', async () => {
  let answer: HttpAnswer = { status: 204, body: { no: 'body' } }
  const handler = idempotentFetch(
    fixture.hf.once,
    async (tx) => {
      await pay(tx, { amount: -9 })
      return answer
    },
    { scope: () => 'unsendable' },
  )
  const headers = { 'idempotency-key': fresh() }
  const send = (): Promise<Response> =>
    handler(new Request('http://shop/payments', { method: 'POST', headers }))
  await expect(send()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  expect(await payments(-9)).toBe(0)
  answer = { status: 204, body: '' }
  expect((await send()).status).toBe(204)
  expect((await send()).headers.get('idempotency-replayed')).toBe('true')
  expect(await payments(-9)).toBe(1)
})

let lastUnsent = -1_000

/** Bodies of which JSON keeps nothing, or something else. */
const unkept: Readonly<Record<string, () => unknown>> = {
  'a Map': () => new Map([['id', 1]]),
  'a Set in it': () => ({ ids: new Set([1]) }),
  'a stream': () => Readable.from(['one']),
  'a stream of the web': () => new ReadableStream(),
  'a stream in it': () => [{ file: new PassThrough() }],
  'a function': () => () => 1,
  'a symbol': () => Symbol('one'),
  'a promise': () => Promise.resolve(1),
  'a file': () => new Blob(['one']),
  'a form': () => new FormData(),
  'an error': () => ({ error: new Error('one') }),
  'a generator': () =>
    (function* () {
      yield 1
    })(),
  'a Buffer': () => Buffer.from('one'),
  'some bytes': () => new Uint8Array([1]),
  'some bytes in it': () => ({ bytes: new Uint8Array([1]).buffer }),
  'an Observable': () => ({ pipe: () => 1, subscribe: () => 1, __proto__: { of: 'a class' } }),
}

describe.each(sample(Object.entries(frameworks)))('with %s', (_, start) => {
  test.each<readonly [string, unknown]>([
    ['no status', { body: { saved: true } }],
    ['a Response', Response.json({ id: 1 }, { status: 201 })],
    ['a header that is none', { status: 201, headers: { 'x-name': 'Müller → ok' } }],
    ['a status of 100', { status: 100 }],
    ...Object.entries(unkept).map(([what, make]) => [what, { status: 201, body: make() }] as const),
  ])('an answer with %s is an error, and its work is not done', async (_what, answer) => {
    const amount = (lastUnsent -= 1)
    let right = false
    const send = await start(async (tx) => {
      await tx.query('INSERT INTO payment VALUES ($1, $2)', [fresh(), amount])
      return right ? { status: 201, body: {} } : (answer as HttpAnswer)
    })
    const key = fresh()
    const told = await send({ key, body: { amount } }).then(
      ({ status }) => status,
      (error: unknown) => (error as HoldfastError).code,
    )
    expect([500, 'OPTION_INVALID']).toContain(told)
    expect(await payments(amount)).toBe(0)
    right = true
    expect((await send({ key, body: { amount } })).status).toBe(201)
    expect(await payments(amount)).toBe(1)
    await fixture.observer.query('DELETE FROM payment WHERE amount = $1', [amount])
  })
})

test('instances, dates and whatever says how it is written can be answered', async () => {
  class Payment {
    readonly id = 7
    readonly at = new Date(0)
    readonly bytes = Buffer.from([1])
    readonly note = undefined
  }
  const handler = idempotentFetch(
    fixture.hf.once,
    () =>
      Promise.resolve({ status: 201, body: { payment: new Payment(), list: [null, 'a', 1.5] } }),
    { scope: () => 'instances' },
  )
  const headers = { 'idempotency-key': fresh() }
  for (let at = 0; at < 2; at += 1) {
    const request = new Request('http://shop/payments', { method: 'POST', headers })
    expect(await (await handler(request)).json()).toEqual({
      payment: { id: 7, at: new Date(0).toISOString(), bytes: { type: 'Buffer', data: [1] } },
      list: [null, 'a', 1.5],
    })
  }
})

describe('a body that nobody can tell from another', () => {
  const paying = async (): Promise<HttpAnswer> => ({ status: 201 })
  const options = { scope: (): string => 'unread' }

  interface Way {
    readonly type: string
    readonly body: string | undefined
  }

  async function answers(server: Server, { type, body }: Way): Promise<string> {
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: { 'content-type': type, 'idempotency-key': fresh() },
      ...(body === undefined ? {} : { body }),
    })
    return `${response.status} ${await response.text()}`
  }

  async function onExpress(before: express.RequestHandler, way: Way): Promise<string> {
    const app = express()
    app.post('/', before, idempotentExpress(fixture.hf.once, paying, options))
    app.use(((error, _request, response, _next) => {
      response.status(500).send(String(error))
    }) satisfies express.ErrorRequestHandler)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    return await answers(server, way)
  }

  async function onFastify(parsed: unknown, way: Way): Promise<string> {
    const app = fastify()
    app.addContentTypeParser('*', { parseAs: 'buffer' }, (_, __, done) => done(null, parsed))
    app.post(
      '/',
      idempotentFastify<PoolClient, FastifyRequest, FastifyReply>(fixture.hf.once, paying, options),
    )
    await app.listen({ port: 0, host: '127.0.0.1' })
    onTestFinished(async () => await app.close())
    return await answers(app.server, way)
  }

  const parsing = express.json()
  const skipping: express.RequestHandler = (_, __, next) => next()
  /** What the parser of Express 4 leaves of a type that is not its own. */
  const leaving: express.RequestHandler = (request, _, next) => {
    request.body = {}
    next()
  }
  const json = { type: 'application/json', body: '{"amount":1}' }
  const text = { type: 'text/plain', body: 'one' }
  const file = { type: 'application/octet-stream', body: 'one' }
  const nothing = { type: 'text/plain', body: undefined }
  const empty = { type: 'application/json', body: '{}' }

  test.each([
    ['Express without a parser', () => onExpress(skipping, json)],
    ['Express with the parser of another type', () => onExpress(parsing, text)],
    ['Express 4 with the parser of another type', () => onExpress(leaving, text)],
    ['Fastify with a parser that keeps nothing', () => onFastify(undefined, file)],
    ['Fastify with a parser whose bodies look alike', () => onFastify(new Map([[1, 2]]), file)],
  ])('%s: refused', async (_, asking) => {
    expect(await asking()).toMatch(/^500 .*OPTION_INVALID/s)
  })

  test.each([
    ['Express, parsed', () => onExpress(parsing, json)],
    ['Express, an empty object', () => onExpress(parsing, empty)],
    ['Express, no body', () => onExpress(skipping, nothing)],
    ['Express 4, no body', () => onExpress(leaving, nothing)],
    ['Fastify, parsed', () => onFastify(Buffer.from('one'), file)],
  ])('%s: answered', async (_, asking) => {
    expect(await asking()).toBe('201 ')
  })

  test('fetch with a request that was read before: refused', async () => {
    const request = new Request('http://shop/', {
      method: 'POST',
      headers: { 'idempotency-key': fresh() },
      body: 'one',
    })
    await request.text()
    const asking = idempotentFetch(fixture.hf.once, paying, options)(request)
    await expect(asking).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

test.each(['', ' ', 'Idempotency Key'])(
  'a header %j that none can have is refused',
  async (name) => {
    const scope = (): string => 'ann'
    const refused = { code: 'OPTION_INVALID', details: { option: 'header' } }
    const handle = async (): Promise<HttpAnswer> => ({ status: 200 })
    const options = { scope, header: name, required: false }
    for (const make of [
      () => idempotentFetch(fixture.hf.once, handle, options),
      () => idempotentExpress(fixture.hf.once, handle, options),
      () => idempotentFastify(fixture.hf.once, handle, options),
    ])
      expect(make).toThrow(expect.objectContaining({ code: refused.code }))
    const request = { method: 'POST', url: '/payments', headers: {} }
    const asked = idempotentAnswer(fixture.hf.once, request, handle, options)
    await expect(asked).rejects.toMatchObject(refused)
  },
)
