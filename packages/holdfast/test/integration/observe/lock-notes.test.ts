import { barrier } from '@holdfast/testkit'
import { beforeEach, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createObserver } from '../../../src/observe/index.ts'
import { appRole } from '../../support/app-role.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { inTime } from '../../support/in-time.ts'

/** What processes write down about their locks: added up, bounded, and never in anybody's way. */
const fixture = ledgerFixture()
const role = appRole(fixture)

beforeEach(async () => {
  await fixture.observer.query('DELETE FROM holdfast.lock_minute; DELETE FROM holdfast.lock_name')
})

interface Minute {
  readonly namespace: string
  readonly acquired?: number
  readonly timeouts?: number
  readonly busy?: number
  readonly wait?: readonly number[]
  readonly waitMaxMs?: number
  readonly hold?: readonly number[]
  readonly holdMaxMs?: number
}

async function note(names: readonly unknown[], minutes: readonly Minute[]): Promise<number> {
  const { rows } = await role.pool.query<{ added: number }>(
    'SELECT holdfast.note_locks($1, $2) AS added',
    [JSON.stringify(names), JSON.stringify(minutes)],
  )
  return rows[0]?.added as number
}

/** A histogram with counts in some of its fourteen buckets. */
function buckets(counts: Readonly<Record<number, number>>): number[] {
  return Array.from({ length: 14 }, (_, at) => counts[at] ?? 0)
}

const cart: Minute = {
  namespace: 'cart',
  acquired: 10,
  timeouts: 1,
  busy: 2,
  wait: buckets({ 0: 9, 4: 1 }),
  waitMaxMs: 20,
  hold: buckets({ 2: 10 }),
  holdMaxMs: 4.5,
}

/** All that was noted, as one row: a minute may end while a test runs. */
async function total(namespace: string): Promise<Record<string, number>> {
  const { rows } = await fixture.observer.query<Record<string, number>>(
    `SELECT sum(acquired)::int AS acquired, sum(timeouts)::int AS timeouts, sum(busy)::int AS busy,
       max(wait_max_ms) AS wait_max, sum(wait[1])::int AS first, sum(wait[5])::int AS fifth
     FROM holdfast.lock_minutes WHERE namespace = $1`,
    [namespace],
  )
  return rows[0] as Record<string, number>
}

