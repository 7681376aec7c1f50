/**
 * `array_nulls = off` of a database makes PostgreSQL read a NULL in an array literal as the text. Nothing that any room
 * writes may depend on it: neither fail, nor leave a text that nobody gave in records that are never changed.
 */
import { randomUUID } from 'node:crypto'
import { databaseOf, deferred, sample, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { testDatabase } from '../../support/database.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'

let url: string
let observer: pg.Pool

beforeAll(async () => {
  const database = await testDatabase('installed')
  url = database.directUrl
  await withClient(url, async (client) => {
    const name = client.escapeIdentifier(databaseOf(url))
    await client.query(`ALTER DATABASE ${name} SET array_nulls = off`)
    await client.query('CREATE TABLE seen (by text)')
  })
  observer = new pg.Pool({ connectionString: url, max: 2 })
})
afterAll(() => observer.end())

/** The columns of our tables with a value, or an element, that is the text. */
async function strays(): Promise<unknown[]> {
  const { rows } = await observer.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
     WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r' ORDER BY relname`,
  )
  const found = []
  for (const { name } of rows) {
    const columns = await observer.query<{ column: string }>(
      `SELECT DISTINCT c.key AS column FROM holdfast.${pg.escapeIdentifier(name)} t,
       jsonb_each(to_jsonb(t)) c WHERE jsonb_path_exists(c.value, 'lax $ ? (@ == "NULL")')`,
    )
    found.push(...columns.rows.map(({ column }) => `${name}.${column}`))
  }
  return found
}

type Hf = Holdfast<unknown>
const fresh = (): string => `a${randomUUID().slice(0, 8)}`
const once = (): { readonly operationId: string } => ({ operationId: randomUUID() })

/** Of one moment, so that they go out together: with and without all that a line may have, then all of them again. */
async function together(hf: Hf): Promise<void> {
  const name = fresh()
  const plain = hf.quota({ name, per: 'lifetime', limit: 1_000 })
  const daily = hf.quota({ name: `${name}d`, per: 'day', limit: 1_000, timeZone: 'Asia/Tokyo' })
  const paced = hf.quota({ name: `${name}p`, rate: '1 min', limit: 1_000 })
  const rolling = hf.quota({ name: `${name}r`, rolling: '1 h', limit: 1_000 })
  const ids = Array.from({ length: 24 }, (_, at) => (at % 2 === 0 ? randomUUID() : `text ${at}`))
  const send = (operationId: string, at: number): Promise<unknown>[] => {
    const given = { operationId, ...(at % 3 === 0 && { note: { at } }) }
    return [
      plain.consume('k', 1, given),
      plain.consume(`scoped ${at % 4}`, 1, at % 4 === 0 ? { ...given, scope: 's' } : given),
      daily.consume('k', 1, given),
      paced.consume('k', 1, given),
      rolling.consume('k', 1, given),
      plain.hold('held', 1, { ...given, ttl: '1 h' }),
    ]
  }
  for (const replayed of [false, true]) {
    const verdicts = await Promise.all(ids.flatMap(send))
    for (const verdict of verdicts) expect(verdict).toMatchObject({ ok: true, replayed })
  }
  const { movements } = await hf.ledger.history(name, 'k')
  expect(movements.map(({ operationId }) => operationId).toSorted()).toEqual(ids.toSorted())
}

/** Ids of two kinds and nothing else that differs: no column fails, and a text that nobody gave would be kept for ever. */
async function idsOfTwoKinds(hf: Hf): Promise<void> {
  const name = fresh()
  const quota = hf.quota({ name, per: 'lifetime', limit: 1_000 })
  await quota.consume('k', 1, once())
  const ids = Array.from({ length: 24 }, (_, at) => (at % 2 === 0 ? randomUUID() : `text ${at}`))
  for (const replayed of [false, true]) {
    const verdicts = await Promise.all(
      ids.map((operationId, at) => quota.consume('k', 1, { operationId, note: { at } })),
    )
    for (const verdict of verdicts) expect(verdict).toMatchObject({ ok: true, replayed })
  }
}

