/** The queue that Holdfast brings along: claims over its own table, and a way to add to it. */
import { barrier, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Work } from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { appRole } from '../../support/app-role.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const role = appRole(fixture)

let queues = 0
function queue(options: object = {}): { queue: string; work: Work<pg.PoolClient, unknown> } {
  queues += 1
  const name = `queue ${queues}`
  return { queue: name, work: fixture.hf.work({ queue: name, ...options }) }
}

const payloads = (claims: readonly { row: { payload: unknown } }[]): unknown[] =>
  claims.map(({ row }) => row.payload)

describe('a handler that rejects with what has no text', () => {
  const silent = Object.assign(new Error(), { message: undefined })
  test.each([
    ['no message', silent, 'Error'],
    ['no prototype', Object.create(null), 'an error that has no text'],
  ])('%s: the job has failed, and so has the tick', async (_, error, text) => {
    const { work, queue: name } = queue({ backoff: { first: 1, most: 1 } })
    await work.enqueue({ payload: 1, maxAttempts: 2 })
    await using worker = await work.run({
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      handler: () => Promise.reject(error),
      poll: { min: 10, max: 10 },
    })
    await waitUntil('it is dead', async () => (await work.dead.list()).rows[0])
    const [dead] = (await work.dead.list()).rows
    expect(dead).toMatchObject({ error: text })
    expect(worker.active).toBe(0)
    const schedule = fixture.hf.schedule({
      name,
      guarantee: 'transactional',
      attempts: 1,
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors
      handler: () => Promise.reject(error),
    })
    expect(await schedule.runNow()).toMatchObject({ outcome: 'failed' })
  })
})

describe('enqueue', () => {
  test('adds in order; claimed by priority, then by time', async () => {
    const { work } = queue()
    expect(await work.enqueue({ payload: 'late', delay: '1 h' })).toMatchObject({ added: true })
    await work.enqueue([
      { payload: { n: 1 } },
      { payload: [2], priority: -1 },
      { payload: null },
      { payload: 'text' },
    ])
    const claims = await work.claim(9)
    expect(payloads(claims)).toEqual([[2], { n: 1 }, null, 'text'])
    expect(claims[0]).toMatchObject({ attempt: 1, row: { priority: -1 } })
    expect((await work.complete(claims)).kept).toHaveLength(4)
    expect(await work.claim()).toEqual([])
    expect(await work.enqueue([])).toEqual([])
  })

  test('queues do not see each other', async () => {
    const [a, b] = [queue().work, queue().work]
    await a.enqueue({ payload: 1 })
    expect(await b.claim(9)).toEqual([])
    expect(await a.claim(9)).toHaveLength(1)
  })

  test('in the caller’s transaction: there when it commits, never if it does not', async () => {
    const { work } = queue()
    const tx = await callerTransaction(fixture)
    await work.enqueue(tx, { payload: 'no' })
    await tx.query('ROLLBACK')
    await tx.query('BEGIN')
    const { id } = await work.enqueue(tx, { payload: 'yes' })
    expect(await work.claim(9)).toEqual([])
    await tx.query('COMMIT')
    expect((await work.claim(9)).map(({ row }) => row)).toEqual([
      expect.objectContaining({ id, payload: 'yes' }),
    ])
  })

  test('a date and a number of attempts', async () => {
    const { work, queue: name } = queue({ backoff: { first: 1, most: 1 } })
    await work.enqueue({ payload: 1, runAt: new Date('2001-02-03T04:05:06Z'), maxAttempts: 1 })
    await work.fail(await work.claim(), { error: new Error('once is enough') })
    const { rows } = await fixture.observer.query(
      'SELECT status, last_error, run_at FROM holdfast.work WHERE queue = $1',
      [name],
    )
    expect(rows).toEqual([
      { status: 'dead', last_error: 'once is enough', run_at: new Date('2001-02-03T04:05:06Z') },
    ])
  })

  test.each([
    [{ payload: undefined }, 'payload'],
    [{ payload: 1, delay: '1 s', runAt: new Date() }, 'delay'],
    [{ payload: 1, runAt: new Date(Number.NaN) }, 'runAt'],
    [{ payload: 1, priority: 1.5 }, 'priority'],
    [{ payload: 1, maxAttempts: 0 }, 'maxAttempts'],
  ] as const)('%o is refused', async (work, option) => {
    await expect(queue().work.enqueue(work as never)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option },
    })
  })

  test('without a schema, and outside a transaction, it says so', async () => {
    const other = fixture.hf.work({ queue: 'x', schema: 'nowhere' })
    const { dead } = other
    for (const call of [
      () => other.enqueue({ payload: 1 }),
      () => other.claim(),
      () => other.run({ handler: () => Promise.resolve() }),
      () => dead.list(),
      () => dead.get('1'),
      () => dead.retry('1'),
      () => dead.delete('1'),
    ]) {
      const error = await (call() as Promise<unknown>).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'SCHEMA_MISSING' })
      // The cause is what the server or the look said, and not the same once more.
      expect(error).not.toMatchObject({ cause: { code: 'SCHEMA_MISSING' } })
    }
    const client = await fixture.pool.connect()
    await expect(queue().work.enqueue(client, { payload: 1 })).rejects.toMatchObject({
      code: 'CLAIM_OUTSIDE_TRANSACTION',
    })
    client.release()
    expect(() => fixture.hf.work({ queue: '' })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })
})

