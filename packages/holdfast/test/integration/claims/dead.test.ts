/** R10: rows that had their last attempt can be listed, looked at, tried again and deleted. */
import { describe, expect, test } from 'vitest'
import type { ClaimsIntervenedEvent } from '../../../src/core/events/event-map.ts'
import { createDeadJobs } from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { appRole } from '../../support/app-role.ts'
import { optionsFor } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { eventsOn } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture(`
  CREATE TABLE task (
    id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'new', due timestamptz NOT NULL DEFAULT now(),
    tries int NOT NULL DEFAULT 0, token uuid, until timestamptz, owner text, why text
  )`)
const role = appRole(fixture)

let queues = 0
async function deadQueue(jobs: number, options: object = {}) {
  queues += 1
  const queue = `dead ${queues}`
  const work = createWorkAs(queue)
  await work.enqueue(
    Array.from({ length: jobs }, (_, at) => ({ payload: { at }, maxAttempts: 1, ...options })),
  )
  await work.fail(await work.claim(jobs), { error: new Error('no such address') })
  return { queue, work }
}
const createWorkAs = (queue: string) => fixture.hf.work<{ at: number }>({ queue })

describe('R10: dead jobs', () => {
  test('are listed page by page, each once, oldest first', async () => {
    const { work, queue } = await deadQueue(7, { scope: 'acme' })
    const [seen, pages]: [number[], number[]] = [[], []]
    let after: string | undefined
    do {
      const page = await work.dead.list({ limit: 3, ...(after === undefined ? {} : { after }) })
      pages.push(page.rows.length)
      seen.push(...page.rows.map(({ row }) => row.payload.at))
      after = page.next
    } while (after !== undefined)
    expect(pages).toEqual([3, 3, 1])
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6])
    const [first] = (await work.dead.list({ limit: 1 })).rows
    expect(first).toMatchObject({
      attempts: 1,
      error: 'no such address',
      key: [first?.row.id],
      row: { queue, scope: 'acme', payload: { at: 0 }, maxAttempts: 1, priority: 0 },
    })
    expect(first?.row.enqueuedAt).toBeInstanceOf(Date)
    expect(first?.row.runAt.getTime()).toBeGreaterThan(Date.now() - 60_000)
  })

  test('one is looked at by its id; a live one and an unknown one are not there', async () => {
    const { work } = await deadQueue(1)
    const [dead] = (await work.dead.list()).rows
    expect(await work.dead.get(dead?.row.id as string)).toEqual(dead)
    const { id } = await work.enqueue({ payload: { at: 9 } })
    expect(await work.dead.get(id as string)).toBeUndefined()
    expect(await work.dead.get('00000000-0000-4000-8000-000000000000')).toBeUndefined()
  })

  test('retried: claimed again with all attempts before it, and told by an event', async () => {
    const events = eventsOn<ClaimsIntervenedEvent>('holdfast:claims.intervened')
    const { work } = await deadQueue(2)
    const { rows } = await work.dead.list()
    const keys = rows.map(({ key }) => key)
    // Named twice is asked for once.
    const outcome = await work.dead.retry([...keys, ...keys], { by: 'ops' })
    expect(outcome).toEqual({ done: keys, missing: [], taken: [] })
    expect(await work.dead.retry(keys)).toEqual({ done: [], missing: keys, taken: [] })
    const claims = await work.claim(5)
    expect(claims.map(({ attempt, row }) => [attempt, row.payload.at])).toEqual([
      [1, 0],
      [1, 1],
    ])
    expect(events).toEqual([
      { table: 'work', verb: 'retry', asked: 2, done: 2, by: 'ops' },
      { table: 'work', verb: 'retry', asked: 2, done: 0, by: undefined },
    ])
  })

  test('one whose unique key another job has by now stays dead, and the others are retried', async () => {
    const { work, queue } = await deadQueue(1, { uniqueKey: 'k', scope: 's' })
    await work.enqueue({ payload: { at: 7 }, maxAttempts: 1, scope: 's' })
    await work.fail(await work.claim(1))
    expect(await work.enqueue({ payload: { at: 8 }, uniqueKey: 'k', scope: 's' })).toMatchObject({
      added: true,
    })
    const { rows } = await createDeadJobs(fromPg(fixture.pool), { queue }).list()
    const [twin, other] = rows.map(({ row }) => [row.id])
    expect(await work.dead.retry([twin, other] as string[][])).toEqual({
      done: [other],
      missing: [],
      taken: [twin],
    })
    expect((await work.dead.list()).rows.map(({ row }) => row.uniqueKey)).toEqual(['k'])
  })

  test('deleted, and only dead ones', async () => {
    const { work } = await deadQueue(1)
    const live = await work.enqueue({ payload: { at: 5 } })
    const { rows } = await work.dead.list()
    const ids = [rows[0]?.row.id, live.id] as string[]
    expect(await work.dead.delete(ids)).toMatchObject({ done: [[ids[0]]], missing: [[ids[1]]] })
    expect((await work.dead.list()).rows).toEqual([])
    expect(await work.claim(5)).toHaveLength(1)
  })

  test('by the application’s role, of all queues', async () => {
    await deadQueue(2)
    const dead = createDeadJobs(fromPg(role.pool))
    const all = await dead.list({ limit: 1_000 })
    expect(new Set(all.rows.map(({ row }) => row.queue)).size).toBeGreaterThan(1)
    expect((await dead.delete(all.rows.map(({ key }) => key))).done).toHaveLength(all.rows.length)
    expect(await dead.list()).toEqual({ rows: [], next: undefined })
  })

  test('use the index for dead jobs, and the list does not sort', async () => {
    await deadQueue(3)
    const client = await fixture.observer.connect()
    await client.query('BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off')
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN SELECT FROM holdfast.work WHERE status = 'dead' AND queue = 'x'
       AND (queue, run_at, bucket, id) > ('x', now(), 1, gen_random_uuid()) ORDER BY queue, run_at, bucket, id LIMIT 3`,
    )
    await client.query('ROLLBACK')
    client.release()
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('work_dead')
    expect(plan).not.toContain('Sort')
  })
})

describe('R10: dead rows of a table of one’s own', () => {
  test('listed, retried and deleted by their key', async () => {
    const claims = fixture.hf.claims<{ id: string; state: string }>({
      ...optionsFor('task'),
      maxAttempts: 1,
    })
    await fixture.observer.query('INSERT INTO task (id) SELECT generate_series(1, 4)')
    await claims.fail(await claims.claim(4), { error: 'no' })
    const { rows, next } = await claims.dead.list({ limit: 2 })
    expect(rows.map(({ key, error, row }) => [key, error, row.id, row.state])).toEqual([
      [['1'], 'no', '1', 'given up'],
      [['2'], 'no', '2', 'given up'],
    ])
    expect((await claims.dead.list({ after: next as string })).rows.map(({ key }) => key)).toEqual([
      ['3'],
      ['4'],
    ])
    expect(await claims.dead.retry(['1', '2'])).toMatchObject({ done: [['1'], ['2']] })
    expect(await claims.dead.delete('3')).toMatchObject({ done: [['3']] })
    expect((await claims.claim(9)).map(({ row }) => row.id)).toEqual(['1', '2'])
    expect(await claims.dead.get('4')).toMatchObject({ key: ['4'], attempts: 1 })
  })

  test('what cannot be is refused with a code', async () => {
    const { attempts: _, ...columns } = optionsFor('task').columns ?? {}
    const never = fixture.hf.claims({ ...optionsFor('task'), columns })
    const claims = fixture.hf.claims(optionsFor('task'))
    for (const call of [
      () => never.dead.list(),
      () => claims.dead.list({ limit: 0 }),
      () => claims.dead.list({ limit: 1_001 }),
      () => claims.dead.list({ after: 'page 2' }),
      () => claims.dead.get(['1', '2']),
      () => claims.dead.get('no number'),
      () => claims.dead.list({ after: '[0,"{\\"id\\":\\"x\\"}"]' }),
    ]) {
      await expect(call()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
  })
})