/** Several lines of one operation, in a transaction of their own and in one of the caller's. */
async function severalLines(hf: Hf): Promise<void> {
  const stock = hf.stock({ name: fresh(), locations: ['here', 'there'] })
  const credits = hf.credits({ name: fresh() })
  const quota = hf.quota({ name: fresh(), per: 'month', limit: 100 })
  const here = { quantity: 20, location: 'here' } as const
  const both = [
    { sku: 'tee', ...here },
    { sku: 'mug', ...here },
  ]
  await stock.receive(both, { externalId: 'in' })
  const carts = await Promise.all(
    ['a', 'b', 'c'].map((externalId) =>
      stock.reserve(
        both.map((line) => ({ ...line, quantity: 2 })),
        { externalId, ttl: '1 h' },
      ),
    ),
  )
  const [first, second] = carts.map((cart) => (cart.ok ? String(cart.holdId) : ''))
  await Promise.all([stock.settle(first as string), stock.release(second as string)])
  await credits.grant('k', 9, { ...once(), expiresIn: '1 d' })
  const apply = async (tx?: unknown): Promise<unknown> => {
    const lines = await Promise.all([credits.line('k', 2), quota.line('k', 1, { ttl: '1 h' })])
    const options = { ...once(), scope: 'k' }
    return await (tx === undefined
      ? hf.ledger.apply(lines, options)
      : hf.ledger.apply(tx, lines, options))
  }
  expect(await apply()).toMatchObject({ ok: true })
  expect(await hf.transaction((tx) => apply(tx))).toMatchObject({ ok: true })
}

/** Whoever waits for an account that is kept is told of who keeps it. */
async function keptAccount(hf: Hf): Promise<void> {
  const daily = hf.quota({ name: fresh(), per: 'day', limit: 100 })
  const plain = hf.quota({ name: fresh(), per: 'lifetime', limit: 100 })
  await Promise.all([daily.consume('k', 1, once()), plain.consume('k', 1, once())])
  const [held, over] = [deferred<void>(), deferred<void>()]
  const keeping = hf.transaction(async (tx) => {
    for (const quota of [daily, plain]) await quota.consume(tx, 'k', 1, once())
    held.resolve()
    await over.promise
  })
  await held.promise
  const late = [daily, plain].map((quota) =>
    quota.consume('k', 1, { ...once(), note: {}, wait: '600 ms' }),
  )
  const told = await Promise.allSettled(late)
  over.resolve()
  await keeping
  for (const each of told) {
    expect(each).toMatchObject({
      reason: { code: 'LEDGER_TIMEOUT', blockers: [{ pid: expect.any(Number) }] },
    })
  }
}

async function otherRooms(hf: Hf): Promise<void> {
  const name = fresh()
  const limit = hf.rateLimit({ name, per: 'minute', limit: 1_000 })
  const taken = await Promise.all(Array.from({ length: 9 }, (_, at) => limit.consume(`k${at % 3}`)))
  expect(taken.every(({ ok }) => ok)).toBe(true)
  expect((await hf.once(name, async () => [null, 'NULL ', {}])).result).toEqual([null, 'NULL ', {}])
  const work = hf.work({ queue: name })
  await work.enqueue([{ payload: null }, { payload: { a: [null] }, uniqueKey: 'k' }])
  const jobs = await work.claim(2)
  expect((await work.complete(jobs)).kept).toHaveLength(2)
  const lease = await hf.leases.acquire(name)
  await hf.transaction(async (tx) => await lease.guard(tx))
  await lease.release()
  const ran: Date[] = []
  const schedule = hf.schedule({
    name,
    cron: '0 0 * * 1',
    timeZone: 'Asia/Tokyo',
    guarantee: 'at-least-once',
    handler: async ({ at }) => void ran.push(at),
  })
  expect(await schedule.fireAt(new Date('2026-01-05T00:00:00Z'))).toMatchObject({ outcome: 'done' })
  const keys = [lockKey('n', name), lockKey('n', 'NULL ')]
  expect(await hf.guard(keys, async () => 'in')).toBe('in')
}

test('control: in this database a NULL of an array literal is a text', async () => {
  const { rows } = await observer.query(`SELECT '{NULL,a}'::text[] AS read`)
  expect(rows).toEqual([{ read: ['NULL', 'a'] }])
})

describe.each(sample(Object.entries(everyClient)))('array_nulls = off, %s', (_, open) => {
  let client: OpenClient
  let hf: Hf
  beforeAll(async () => {
    client = await open(url)
    hf = createHoldfast(client.driver)
  })
  afterAll(async () => await client.end())

  test.each([
    ['operations of one moment', together],
    ['ids of two kinds', idsOfTwoKinds],
    ['operations of several lines', severalLines],
    ['an account that is kept', keptAccount],
    ['the other rooms', otherRooms],
  ])('%s', async (_what, play) => {
    await play(hf)
    expect(await strays()).toEqual([])
    expect(await hf.ledger.audit()).toMatchObject({ found: 0 })
  })
})

test('in a transaction of the caller’s the setting is put back', async () => {
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  const hf = createHoldfast(fromPg(pool))
  const credits = hf.credits({ name: fresh() })
  await credits.grant('k', 9, { ...once(), expiresIn: '1 d' })
  const setting = await hf.transaction(async (tx) => {
    const lines = [await credits.line('k', 2), await credits.line('j', 1)]
    await hf.ledger.apply(tx, lines, { ...once(), scope: 'k' })
    return (await tx.query('SHOW array_nulls')).rows
  })
  expect(setting).toEqual([{ array_nulls: 'off' }])
  await pool.end()
})