describe('a unique key', () => {
  test('is there once while it is pending or claimed, and may come again after that', async () => {
    const { work } = queue()
    const first = await work.enqueue({ payload: 1, uniqueKey: 'k' })
    expect(first.added).toBe(true)
    expect(await work.enqueue({ payload: 2, uniqueKey: 'k' })).toEqual({
      id: first.id,
      added: false,
    })
    const claims = await work.claim()
    expect(await work.enqueue({ payload: 3, uniqueKey: 'k' })).toEqual({
      id: first.id,
      added: false,
    })
    // Back to pending: there is no second one that it could meet.
    await work.fail(claims, { retryInMs: 0 })
    await work.complete(await work.claim())
    expect(await work.enqueue({ payload: 4, uniqueKey: 'k' })).toMatchObject({ added: true })
    expect(await work.enqueue({ payload: 5, uniqueKey: 'k', scope: 'other' })).toMatchObject({
      added: true,
    })
  })

  test('in one call, the first one is added', async () => {
    const { work } = queue()
    const answers = await work.enqueue([
      { payload: 1, uniqueKey: 'b' },
      { payload: 2 },
      { payload: 3, uniqueKey: 'a' },
      { payload: 4, uniqueKey: 'b' },
    ])
    expect(answers.map(({ added }) => added)).toEqual([true, true, true, false])
    expect(answers[3]?.id).toBe(answers[0]?.id)
    expect(payloads(await work.claim(9))).toEqual([1, 2, 3])
  })

  test('of many at once, one is added, and nobody is left without an answer', async () => {
    const { work } = queue()
    const meet = barrier(12)
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, n) => {
          await meet()
          // Some finish what others have just added.
          if (n < 3) await work.complete(await work.claim())
          return await work.enqueue({ payload: n, uniqueKey: `r${round}` })
        }),
      )
      expect(answers.every(({ id }) => id !== undefined)).toBe(true)
      expect(answers.some(({ added }) => added)).toBe(true)
      await work.complete(await work.claim(50))
    }
  })

  test('waits for who is just adding it, and adds if they do not', async () => {
    const { work } = queue()
    const tx = await callerTransaction(fixture)
    await work.enqueue(tx, { payload: 1, uniqueKey: 'k' })
    const other = await callerTransaction(fixture)
    const pid = await pidOf(other)
    const waiting = work.enqueue(other, { payload: 2, uniqueKey: 'k' })
    await waitUntilBlocked(fixture.observer, pid)
    await tx.query('ROLLBACK')
    expect(await waiting).toMatchObject({ added: true })
  })

  test('at REPEATABLE READ, one that cannot be seen is a conflict', async () => {
    const { work } = queue()
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await tx.query('SELECT 1')
    await work.enqueue({ payload: 1, uniqueKey: 'k' })
    const answer = work.enqueue(tx, { payload: 2, uniqueKey: 'k' })
    await expect(answer).rejects.toMatchObject({ code: '40001' })
  })
})

test('scopes take turns, and have limits', async () => {
  const { work } = queue({ perScope: { limit: 2 } })
  await work.enqueue(Array.from({ length: 9 }, (_, n) => ({ payload: n, scope: 'big' })))
  await work.enqueue({ payload: 'small', scope: 'small' })
  const claims = await work.claim(9)
  expect(claims.map(({ row }) => row.scope).toSorted()).toEqual(['big', 'big', 'small'])
})

test('its table has all the indexes, also for turns and limits', async () => {
  expect(await queue().work.check()).toEqual([])
  expect(await queue({ perScope: { limit: 1 } }).work.check()).toEqual([])
})

test('a role with the grants can add, claim, finish and run', async () => {
  const work = createHoldfast(fromPg(role.pool)).work({ queue: 'for the role' })
  await work.enqueue([{ payload: 1 }, { payload: 2 }])
  await work.fail(await work.claim(1), { retryInMs: 0 })
  const seen: unknown[] = []
  const worker = await work.run({ handler: async ({ payload }) => seen.push(payload) })
  await worker.drain()
  expect(new Set(seen)).toEqual(new Set([1, 2]))
  expect(await work.recover()).toEqual({ freed: 0, dead: 0 })
})

test('a channel has a name of its queue, as long as names may be', async () => {
  const { work } = queue({ queue: `é${'é'.repeat(40)}`, notify: true })
  expect(await work.enqueue({ payload: 1 })).toBeDefined()
})

test('workers are woken by NOTIFY, where they can listen', async ({ skip }) => {
  if (fixture.database.throughPooler) skip()
  const { work } = queue({ notify: true })
  const seen: unknown[] = []
  const worker = await work.run({
    handler: async ({ payload }) => seen.push(payload),
    poll: { min: 60_000, max: 60_000 },
  })
  onTestFinished(async () => void (await worker.stop()))
  let sent = 0
  await waitUntil('one is done', async () => {
    await work.enqueue({ payload: (sent += 1) })
    return seen.length > 0 || undefined
  })
  expect(seen[0]).toBe(1)
})

test('a connection that is lost while it adds: nobody knows, and it says so', async () => {
  const pool = new pg.Pool({
    connectionString: fixture.database.directUrl,
    max: 1,
    application_name: 'lost',
  })
  pool.on('error', () => undefined)
  onTestFinished(async () => await pool.end())
  const { work, queue: name } = queue()
  const tx = await callerTransaction(fixture)
  await work.enqueue(tx, { payload: 1, uniqueKey: 'k' })
  const adding = createHoldfast(fromPg(pool))
    .work({ queue: name })
    .enqueue({ payload: 2, uniqueKey: 'k' })
    .catch((error: unknown) => error)
  await waitUntil('it is killed', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'lost' AND cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return rows.length > 0 || undefined
  })
  expect(await adding).toMatchObject({ code: 'COMMIT_UNKNOWN' })
})
