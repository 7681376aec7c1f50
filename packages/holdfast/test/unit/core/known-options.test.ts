import pg from 'pg'
import postgres from 'postgres'
import { Kysely, PostgresDialect } from 'kysely'
import { describe, expect, test } from 'vitest'
import { createDeadJobs } from '../../../src/entries/claims.ts'
import { isHoldfastError } from '../../../src/core/errors.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, lockKey, withCircuit } from '../../../src/index.ts'
import {
  createInterventions,
  createMetrics,
  createObserver,
  instrument,
  startRecorder,
} from '../../../src/observe/index.ts'
import { idempotentExpress, idempotentFastify, idempotentFetch } from '../../../src/entries/once.ts'
import { cronHandler } from '../../../src/entries/schedule.ts'
import { grants, inspect, migrate, plan } from '../../../src/schema/index.ts'
import { createMoves, holdAcross, initShards, shardedDriver } from '../../../src/shards/index.ts'

/** There is no server: whatever is told is told before one is asked. */
const pool = new pg.Pool({ host: 'localhost', port: 1, max: 1 })
const driver = fromPg(pool)
const hf = createHoldfast(driver)
const sql = postgres('postgres://localhost:1/nowhere')
const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) })
const nothing = (): undefined => undefined
const prisma = { $transaction: nothing, $queryRawUnsafe: nothing, $executeRawUnsafe: nothing }
const moves = createMoves({ north: { driver, connection: '' } })
const answer = async (): Promise<{ status: number }> => ({ status: 200 })

/** Every function that takes options and is no method of a Holdfast; for those see wrong-options.test.ts. */
const calls: Readonly<
  Record<string, { readonly call: (given: never) => unknown; readonly right?: object }>
> = {
  createHoldfast: { call: (given) => createHoldfast(driver, given) },
  fromPg: { call: (given) => fromPg(pool, given) },
  fromPostgresJs: { call: (given) => fromPostgresJs(sql, given) },
  fromKysely: { call: (given) => fromKysely(kysely, given) },
  fromPrisma: { call: (given) => fromPrisma(prisma as never, given) },
  withCircuit: { call: (given) => withCircuit(driver, given) },
  createObserver: { call: (given) => createObserver(driver, given) },
  startRecorder: { call: (given) => startRecorder(driver, given) },
  createMetrics: { call: (given) => createMetrics(given) },
  instrument: { call: (given) => instrument({} as never, given) },
  createInterventions: { call: (given) => createInterventions(driver, given) },
  createDeadJobs: { call: (given) => createDeadJobs(driver, given) },
  migrate: { call: (given) => migrate(driver, given) },
  inspect: { call: (given) => inspect(driver, given) },
  plan: { call: (given) => plan(given) },
  grants: { call: (given) => grants(given), right: { role: 'app' } },
  examine: { call: (given) => examine(driver, given) },
  shardedDriver: { call: (given) => shardedDriver({ north: driver }, given) },
  initShards: { call: (given) => initShards({ north: driver }, given) },
  createMoves: { call: (given) => createMoves({ north: { driver, connection: '' } }, given) },
  'moves.move': { call: (given) => moves.move(given), right: { buckets: [1], to: 'north' } },
  'moves.repair': { call: (given) => moves.repair(given) },
  'moves.planRebalance': { call: (given) => moves.planRebalance(given) },
  holdAcross: { call: (given) => holdAcross([], given), right: { operationId: 'some' } },
  cronHandler: { call: (given) => cronHandler({ fireAt: nothing } as never, given) },
  idempotentFetch: {
    call: (given) => idempotentFetch(hf.once, answer, given),
    right: { scope: nothing },
  },
  idempotentExpress: {
    call: (given) => idempotentExpress(hf.once, answer, given),
    right: { scope: nothing },
  },
  idempotentFastify: {
    call: (given) => idempotentFastify(hf.once, answer, given),
    right: { scope: nothing },
  },
}

describe.each(Object.entries(calls))('U6: %s', (_, { call, right = {} }) => {
  const toldOf = async (more: object): Promise<unknown> => {
    try {
      await call({ ...right, ...more } as never)
      return 'nothing was thrown'
    } catch (error) {
      return error
    }
  }

  test('names what it takes, and what was meant', async () => {
    const told = await toldOf({ zzyzx: 1 })
    expect(told).toMatchObject({ code: 'OPTION_INVALID', details: { option: 'zzyzx' } })
    const { allowed } = (told as { details: { allowed: string[] } }).details
    for (const name of allowed) {
      expect(await toldOf({ [`${name[0]}${name}`]: 1 })).toMatchObject({
        code: 'OPTION_INVALID',
        details: { didYouMean: name },
      })
      const typed = await toldOf({ [name]: Symbol('some') })
      expect(isHoldfastError(typed) ? typed.name : [name, typed]).toBe('UsageError')
    }
  })
})

const body = async (): Promise<string> => 'ran'

test.each<readonly [name: string, call: () => unknown, option: string]>([
  ['retry', () => hf.guard(key, body, { retry: { attemps: 3 } as never }), 'retry.attemps'],
  ['tx', () => createHoldfast(driver, { tx: { retires: 3 } as never }), 'tx.retires'],
  ['locks', () => createHoldfast(driver, { locks: { anotate: false } as never }), 'locks.anotate'],
  ['locks.watch', () => createHoldfast(driver, { locks: { watch: { x: 1 } } as never }), 'watch.x'],
  ['ledger', () => createHoldfast(driver, { ledger: { lane: 1 } as never }), 'ledger.lane'],
  ['columns', () => hf.claims({ table: 't', columns: { stats: 's' } as never }), 'columns.stats'],
  ['perKey', () => hf.claims({ table: 't', perKey: { colum: 's' } as never }), 'perKey.colum'],
  ['backoff', () => hf.work({ queue: 'q', backoff: { frist: 1 } as never }), 'backoff.frist'],
  ['perScope', () => hf.work({ queue: 'q', perScope: { limt: 1 } as never }), 'perScope.limt'],
])('U6: options of options, in %s', async (_, call, option) => {
  await expect((async () => await call())()).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    details: { option },
  })
})

