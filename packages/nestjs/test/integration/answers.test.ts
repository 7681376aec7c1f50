/** Errors, refusals and `Idempotency-Key` over real sockets, on both platforms of Nest. */
import {
  Body,
  Catch,
  ConflictException,
  type ExceptionFilter,
  Get,
  HttpCode,
  Param,
  Post,
  Res,
  UseFilters,
} from '@nestjs/common'
import { deferred } from '@holdfast/testkit'
import type { Holdfast } from 'holdfast'
import { lockKey } from 'holdfast'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import {
  CurrentTransaction,
  Guarded,
  HOLDFAST,
  Idempotent,
  VerdictRefused,
} from '../../src/index.ts'
import { decorated } from '../support/decorate.ts'
import { type Asked, type NestApp, platforms, startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture('CREATE TABLE payment (id text, amount int)')
const secret = 'ann@example.org'

async function payments(amount: number): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM payment WHERE amount = $1', [amount])
  return rows.length
}

describe.each([...platforms, 'Express of Nest 11'] as const)('%s', (platform) => {
  describe('errors', () => {
    async function open(): Promise<NestApp> {
      class Errors {
        readonly hf: Holdfast<pg.PoolClient>
        constructor(hf: Holdfast<pg.PoolClient>) {
          this.hf = hf
        }
        async fail(what: string): Promise<unknown> {
          const { hf } = this
          if (what === 'locked') {
            const key = lockKey('nest-http', secret)
            const [held, end] = [deferred<void>(), deferred<void>()]
            const holder = fixture.hf.guard(key, async () => {
              held.resolve()
              await end.promise
            })
            await held.promise
            try {
              return await hf.guard(key, async () => 1, { wait: 'nowait', queue: false })
            } finally {
              end.resolve()
              await holder
            }
          }
          if (what === 'quota') {
            const calls = hf.quota({ name: fresh(), limit: 1, per: 'day' })
            await calls.consume(secret, 1, { operationId: fresh() })
            const verdict = await calls.consume(secret, 1, { operationId: fresh() })
            if (!verdict.ok) throw new VerdictRefused(verdict)
          }
          if (what === 'closed') {
            const other = fixture.create()
            await other.close()
            return await other.guard(lockKey('nest-http', secret), async () => 1)
          }
          if (what === 'mistake') return await hf.guard(secret as never, async () => 1)
          if (what === 'theirs') throw new ConflictException('mine')
          throw new Error(`mine ${secret}`)
        }
      }
      decorated(Errors, {
        at: 'errors',
        takes: [HOLDFAST],
        methods: { fail: [Get(':what')] },
        params: { fail: [Param('what')] },
      })
      return await startApp({ pool: fixture.pool, platform }, { controllers: [Errors] })
    }

    test.each([
      ['locked', 423, '1', { code: 'LOCK_BUSY' }],
      ['quota', 429, expect.stringMatching(/^\d+$/), { reason: 'insufficient' }],
      ['closed', 503, '1', {}],
      ['mistake', 500, null, {}],
    ])('U9: %s is %i', async (what, status, after, more) => {
      const { ask } = await open()
      const answer = await ask('GET', `errors/${what}`)
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([status, after])
      expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
      expect(answer.body).toEqual({ status, title: expect.any(String), ...more })
      expect(answer.text).not.toMatch(/ann@|nest-http|pid|guard/)
    })

    test('errors of others are answered as Nest does', async () => {
      const { ask } = await open()
      expect(await ask('GET', 'errors/theirs')).toMatchObject({
        status: 409,
        body: { message: 'mine' },
      })
      expect(await ask('GET', 'errors/own')).toMatchObject({ status: 500 })
    })

    test('decorators may stand in any order', async () => {
      class Routes {
        readonly current: CurrentTransaction<pg.PoolClient>
        constructor(current: CurrentTransaction<pg.PoolClient>) {
          this.current = current
        }
        async above(id: string): Promise<unknown> {
          return { id, open: this.current.isOpen }
        }
        async below(id: string): Promise<unknown> {
          return { id, open: this.current.isOpen }
        }
      }
      const guarded = Guarded((id: string) => lockKey('nest-order', id))
      decorated(Routes, {
        at: 'order',
        takes: [CurrentTransaction],
        methods: {
          above: [guarded, Get('above/:id'), HttpCode(202)],
          below: [Get('below/:id'), HttpCode(202), guarded],
        },
        params: { above: [Param('id')], below: [Param('id')] },
      })
      const { ask } = await startApp({ pool: fixture.pool, platform }, { controllers: [Routes] })
      for (const path of ['order/above/7', 'order/below/7'])
        expect(await ask('GET', path)).toMatchObject({ status: 202, body: { id: '7', open: true } })
    })

    test('a filter of the application goes first', async () => {
      class Own implements ExceptionFilter {
        catch(_error: unknown, host: Parameters<ExceptionFilter['catch']>[1]): void {
          const response = host.switchToHttp().getResponse<{
            status(code: number): { send(body: string): void }
          }>()
          response.status(418).send('own')
        }
      }
      Catch()(Own)
      class Errors {
        async fail(): Promise<void> {
          await fixture.hf.guard(secret as never, async () => undefined)
        }
      }
      decorated(Errors, { at: 'own', methods: { fail: [Get(), UseFilters(new Own())] } })
      const app = await startApp({ pool: fixture.pool, platform }, { controllers: [Errors] })
      expect(await app.ask('GET', 'own')).toMatchObject({ status: 418 })
    })
  })

  describe('@Idempotent', () => {
    interface Payment {
      readonly amount: number
      readonly how?: 'fails' | 'instance' | 'again'
    }
    class Receipt {
      readonly secret = 'of the class'
    }

    async function open(meanwhile?: () => Promise<void>) {
      let runs = 0
      class Payments {
        readonly current: CurrentTransaction<pg.PoolClient>
        constructor(current: CurrentTransaction<pg.PoolClient>) {
          this.current = current
        }
        async pay(payment: Payment, response: { header(name: string, value: string): void }) {
          runs += 1
          const id = fresh()
          await this.current.tx.query('INSERT INTO payment VALUES ($1, $2)', [id, payment.amount])
          await meanwhile?.()
          if (payment.how === 'fails') throw new ConflictException('sold out')
          if (payment.how === 'instance') return new Receipt()
          // Ends the transaction's first attempt as a serialization failure does.
          if (payment.how === 'again' && runs === 1)
            await this.current.tx.query(
              "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$",
            )
          response.header('location', `/payments/${id}`)
          return { id, runs }
        }
        async taken(_response: unknown): Promise<void> {
          runs += 1
        }
      }
      const idempotent = Idempotent({ scope: (request) => String(request.headers['x-user']) })
      decorated(Payments, {
        at: 'payments',
        takes: [CurrentTransaction],
        methods: { pay: [Post(), HttpCode(202), idempotent], taken: [Post('taken'), idempotent] },
        params: { pay: [Body(), Res({ passthrough: true })], taken: [Res()] },
      })
      const app = await startApp({ pool: fixture.pool, platform }, { controllers: [Payments] })
      const pay = (key: string | undefined, body: Payment, path = 'payments'): Promise<Asked> =>
        app.ask('POST', path, {
          body,
          headers: { 'x-user': 'ann', ...(key === undefined ? {} : { 'idempotency-key': key }) },
        })
      return { pay, runs: () => runs }
    }

    let amount = Math.floor(Math.random() * 1_000_000)
    const nextAmount = (): number => (amount += 1)

    test('U9: the same request again gets the same answer, and pays once', async () => {
      const { pay } = await open()
      const key = fresh()
      const first = await pay(key, { amount: nextAmount() })
      expect(first).toMatchObject({ status: 202, body: { runs: 1 } })
      expect(first.headers.get('idempotency-replayed')).toBe(null)
      const again = await pay(key, { amount })
      expect([again.status, again.body]).toEqual([first.status, first.body])
      expect(again.headers.get('location')).toBe(first.headers.get('location'))
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(await payments(amount)).toBe(1)
    })

    test('while the first is at work 409; another body 422; no key 400', async () => {
      const [begun, end] = [deferred<void>(), deferred<void>()]
      const { pay } = await open(async () => {
        begun.resolve()
        await end.promise
      })
      const key = fresh()
      const first = pay(key, { amount: nextAmount() })
      await begun.promise
      const busy = await pay(key, { amount })
      expect([busy.status, busy.headers.get('retry-after')]).toEqual([409, '1'])
      expect(busy.headers.get('content-type')).toMatch(/^application\/problem\+json/)
      end.resolve()
      expect((await first).status).toBe(202)
      for (const [other, status] of [
        [await pay(key, { amount: -1 }), 422],
        [await pay(undefined, { amount }), 400],
      ] as const) {
        expect(other).toMatchObject({ status, body: { status, title: expect.any(String) } })
        expect(other.headers.get('content-type')).toMatch(/^application\/problem\+json/)
      }
      expect(await payments(amount)).toBe(1)
    })

    test('an exception undoes the work, and the next request does it', async () => {
      const { pay } = await open()
      const key = fresh()
      const body = { amount: nextAmount(), how: 'fails' } as const
      expect(await pay(key, body)).toMatchObject({ status: 409, body: { message: 'sold out' } })
      expect(await payments(amount)).toBe(0)
      expect(await pay(key, body)).toMatchObject({ status: 409 })
    })

    test('a transaction that is tried again runs the handler again, and keeps one of them', async () => {
      const { pay, runs } = await open()
      expect(await pay(fresh(), { amount: nextAmount(), how: 'again' })).toMatchObject({
        status: 202,
        body: { runs: 2 },
      })
      expect([runs(), await payments(amount)]).toEqual([2, 1])
    })

    test('what a serializer would have to look at is refused, and so is @Res()', async () => {
      const { pay, runs } = await open()
      const body = { amount: nextAmount(), how: 'instance' } as const
      const refused = await pay(fresh(), body)
      expect(refused.status).toBe(500)
      expect(refused.text).not.toContain('of the class')
      expect(await payments(amount)).toBe(0)
      const before = runs()
      expect(await pay(fresh(), { amount }, 'payments/taken')).toMatchObject({ status: 500 })
      expect(runs()).toBe(before)
    })
  })
})
