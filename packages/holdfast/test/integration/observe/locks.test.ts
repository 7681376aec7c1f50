import { sample, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { legacyKey, lockKey } from '../../../src/index.ts'
import { createObserver, type Observer } from '../../../src/observe/index.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { callerTransaction, pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { newRole } from '../../support/schema-fixture.ts'

/** A database without Holdfast's schema: locks can be looked at all the same. */
const fixture = pgFixture('CREATE TABLE orders (id int PRIMARY KEY)')
const observing = (): Observer => createObserver(fromPg(fixture.pool))

/** Also while a statement of it waits. */
function backendOf(client: pg.Client): number {
  return (client as unknown as { readonly processID: number }).processID
}

/** One holds a key and another waits for it, until the test ends. */
async function contention(): Promise<{ readonly holder: number; readonly waiter: number }> {
  const held = await callerTransaction(fixture)
  const key = lockKey('cart', 7)
  await fixture.hf.locks.acquire(held, key)
  const waiting = await callerTransaction(fixture)
  const waiter = await pidOf(waiting)
  const wait = fixture.hf.locks.acquire(waiting, key, { waitMs: 60_000 })
  wait.catch(() => undefined)
  await waitUntilBlocked(fixture.observer, waiter)
  const holder = await pidOf(held)
  // Registered last, so it runs first: the waiter can be rolled back only after it was let through.
  onTestFinished(async () => {
    await held.query('ROLLBACK')
    await wait.catch(() => undefined)
  })
  return { holder, waiter }
}

describe.each(sample(Object.entries(everyClient)))('%s', (_, open) => {
  let client: OpenClient
  beforeAll(async () => {
    client = await open(fixture.database.url)
  })
  afterAll(async () => client.end())

  test('sees who blocks whom', async () => {
    const { holder, waiter } = await contention()
    const observer = createObserver(client.driver)
    const { roots, sessions, at } = await observer.locks()
    expect(roots).toEqual([holder])
    expect(
      sessions.map(({ pid, holds, waitsFor }) => [pid, holds[0]?.name, waitsFor?.name]),
    ).toEqual([
      [holder, 'cart:7', undefined],
      [waiter, undefined, 'cart:7'],
    ])
    expect(Math.abs(Date.now() - Date.parse(at))).toBeLessThan(60_000)
    expect(await observer.hotKeys()).toMatchObject([{ name: 'cart:7', waiting: 1 }])
    expect(await observer.session(waiter)).toMatchObject({
      state: 'active',
      hidden: false,
      blockedBy: [{ pid: holder, kind: 'hard' }],
    })
    expect(JSON.parse(JSON.stringify(sessions))).toEqual(sessions)
  })
})

test('of a long queue everybody is shown, and only the nearest of those ahead', async () => {
  const held = await callerTransaction(fixture)
  await held.query('SELECT pg_advisory_xact_lock(7)')
  const clients: pg.Client[] = []
  const waits: Promise<unknown>[] = []
  for (let at = 0; at < 15; at += 1) {
    const client = new pg.Client({ connectionString: fixture.database.directUrl })
    clients.push(client)
    await client.connect()
    waits.push(client.query('SELECT pg_advisory_xact_lock(7)'))
    await waitUntilBlocked(fixture.observer, backendOf(client))
  }
  const holder = await pidOf(held)
  onTestFinished(async () => {
    await held.query('ROLLBACK')
    await Promise.all(waits)
    await Promise.all(clients.map((client) => client.end()))
  })
  const queue = clients.map(backendOf)
  const { roots, sessions } = await observing().locks()
  const blockers = (pid: number | undefined): number[] =>
    sessions.find((session) => session.pid === pid)?.blockedBy.map((block) => block.pid) ?? []
  expect(roots).toEqual([holder])
  expect(sessions.find(({ pid }) => pid === holder)?.waiters).toBe(15)
  expect(blockers(queue[3])).toEqual([holder, ...queue.slice(0, 3).toSorted((a, b) => a - b)])
  expect(blockers(queue[14])).toEqual([holder, ...queue.slice(6, 14).toReversed()])
  // Whoever is left out is still counted.
  expect(sessions.find(({ pid }) => pid === queue[0])?.waiters).toBe(14)
})

test('nobody blocks and nobody holds: nothing is shown', async () => {
  expect(await observing().locks()).toMatchObject({ roots: [], sessions: [], capped: false })
  expect(await observing().hotKeys()).toEqual([])
})

test('a session is told about whatever it does; one that is gone is not', async () => {
  const idle = new pg.Client({
    connectionString: fixture.database.directUrl,
    application_name: 'idler',
  })
  await idle.connect()
  const pid = await pidOf(idle)
  const seen = await observing().session(pid)
  expect(seen).toMatchObject({ application: 'idler', state: 'idle', holds: [], waiters: 0 })
  expect(seen?.transactionMs).toBeUndefined()
  await idle.end()
  await waitUntil('it is gone', async () =>
    (await observing().session(pid)) === undefined ? true : undefined,
  )
  for (const nobody of [-1, 0, 1.5, 2 ** 40, Number.NaN]) {
    expect(await observing().session(nobody)).toBeUndefined()
  }
})

test('a look leaves the session as it was', async () => {
  const one = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  const settings = async (): Promise<unknown> => {
    const { rows } = await one.query<Record<string, unknown>>(`
      SELECT name, setting FROM pg_settings
      WHERE name IN ('statement_timeout', 'transaction_read_only', 'jit', 'application_name', 'search_path',
        'default_transaction_read_only', 'lock_timeout') ORDER BY name`)
    return rows
  }
  const before = await settings()
  await createObserver(fromPg(one)).locks()
  expect(await settings()).toEqual(before)
  await one.end()
})

test('a role that may not read statistics sees the tree, and is told what is hidden from it', async () => {
  const name = await newRole(fixture.observer, 'LOGIN')
  const url = new URL(fixture.database.directUrl)
  url.username = encodeURIComponent(name)
  const pool = new pg.Pool({ connectionString: url.href, max: 1 })
  const { holder, waiter } = await contention()
  const { sessions } = await createObserver(fromPg(pool)).locks()
  expect(sessions).toMatchObject([
    { pid: holder, hidden: true, state: 'hidden', label: 'cart:7', holds: [{ name: 'cart:7' }] },
    { pid: waiter, hidden: true, waitsFor: { name: 'cart:7' }, blockedBy: [{ pid: holder }] },
  ])
  expect(sessions[0]?.query).toMatch(/pg_read_all_stats/)
  // The control: with the right of one who watches, nothing is hidden.
  await fixture.observer.query(`GRANT pg_read_all_stats TO ${pg.escapeIdentifier(name)}`)
  expect((await createObserver(fromPg(pool)).locks()).sessions[0]).toMatchObject({
    hidden: false,
    state: 'idle in transaction',
  })
  await pool.end()
})

test('locks that were taken out of order are found before they deadlock', async () => {
  const [low, high] = [legacyKey.bigint(1), legacyKey.bigint(2)]
  const hf = fixture.create({ locks: { strict: false, watch: false } })
  const codes = async (first: typeof low, second: typeof low): Promise<string[]> => {
    const [holder, client] = [await fixture.pool.connect(), await fixture.pool.connect()]
    await holder.query('BEGIN')
    await client.query('BEGIN')
    await hf.locks.acquire(holder, second)
    await hf.locks.acquire(client, first)
    const pid = await pidOf(client)
    const waiting = hf.locks.acquire(client, second, { waitMs: 60_000 })
    await waitUntilBlocked(fixture.observer, pid)
    const advice = (await observing().session(pid))?.advice ?? []
    await holder.query('ROLLBACK')
    await waiting
    await client.query('ROLLBACK')
    holder.release()
    client.release()
    return advice.map(({ code }) => code)
  }
  expect(await codes(high, low)).toEqual(['order-violated'])
  expect(await codes(low, high)).toEqual([])
})

test('sixty who wait for one key are seen in one look', async () => {
  const holder = new pg.Client({ connectionString: fixture.database.directUrl })
  await holder.connect()
  await holder.query(`BEGIN; SELECT pg_advisory_xact_lock(${lockKey('hot', 1).lock.id})`)
  const waiting = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const client = new pg.Client({ connectionString: fixture.database.directUrl })
      await client.connect()
      const done = client.query(`SELECT pg_advisory_xact_lock(${lockKey('hot', 1).lock.id})`)
      return { client, done }
    }),
  )
  const tree = await waitUntil('all wait', async () => {
    const look = await observing().locks()
    return look.sessions.length === waiting.length + 1 ? look : undefined
  })
  expect(tree.sessions[0]).toMatchObject({ waiters: waiting.length })
  // In a queue everybody waits for the holder, and for those ahead, of whom the nearest are shown.
  expect(tree.sessions.at(-1)?.blockedBy).toHaveLength(1 + 8)
  expect(tree.sessions.map(({ waiters }) => waiters)).toEqual(
    Array.from({ length: waiting.length + 1 }, (_, at) => waiting.length - at),
  )
  await holder.query('ROLLBACK')
  await Promise.all(waiting.map(({ done }) => done))
  await Promise.all(waiting.map(({ client }) => client.end()))
  await holder.end()
})

test.each([0, -1, 1.5, Number.NaN])('statementTimeoutMs %d is refused', (statementTimeoutMs) => {
  expect(() => createObserver(fromPg(fixture.pool), { statementTimeoutMs })).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }) as Error,
  )
})