const key = lockKey('wallet', 1)

test.each<readonly [name: string, call: () => unknown, option: string]>([
  ['two waits', () => hf.guard(key, body, { wait: '1 s', waitMs: 1_000 }), 'waitMs'],
  ['two deadlines', () => hf.guard(key, body, { deadline: '1 s', deadlineMs: 1 }), 'deadlineMs'],
  ['waits', () => createHoldfast(driver, { locks: { wait: '1 s', waitMs: 1 } }), 'waitMs'],
  ['windows', () => quota({ per: 'day', rolling: '1 h' }), 'per'],
  ['a zone without windows', () => quota({ rolling: '1 h', timeZone: 'UTC' }), 'timeZone'],
  ['a burst without a rate', () => quota({ per: 'day', burst: 3 }), 'burst'],
  ['two rules', () => schedule({ cron: '@daily', every: '1 h' }), 'every'],
  ['a zone of an interval', () => schedule({ every: '1 h', timeZone: 'UTC' }), 'timeZone'],
  ['handlers', () => hf.work({ queue: 'q' }).run(handlers as never), 'transactionHandler'],
  ['two times', () => enqueue({ payload: 1, runAt: new Date(), delay: '1 s' }), 'delay'],
  ['budgets', () => hf.guard(key, body, { retry: { budget: 1, budgetMs: 1 } }), 'budgetMs'],
])('U6: what contradicts itself: %s', async (_, call, option) => {
  await expect((async () => await call())()).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    details: { option },
  })
})

test('a window that is undefined is none', () => {
  const calls = { name: 'calls', limit: 1 }
  for (const each of [
    { per: 'day', rolling: undefined, rate: undefined },
    { rate: '1 s', per: undefined, rolling: undefined },
  ])
    expect(() => createHoldfast(driver).quota({ ...calls, ...each } as never)).not.toThrow()
})

const handlers = { handler: body, transactionHandler: body }

function quota(given: object): unknown {
  return hf.quota({ name: 'calls', limit: 1, ...given } as never)
}

function schedule(given: object): unknown {
  return hf.schedule({ name: 's', guarantee: 'at-most-once', handler: body, ...given } as never)
}

async function enqueue(given: object): Promise<unknown> {
  return await hf.work({ queue: 'q' }).enqueue(given as never)
}

test.each<readonly [name: string, call: () => unknown]>([
  ['guard', () => hf.guard('wallet:1' as never, body)],
  ['tryGuard', () => hf.tryGuard('wallet:1' as never, body)],
  ['guard of several', () => hf.guard([key, 'wallet:1'] as never, body)],
])('U6: a text is no key: %s', async (_, call) => {
  const error = await Promise.resolve(call()).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'LOCK_KEY_INVALID' })
  expect((error as Error).message).toContain('lockKey(namespace, id)')
  expect((error as Error).message).not.toContain('wallet:1')
})

test('U6: a unit that is none names those that are', async () => {
  const given = hf.guard(key, body, { waitMs: '2 seconds' as never })
  await expect(given).rejects.toThrow(/waitMs must be whole milliseconds or a text like '2 s'/)
})

test('U6: a name that looks like none is not repeated', async () => {
  const told = hf.guard(key, body, { 'alice@example.org': 1 } as never)
  await expect(told).rejects.toThrow(/there is no option here/)
  await expect(told).rejects.not.toThrow(/alice/)
})

test('a name that is missing is called as the caller calls it', async () => {
  const [calls, tokens, shop] = [
    hf.quota({ name: 'calls', limit: 1, per: 'day' }),
    hf.credits({ name: 'tokens' }),
    hf.stock({ name: 'shop' }),
  ]
  const operation = { operationId: 'op' } as never
  const line = [{ sku: 'mug', quantity: 1 }]
  const told: readonly (readonly [field: string, call: () => unknown])[] = [
    ['of', () => calls.refund('ann', 1, operation)],
    ['of', () => tokens.refund('ann', 1, operation)],
    ['of', () => shop.return(line, { externalId: 'x', of: '' })],
    ['grant', () => tokens.voidGrant('ann', undefined as never, operation)],
    ['plan', () => tokens.renew('ann', { plan: '', amount: 1, per: 'month' })],
    ['operationId', () => calls.refund('ann', 1, { of: 'op' } as never)],
    ['name', () => hf.quota({ name: '', limit: 1, per: 'day' })],
    ['name', () => hf.credits({ name: '' })],
    ['name', () => hf.stock({ name: '' })],
  ]
  for (const [field, call] of told) {
    const error = await (async () => await call())().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'LEDGER_NAME_INVALID', details: { field } })
    expect((error as Error).message).toContain(`(${field} must be`)
  }
})

test('a transaction in the place of options is told where it goes', async () => {
  const calls = hf.quota({ name: 'calls', limit: 1, per: 'day' })
  const handles = [pool, prisma, kysely, new pg.Client()]
  for (const tx of handles) {
    const error = await calls.consume('ann', 1, tx as never).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'OPTION_INVALID', details: { option: 'options' } })
    expect((error as Error).message).toMatch(/a transaction; .* it comes first: consume\(tx, …\)/)
  }
})
