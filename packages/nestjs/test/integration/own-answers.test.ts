/** Handlers under a decorator that send their answer themselves: nobody is told what is then undone or not kept. */
import type { ServerResponse } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  type CallHandler,
  type ExecutionContext,
  HttpCode,
  type NestInterceptor,
  Post,
  RequestTimeoutException,
  Res,
  StreamableFile,
  UseInterceptors,
} from '@nestjs/common'
import { deferred, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { from, type Observable, race } from 'rxjs'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import { lockKey } from 'holdfast'
import { CurrentTransaction, Guarded, Idempotent, Once } from '../../src/index.ts'
import { decorated } from '../support/decorate.ts'
import { type Asked, platforms, startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture('CREATE TABLE payment (id text)')

async function payments(id: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM payment WHERE id = $1', [id])
  return rows.length
}

/** What Express and Fastify have in common. */
interface AnyResponse {
  send(body: unknown): unknown
  readonly raw?: ServerResponse
}

const rawOf = (response: AnyResponse): ServerResponse =>
  response.raw ?? (response as unknown as ServerResponse)

type Handler = (response: AnyResponse) => unknown

type AnyDecorator = (...args: never[]) => unknown
type Decorate = (id: string) => readonly AnyDecorator[]

const idempotent: Decorate = () => [Idempotent({ scope: () => 'ann' }), Post(), HttpCode(202)]

/** Whoever opens the transaction, or only joins it. */
const decorators: Readonly<Record<string, Decorate>> = {
  '@Idempotent': idempotent,
  '@Guarded': (id) => [Post(), HttpCode(202), Guarded(() => lockKey('own-answer', id))],
  '@Once': (id) => [Post(), HttpCode(202), Once(() => id)],
  '@Guarded in @Idempotent': (id) => [...idempotent(id), Guarded(() => lockKey('own-answer', id))],
}

const sending: readonly (readonly [string, Handler])[] = [
  ['send', (response) => void response.send({ mine: true })],
  ['send, later', async (response) => (await payments('x'), void response.send({ mine: true }))],
  ['end', (response) => void rawOf(response).end('mine')],
  ['write', (response) => void rawOf(response).write('mine')],
  ['writeHead', (response) => void rawOf(response).writeHead(200)],
  ['flushHeaders', (response) => rawOf(response).flushHeaders()],
  [
    'send, and its error is caught',
    (response) => {
      try {
        response.send({ mine: true })
      } catch {
        // Passed over.
      }
      return { mine: false }
    },
  ],
  ['pipe', (response) => void Readable.from(['mine']).pipe(rawOf(response))],
  ['a pipeline', async (response) => await pipeline(Readable.from(['mine']), rawOf(response))],
]

describe.each(platforms)('%s', (platform) => {
  async function open(
    handler: Handler,
    around: readonly MethodDecorator[] = [],
    decorate: Decorate = idempotent,
  ) {
    const id = fresh()
    class Payments {
      readonly current: CurrentTransaction<pg.PoolClient>
      constructor(current: CurrentTransaction<pg.PoolClient>) {
        this.current = current
      }
      async pay(response: AnyResponse): Promise<unknown> {
        await this.current.tx.query('INSERT INTO payment VALUES ($1)', [id])
        return await handler(response)
      }
    }
    decorated(Payments, {
      at: 'payments',
      takes: [CurrentTransaction],
      // What is applied last is innermost.
      methods: { pay: [...decorate(id), ...around] },
      params: { pay: [Res({ passthrough: true })] },
    })
    const { ask } = await startApp({ pool: fixture.pool, platform }, { controllers: [Payments] })
    const headers = { 'idempotency-key': id }
    /** The answer, or nothing if the connection was cut: then the one before may still be about to be rolled back. */
    const pay = async (): Promise<Asked | undefined> => {
      const { answer } = await waitUntil('the request before is over', async () => {
        const answer = await ask('POST', 'payments', { headers, body: {} }).catch(() => undefined)
        return answer?.status === 409 ? undefined : { answer }
      })
      return answer
    }
    return { id, pay }
  }

  describe.each(Object.entries(decorators))('under %s', (_name, decorate) => {
    test.each(sending)('with %s: refused, and nothing is done or kept', async (_, handler) => {
      const { id, pay } = await open(handler, [], decorate)
      for (let at = 0; at < 2; at += 1) {
        const answer = await pay()
        expect(answer?.status ?? 500).toBe(500)
        expect(answer?.text ?? '').not.toContain('mine')
        expect(await payments(id)).toBe(0)
      }
    })
  })

  test.each<readonly [string, (asked: AnyResponse) => unknown]>([
    ['the response', (response) => response],
    // Express has the response at its request, Fastify does not.
    ['the request', (response) => (response as unknown as { req?: object }).req ?? response],
  ])('a service under @Guarded that gets %s cannot send either', async (_, given) => {
    const id = fresh()
    class Booking {
      readonly current: CurrentTransaction<pg.PoolClient>
      constructor(current: CurrentTransaction<pg.PoolClient>) {
        this.current = current
      }
      async book(asked: { readonly res?: AnyResponse }): Promise<void> {
        await this.current.tx.query('INSERT INTO payment VALUES ($1)', [id])
        ;(asked.res ?? (asked as unknown as AnyResponse)).send({ mine: true })
      }
    }
    decorated(Booking, {
      takes: [CurrentTransaction],
      methods: { book: [Guarded(() => lockKey('own-answer', id))] },
    })
    class Bookings {
      readonly booking: Booking
      constructor(booking: Booking) {
        this.booking = booking
      }
      async pay(response: AnyResponse): Promise<void> {
        await this.booking.book(given(response) as never)
      }
    }
    decorated(Bookings, {
      at: 'bookings',
      takes: [Booking],
      methods: { pay: [Post()] },
      params: { pay: [Res({ passthrough: true })] },
    })
    const metadata = { controllers: [Bookings], providers: [Booking] }
    const { ask } = await startApp({ pool: fixture.pool, platform }, metadata)
    const answer = await ask('POST', 'bookings', { body: {} })
    expect(answer).toMatchObject({ status: 500 })
    expect(answer.text).not.toContain('mine')
    expect(await payments(id)).toBe(0)
  })

  test('control: after @Guarded has committed, whoever called it may send', async () => {
    const id = fresh()
    class Sends {
      readonly current: CurrentTransaction<pg.PoolClient>
      constructor(current: CurrentTransaction<pg.PoolClient>) {
        this.current = current
      }
      async book(_response: AnyResponse): Promise<void> {
        await this.current.tx.query('INSERT INTO payment VALUES ($1)', [id])
      }
      async pay(response: AnyResponse): Promise<void> {
        await this.book(response)
        response.send({ mine: true })
      }
    }
    decorated(Sends, {
      at: 'sends',
      takes: [CurrentTransaction],
      methods: { book: [Guarded(() => lockKey('own-answer', id))], pay: [Post()] },
      params: { pay: [Res()] },
    })
    const { ask } = await startApp({ pool: fixture.pool, platform }, { controllers: [Sends] })
    expect(await ask('POST', 'sends', { body: {} })).toMatchObject({ body: { mine: true } })
    expect(await payments(id)).toBe(1)
  })

  test.each<readonly [string, () => unknown]>([
    ['a function', () => () => 1],
    ['a symbol', () => Symbol('one')],
    ['a Map', () => new Map([[1, 2]])],
    ['a Set in it', () => ({ ids: new Set([1]) })],
    ['a stream', () => new PassThrough()],
    ['a file', () => new StreamableFile(Buffer.from('one'))],
    ['a Buffer', () => Buffer.from('one')],
  ])('%s as the answer is refused, and nothing is done or kept', async (_, make) => {
    const { id, pay } = await open(make)
    for (let at = 0; at < 2; at += 1) {
      expect(await pay()).toMatchObject({ status: 500 })
      expect(await payments(id)).toBe(0)
    }
  })

  test('what is piped later, while it commits, does not get out', async () => {
    const [source, piped] = [new PassThrough(), deferred<void>()]
    const { id, pay } = await open((response) => {
      // The handler does not wait for it.
      queueMicrotask(() => {
        source.pipe(rawOf(response))
        source.end('mine')
        piped.resolve()
      })
      return { id: 1 }
    })
    const answer = await pay()
    await piped.promise
    expect(answer?.text ?? '').not.toContain('mine')
    // Whether that was in time to be refused or not: who asks again is told what is in the database.
    const again = await pay()
    expect(again?.text ?? '').not.toContain('mine')
    expect(await payments(id)).toBe(again?.status === 202 ? 1 : 0)
  })

  test('control: somebody around the route may answer before it, and the answer is kept', async () => {
    const [begun, end] = [deferred<void>(), deferred<void>()]
    const gaveUp = deferred<never>()
    let asked = 0
    class Impatient implements NestInterceptor {
      intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
        asked += 1
        return asked === 1 ? race(next.handle(), from(gaveUp.promise)) : next.handle()
      }
    }
    const { id, pay } = await open(async () => {
      begun.resolve()
      await end.promise
      return { paid: true }
    }, [UseInterceptors(new Impatient())])
    const first = pay()
    await begun.promise
    gaveUp.reject(new RequestTimeoutException())
    expect(await first).toMatchObject({ status: 408 })
    end.resolve()
    await expect
      .poll(async () => await pay(), { timeout: 10_000 })
      .toMatchObject({ status: 202, body: { paid: true } })
    expect(await payments(id)).toBe(1)
  })

  test('control: headers, status and cookies are its to set', async () => {
    const { pay } = await open((response) => {
      const { raw } = response
      if (raw === undefined) rawOf(response).setHeader('x-mine', 'yes')
      else
        (response as unknown as { header(name: string, value: string): void }).header(
          'x-mine',
          'yes',
        )
      return { paid: true }
    })
    for (const replayed of [null, 'true']) {
      const answer = await pay()
      expect(answer).toMatchObject({ status: 202, body: { paid: true } })
      expect(answer?.headers.get('x-mine')).toBe('yes')
      expect(answer?.headers.get('idempotency-replayed')).toBe(replayed)
    }
  })
})
