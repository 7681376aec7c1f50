/**
 * Options that cannot be are refused before anything runs: those of decorators where they stand, those of the module when
 * the application starts. A wrong value would be told by the first call otherwise, or by the shutdown.
 */
import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { Guarded, HoldfastModule, Idempotent, Once, Tick } from '../../src/index.ts'

/** Nobody connects to it. */
const pool = new pg.Pool({ host: '127.0.0.1', port: 1 })
afterAll(async () => await pool.end())

const key = (): ReturnType<typeof lockKey> => lockKey('nest-options', 'x')
const once = (): string => 'x'
const nightly = { name: 'nightly', cron: '0 3 * * *', guarantee: 'transactional' }

function refusal(option: string): unknown {
  return expect.objectContaining({
    code: 'OPTION_INVALID',
    details: expect.objectContaining({ option }),
  })
}

/** Of every call that opens a transaction. */
type Wrong = readonly [option: string, options: object]

const ofRuns: readonly Wrong[] = [
  ['isolation', { isolation: 'serialisable' }],
  ['deadline', { deadline: '5 seconds' }],
  ['deadline', { deadline: { seconds: 5 } }],
  ['deadlineMs', { deadlineMs: '5' }],
  ['deadlineMs', { deadlineMs: 0 }],
  ['deadlineMs', { deadline: '1 s', deadlineMs: 1 }],
  ['retry', { retry: true }],
  ['retry', { retry: 3 }],
  ['retry.attempts', { retry: { attempts: 0 } }],
  ['retry.attempts', { retry: { attempts: '3' } }],
  ['retry.budget', { retry: { budget: 'long' } }],
  ['retry.on', { retry: { on: '40001' } }],
  ['retry.attemps', { retry: { attemps: 3 } }],
  ['onRetry', { onRetry: 'log' }],
  ['signal', { signal: 'SIGTERM' }],
  ['durable', { durable: 'true' }],
  ['scopes', { scopes: 'a' }],
  ['wiat', { wiat: '1 s' }],
]

describe('a wrong value is refused where the decorator stands', () => {
  test.each<Wrong>([
    ...ofRuns,
    ['wait', { wait: '5 seconds' }],
    ['wait', { wait: null }],
    ['wait', { wait: -1 }],
    ['waitMs', { waitMs: 'soon' }],
    ['waitMs', { wait: '1 s', waitMs: 1 }],
    ['keepTransaction', { keepTransaction: 1 }],
    ['allowStaleSnapshot', { allowStaleSnapshot: 'no' }],
    ['queue', { queue: 'false' }],
  ])('@Guarded, %s: %j', (option, options) => {
    expect(() => Guarded(key, options as never)).toThrow(refusal(option))
  })

  test.each<Wrong>([
    ...ofRuns,
    ['wait', { wait: '5 seconds' }],
    ['keep', { keep: 'long' }],
    ['payload', { payload: { id: 1 } }],
    ['payload', { payload: undefined }],
  ])('@Once, %s: %j', (option, options) => {
    expect(() => Once(once, options as never)).toThrow(refusal(option))
  })

  test.each(['', ' ', 'Idempotency Key', 'schlüssel', 5])('@Idempotent, header: %j', (header) => {
    const scope = (): string => 'ann'
    expect(() => Idempotent({ scope, header } as never)).toThrow(refusal('header'))
  })

  test('@Once, a scope that no key can have', () => {
    for (const scope of [5, ''])
      expect(() => Once(once, { scope } as never)).toThrow(
        expect.objectContaining({ code: 'ONCE_KEY_INVALID' }),
      )
  })

  test.each([
    ['options', undefined],
    ['options', 'nightly'],
    ['guarantee', { ...nightly, guarantee: 'maybe' }],
    ['name', { ...nightly, name: '' }],
    ['cron', { ...nightly, cron: 'at three' }],
    ['every', { ...nightly, every: '1 h' }],
    ['deadline', { ...nightly, deadline: '5 seconds' }],
    ['lease', { ...nightly, lease: '30 s' }],
    ['handler', { ...nightly, handler: () => 1 }],
  ])('@Tick, %s: %j', (option, options) => {
    expect(() => Tick(options as never)).toThrow(refusal(option))
  })

  test('those that can be are taken', () => {
    const signal = AbortSignal.abort()
    const isolation = 'read committed'
    const made = [
      Guarded(key, { wait: 'inherit', isolation, retry: false, signal, durable: true }),
      Guarded(key, { waitMs: 10, deadlineMs: 10, retry: { on: ['23505', 'LOCK_TIMEOUT'] } }),
      Once(once, { wait: true, scope: () => 'a', payload: () => 1, keep: '1 h', scopes: ['a'] }),
      Once(once, { wait: false, scope: 'a', deadline: '10 s' }),
      Tick({ ...nightly, deadline: '10 s' } as never),
      Tick({ name: 'often', every: '1 s', guarantee: 'at-most-once', lease: '10 s' }),
    ]
    expect(made).toEqual(made.map(() => expect.any(Function)))
  })
})

describe('the module', () => {
  async function start(options: object): Promise<unknown> {
    class App {}
    const wanted = { driver: fromPg(pool), ...options } as never
    Module({ imports: [HoldfastModule.forRootAsync({ useFactory: async () => wanted })] })(App)
    const settings = { logger: false, abortOnError: false } as const
    const app = await NestFactory.createApplicationContext(App, settings)
    await app.close()
    return 'started'
  }

  test.each([
    ['driver', { driver: undefined }],
    ['driver', { driver: 'postgres://localhost' }],
    ['close.whitin', { close: { whitin: '5 s' } }],
    ['close.within', { close: { within: '5 seconds' } }],
    ['close.leaveAfter', { close: { leaveAfter: 'never' } }],
    ['close', { close: '20 s' }],
    ['ticks', { ticks: 'false' }],
    ['ticks', { ticks: 0 }],
    ['afterClose', { afterClose: 'end' }],
    ['ambient', { ambient: {} }],
    ['ambient', { ambient: () => undefined }],
    ['answers', { answers: 'json' }],
    ['options', { options: 'holdfast' }],
    ['deadline', { options: { tx: { deadline: '5 seconds' } } }],
    ['wait', { options: { wait: '5 seconds' } }],
    ['tics', { tics: false }],
  ])('%s: %j does not start', async (option, options) => {
    await expect(start(options)).rejects.toEqual(refusal(option))
  })

  test('what can be starts', async () => {
    const close = { within: 5, leaveAfter: '1 s' }
    const ambient = { find: () => undefined, run: async () => undefined }
    const all = { close, ticks: false, afterClose: () => 1, ambient, answers: {}, options: {} }
    expect(await start(all)).toBe('started')
    expect(await start({ close: undefined, ticks: undefined })).toBe('started')
  })

  test.each([
    ['useFactory', {}],
    ['useFactory', { useFactory: { driver: 1 } }],
    ['usefactory', { useFactory: () => 1, usefactory: 1 }],
    ['options', undefined],
  ])('forRootAsync, %s: %j', (option, options) => {
    expect(() => HoldfastModule.forRootAsync(options as never)).toThrow(refusal(option))
  })
})
