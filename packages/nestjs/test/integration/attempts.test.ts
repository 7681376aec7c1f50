/** What a handler sets on its response, when its transaction is undone and it runs again. */
import { HttpCode, HttpStatus, Post, Res } from '@nestjs/common'
import { lockKey } from 'holdfast'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../../holdfast/test/support/ledger-fixture.ts'
import { CurrentTransaction, Guarded, Idempotent, Once } from '../../src/index.ts'
import { decorated } from '../support/decorate.ts'
import { type Asked, platforms, startApp } from '../support/nest-app.ts'

const fixture = ledgerFixture()

/** What Express and Fastify have in common. */
interface AnyResponse {
  status(code: number): unknown
  setHeader?(name: string, value: string | readonly string[]): unknown
  header(name: string, value: string | readonly string[]): unknown
  readonly raw?: { setHeader(name: string, value: string | readonly string[]): unknown }
}

type Handler = (response: AnyResponse, attempt: number) => unknown
type AnyDecorator = (...args: never[]) => unknown

const decorators: Readonly<Record<string, (id: string) => readonly AnyDecorator[]>> = {
  '@Idempotent': () => [Idempotent({ scope: () => 'ann' }), Post(), HttpCode(201)],
  '@Guarded': (id) => [Post(), HttpCode(201), Guarded(() => lockKey('attempts', id))],
  '@Once': (id) => [Post(), HttpCode(201), Once(() => id)],
}

describe.each(platforms)('%s', (platform) => {
  async function open(decorate: (id: string) => readonly AnyDecorator[], handler: Handler) {
    const id = fresh()
    let attempts = 0
    class Orders {
      readonly current: CurrentTransaction<pg.PoolClient>
      constructor(current: CurrentTransaction<pg.PoolClient>) {
        this.current = current
      }
      async order(response: AnyResponse): Promise<unknown> {
        attempts += 1
        const result = handler(response, attempts)
        const undone = `DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$`
        if (attempts === 1) await this.current.tx.query(undone)
        return result
      }
    }
    decorated(Orders, {
      at: 'orders',
      takes: [CurrentTransaction],
      methods: { order: decorate(id) },
      params: { order: [Res({ passthrough: true })] },
    })
    const { ask } = await startApp({ pool: fixture.pool, platform }, { controllers: [Orders] })
    const headers = { 'idempotency-key': id }
    return async (): Promise<Asked> => await ask('POST', 'orders', { headers, body: {} })
  }

  describe.each(Object.entries(decorators))('%s', (name, decorate) => {
    test.each<readonly [string, number]>([
      ['202', HttpStatus.ACCEPTED],
      // Not final: the work of the second attempt would be undone.
      ['503', HttpStatus.SERVICE_UNAVAILABLE],
    ])('status %s and headers of an attempt that was undone are gone', async (_, status) => {
      const ask = await open(decorate, (response, attempt) => {
        if (attempt > 1) return { state: 'created' }
        response.status(status)
        response.header('x-queued', 'yes')
        response.header('set-cookie', 'queued=yes')
        if (response.raw === undefined) response.setHeader?.('x-raw', ['yes', 'no'])
        else response.raw.setHeader('x-raw', ['yes', 'no'])
        return { state: 'queued' }
      })
      // The second answer of `@Idempotent` is the one that was kept.
      for (let times = 0; times < (name === '@Idempotent' ? 2 : 1); times += 1) {
        const answer = await ask()
        expect(answer).toMatchObject({ status: 201, body: { state: 'created' } })
        expect(answer.headers.get('x-queued')).toBeNull()
        expect(answer.headers.get('x-raw')).toBeNull()
        expect(answer.headers.getSetCookie()).toEqual([])
      }
    })

    test('control: those of the attempt that was committed are there', async () => {
      const ask = await open(decorate, (response, attempt) => {
        response.status(attempt === 1 ? 200 : 202)
        response.header('x-attempt', String(attempt))
        response.header('set-cookie', `attempt=${attempt}`)
        return { attempt }
      })
      const answer = await ask()
      expect(answer).toMatchObject({ status: 202, body: { attempt: 2 } })
      expect(answer.headers.get('x-attempt')).toBe('2')
      expect(answer.headers.getSetCookie()).toEqual(['attempt=2'])
    })
  })

  test('headers with several values are kept, and cookies are not', async () => {
    const ask = await open(decorators['@Idempotent'] as never, (response) => {
      response.header('link', ['<a>; rel=next', '<b>; rel=prev'])
      response.header('x-number', 7 as never)
      response.header('set-cookie', ['a=1', 'b=2'])
      return { ok: true }
    })
    for (const replayed of [null, 'true']) {
      const answer = await ask()
      expect(answer).toMatchObject({ status: 201, body: { ok: true } })
      expect(answer.headers.get('idempotency-replayed')).toBe(replayed)
      expect(answer.headers.get('link')).toBe('<a>; rel=next, <b>; rel=prev')
      expect(answer.headers.get('x-number')).toBe('7')
      expect(answer.headers.getSetCookie()).toEqual(replayed === null ? ['a=1', 'b=2'] : [])
    }
  })
})