describe('minutes', () => {
  test('are added up', async () => {
    await note([], [cart])
    await note(
      [],
      [
        { ...cart, waitMaxMs: 12 },
        { namespace: 'order', acquired: 1 },
      ],
    )
    expect(await total('cart')).toEqual({
      acquired: 20,
      timeouts: 2,
      busy: 4,
      wait_max: 20,
      first: 18,
      fifth: 2,
    })
    expect(await total('order')).toMatchObject({ acquired: 1, timeouts: 0, wait_max: 0, first: 0 })
  })

  test('by any number of processes at once: nothing is lost, nobody deadlocks', async () => {
    const namespaces = Array.from({ length: 20 }, (_, at) => ({ ...cart, namespace: `n-${at}` }))
    const start = barrier(4)
    await Promise.all(
      [0, 1, 2, 3].map(async (at) => {
        await start()
        for (let round = 0; round < 10; round += 1) {
          await note([], at % 2 === 0 ? namespaces : namespaces.toReversed())
        }
      }),
    )
    const { rows } = await fixture.observer.query<{ namespace: string; acquired: number }>(
      'SELECT namespace, sum(acquired)::int AS acquired FROM holdfast.lock_minutes GROUP BY namespace',
    )
    expect(rows).toHaveLength(20)
    expect(new Set(rows.map(({ acquired }) => acquired))).toEqual(new Set([400]))
  })

  test('have at most a hundred namespaces each; the rest is counted together', async () => {
    const many = (from: number): Minute[] =>
      Array.from({ length: 80 }, (_, at) => ({ ...cart, namespace: `user-${from + at}` }))
    await note([], many(0))
    await note([], many(80))
    await note([], many(0))
    const { rows } = await fixture.observer.query<{ minutes: number; most: number; all: number }>(`
      SELECT count(*)::int AS minutes, max(n)::int AS most, sum(acquired)::int AS all FROM (
        SELECT count(*) AS n, sum(acquired) AS acquired FROM holdfast.lock_minutes GROUP BY minute) AS m`)
    expect(rows[0]?.most).toBeLessThanOrEqual(101)
    expect(rows[0]?.all).toBe(240 * 10)
    if (rows[0]?.minutes === 1) expect(await total('(other)')).toMatchObject({ acquired: 600 })
  })

  test('are kept for a day', async () => {
    await note([], [cart])
    await fixture.observer.query(`
      INSERT INTO holdfast.lock_minute
      SELECT bucket, minute - make_interval(mins => age), namespace, acquired, timeouts, busy, wait, wait_max_ms,
        hold, hold_max_ms
      FROM holdfast.lock_minute CROSS JOIN (VALUES (1), (1439), (1500), (3000)) AS old(age)`)
    await note([], [{ ...cart, namespace: 'another' }])
    const { rows } = await fixture.observer.query(
      `SELECT 1 FROM holdfast.lock_minutes WHERE namespace = 'cart'`,
    )
    expect(rows).toHaveLength(3)
  })

  test('are read as percentiles, the latest first', async () => {
    await note([], [cart])
    const observer = createObserver(fromPg(fixture.pool))
    const [minute, ...more] = await observer.lockMinutes({ namespace: 'cart' })
    expect(more).toEqual([])
    expect(minute).toMatchObject({
      namespace: 'cart',
      acquired: 10,
      timeouts: 1,
      busy: 2,
      wait: { count: 10, max: 20 },
      hold: { count: 10, p50: 3.25, max: 4.5 },
    })
    expect(minute?.wait.p50).toBeCloseTo(5 / 9)
    expect(minute?.wait.p95).toBe(15)
    expect(minute?.minute).toMatch(/:00\.000000Z$/)
    expect(await observer.lockMinutes({ namespace: 'other' })).toEqual([])
    await expect(observer.lockMinutes({ minutes: 0 })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })
})

describe('names', () => {
  const name = { id: '1:-5', name: 'cart:7', namespace: 'cart' }

  test('are written once; nothing is written again within a minute', async () => {
    expect(await note([name, name, { ...name, id: '2:-1,-2' }], [])).toBe(2)
    const before = await fixture.observer.query('SELECT xmin::text FROM holdfast.lock_name')
    expect(await note([name], [])).toBe(0)
    const after = await fixture.observer.query('SELECT xmin::text FROM holdfast.lock_name')
    // The control: unless the minute has ended in between, both are the very same rows.
    const { rows } = await fixture.observer.query<{ minutes: number }>(
      'SELECT count(DISTINCT seen_at)::int AS minutes FROM holdfast.lock_name',
    )
    if (rows[0]?.minutes === 1) expect(after.rows).toEqual(before.rows)
    const { rows: ids } = await fixture.observer.query(
      'SELECT id FROM holdfast.lock_names ORDER BY id',
    )
    expect(ids).toEqual([{ id: '1:-5' }, { id: '2:-1,-2' }])
  })

  test('that make no sense are left out', async () => {
    const odd = [
      { id: null, name: 'x', namespace: 'x' },
      { id: '1:7', name: null, namespace: 'x' },
      {},
    ]
    expect(await note([...odd, name], [])).toBe(1)
    await expect(note([{ ...name, id: '1:no number' }], [])).rejects.toMatchObject({
      code: '22P02',
    })
  })

  test('do not wait for somebody who keeps them locked', async () => {
    await note([name], [cart])
    await fixture.observer.query(
      "UPDATE holdfast.lock_name SET seen_at = seen_at - interval '1 hour'",
    )
    const blocker = await fixture.observer.connect()
    await blocker.query('BEGIN; SELECT 1 FROM holdfast.lock_name FOR UPDATE')
    const began = performance.now()
    expect(await note([name], [])).toBe(0)
    await blocker.query('SELECT 1 FROM holdfast.lock_minute FOR UPDATE')
    const minutes = note([], [cart])
    await minutes.catch((error: unknown) => {
      expect(error).toMatchObject({ code: '55P03' })
    })
    inTime(performance.now() - began, 5_000)
    await blocker.query('ROLLBACK')
    blocker.release()
  })
})

test('the application may note and read, and nothing else', async () => {
  await note([{ id: '1:1', name: 'x:1', namespace: 'x' }], [cart])
  for (const view of ['lock_names', 'lock_minutes']) {
    const { rows } = await role.pool.query(`SELECT FROM holdfast.${view}`)
    expect(rows).toHaveLength(1)
  }
  for (const sql of [
    'SELECT FROM holdfast.lock_name',
    'DELETE FROM holdfast.lock_minute',
    "UPDATE holdfast.lock_names SET name = 'y'",
  ]) {
    await expect(role.pool.query(sql)).rejects.toMatchObject({ code: '42501' })
  }
})
