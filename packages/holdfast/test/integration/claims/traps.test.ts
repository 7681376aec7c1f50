/** What goes wrong in claims that are written by hand, and does not go wrong here. */
import { randomUUID } from 'node:crypto'
import { barrier, waitUntilBlocked } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { leaseSettings } from '../../../src/claims/layout.ts'
import { turnsOf } from '../../../src/engines/postgres/claims/turns.ts'
import { claimRows } from '../../../src/engines/postgres/claims/claims.ts'
import { finishRows, recoverRows } from '../../../src/engines/postgres/claims/finish.ts'
import { claimsFixture, expire, ids, optionsFor } from '../../support/claims-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()

describe('LIMIT under a nested loop', () => {
  const onlyNestedLoops = [
    'enable_hashjoin',
    'enable_mergejoin',
    'enable_material',
    'enable_hashagg',
    'enable_sort',
  ]
  const force = async (tx: pg.ClientBase): Promise<void> => {
    for (const setting of onlyNestedLoops) await tx.query(`SET LOCAL ${setting} = off`)
  }

  test('is honoured', async () => {
    const { name, claims } = await fixture.table(200)
    const tx = await callerTransaction(fixture)
    await force(tx)
    expect(ids(await claims.claim(tx, 3))).toEqual([1, 2, 3])
    await tx.query('COMMIT')
    const busy = (await fixture.rows(name)).filter(({ state }) => state === 'busy')
    expect(busy).toHaveLength(3)
  })

  test('control: a sub-select instead of a materialised CTE claims more', async () => {
    const { name } = await fixture.table(200)
    const tx = await callerTransaction(fixture)
    await force(tx)
    const { rowCount } = await tx.query(
      `UPDATE ${name} SET state = 'busy' WHERE id IN (
         SELECT id FROM ${name} WHERE state = 'new' ORDER BY due, id LIMIT 3 FOR UPDATE SKIP LOCKED)`,
    )
    expect(rowCount).toBeGreaterThan(3)
  })
})

describe('a row that refers to ours is being inserted', () => {
  async function withChild(name: string, id: number): Promise<pg.PoolClient> {
    await fixture.observer.query(
      `CREATE TABLE IF NOT EXISTS child_of_${name} (parent bigint REFERENCES ${name} (id))`,
    )
    const other = await callerTransaction(fixture)
    await other.query(`INSERT INTO child_of_${name} VALUES (${id})`)
    return other
  }

  test('ours is claimed all the same, and completed', async () => {
    const { name, claims } = await fixture.table(2)
    await withChild(name, 1)
    const [first, ...more] = await claims.claim(2)
    expect(ids([first as NonNullable<typeof first>, ...more])).toEqual([1, 2])
    expect((await claims.complete(first ?? [])).lost).toEqual([])
  })

  test('and who inserts does not wait for us', async () => {
    const { name, claims } = await fixture.table(1)
    await fixture.observer.query(`CREATE TABLE child_of_${name} (parent bigint REFERENCES ${name})`)
    const tx = await callerTransaction(fixture)
    await claims.claim(tx, 1)
    const other = await callerTransaction(fixture)
    await other.query("SET LOCAL lock_timeout = '2s'")
    const { rowCount } = await other.query(`INSERT INTO child_of_${name} VALUES (1)`)
    expect(rowCount).toBe(1)
  })

  test('control: FOR UPDATE passes the free row by', async () => {
    const { name } = await fixture.table(2)
    await withChild(name, 1)
    const { rows } = await fixture.observer.query<{ id: string }>(
      `SELECT id FROM ${name} WHERE state = 'new' ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED`,
    )
    expect(rows).toEqual([{ id: '2' }])
  })
})

describe('at REPEATABLE READ', () => {
  test.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    '%s: a claim is refused and locks nothing',
    async (level) => {
      const { claims } = await fixture.table(2)
      const tx = await callerTransaction(fixture, `BEGIN ISOLATION LEVEL ${level}`)
      await expect(claims.claim(tx, 1)).rejects.toMatchObject({ code: 'CLAIM_STALE_SNAPSHOT' })
      expect(ids(await claims.claim(2))).toEqual([1, 2])
    },
  )

  test('control: the same by hand fails on a row that others have claimed since', async () => {
    const { name, claims } = await fixture.table(1)
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await tx.query('SELECT 1')
    await claims.complete(await claims.claim(1))
    await expect(
      tx.query(`SELECT id FROM ${name} WHERE state = 'new' FOR NO KEY UPDATE SKIP LOCKED`),
    ).rejects.toMatchObject({ code: '40001' })
  })

  test('completing is safe: with a claim that is lost, nothing is committed', async () => {
    const { name, claims } = await fixture.table(1)
    const [claim] = await claims.claim()
    if (!claim) throw new Error('no claim')
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await tx.query('SELECT 1')
    await expire(fixture.observer, name)
    await claims.recover()
    await expect(claims.complete(tx, claim)).rejects.toMatchObject({ code: '40001' })
  })
})

/** Blocks that a claim touches. */
async function blocks(text: string, values: readonly unknown[]): Promise<number> {
  const client = await fixture.observer.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
      [...values],
    )
    const plan = rows[0]?.['QUERY PLAN'][0].Plan ?? {}
    return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
}

test('a few rows of a large table are found without reading it', async () => {
  const { name } = await fixture.table(30_000)
  await fixture.observer.query(`
    CREATE INDEX ON ${name} (tenant, due, id) WHERE state = 'new';
    CREATE INDEX ON ${name} (tenant) WHERE state = 'busy';
    ANALYZE ${name}`)
  const { layout } = leaseSettings(optionsFor(name), undefined)
  const lease = { token: randomUUID(), ms: 1_000, holder: 'me' }
  const turns = turnsOf('tenant', ['a'], 3, { limit: 9, rate: undefined })
  const items = [{ key: ['7'], token: lease.token }]
  const statements = [
    claimRows(layout, { limit: 3, joined: false, turns: undefined }, lease),
    claimRows(layout, { limit: 3, joined: false, turns }, lease),
    ...(['complete', 'fail', 'release', 'heartbeat'] as const).map((verb) =>
      finishRows(layout, verb, items, 1_000),
    ),
    recoverRows(layout, 100),
  ]
  for (const { text, values } of statements) expect(await blocks(text, values)).toBeLessThan(80)
})

describe('rows that are not due yet', () => {
  test('are not claimed, whatever the clock of this process says', async () => {
    const { name, claims } = await fixture.table(3)
    await fixture.observer.query(`UPDATE ${name} SET due = now() + interval '1 hour' WHERE id < 3`)
    const { now } = Date
    Date.now = () => now() + 86_400_000
    try {
      expect(ids(await claims.claim(3))).toEqual([3])
    } finally {
      Date.now = now
    }
  })

  test('are not walked over, not even those of a better priority', async () => {
    const { name, claims } = await fixture.table(0)
    await fixture.observer.query(`
      DROP INDEX ${name}_due_id_idx;
      CREATE INDEX ON ${name} (rank, due, id) WHERE state = 'new';
      INSERT INTO ${name} (rank, due) SELECT 0, now() + interval '1 hour' + g * interval '1 s' FROM generate_series(1, 60000) g;
      INSERT INTO ${name} (rank, due) SELECT 1, now() - interval '1 hour' FROM generate_series(1, 10)`)
    await fixture.observer.query(`VACUUM ANALYZE ${name}`)
    const options = optionsFor(name)
    const settings = leaseSettings(
      { ...options, columns: { ...options.columns, priority: 'rank' } },
      undefined,
    )
    const request = { limit: 3, joined: false, turns: undefined }
    const lease = { token: randomUUID(), ms: 1_000, holder: 'me' }
    const withPriority = claimRows(settings.layout, request, lease)
    expect(await blocks(withPriority.text, withPriority.values)).toBeLessThan(150)
    // Control: the order as one index has it, and the future rows before ours.
    const plainly = claimRows(
      { ...settings.layout, priority: undefined, order: ['rank', 'due', 'id'] },
      request,
      lease,
    )
    expect(await blocks(plainly.text, plainly.values)).toBeGreaterThan(200)
    expect(await claims.claim(100)).toHaveLength(10)
  })

  test('priorities come in order, largest first if so declared', async () => {
    const { name } = await fixture.table(9)
    await fixture.observer.query(`UPDATE ${name} SET rank = id % 3`)
    const options = optionsFor(name)
    const claims = (first: 'smallest' | 'largest') =>
      fixture.hf.claims<{ id: string }>({
        ...options,
        columns: { ...options.columns, priority: { column: 'rank', first } },
      })
    expect(ids(await claims('smallest').claim(4))).toEqual([3, 6, 9, 1])
    expect(ids(await claims('largest').claim(4))).toEqual([2, 5, 8, 4])
  })
})

describe('many rows are completed while others are swept', () => {
  test('without a deadlock, each row by one of them', { timeout: 60_000 }, async () => {
    const { name, claims } = await fixture.table(0)
    const others = Array.from({ length: 3 }, () => fixture.create().claims(optionsFor(name)))
    let completed = 0
    for (let round = 0; round < 15; round += 1) {
      await fixture.observer.query(
        `INSERT INTO ${name} (due) SELECT now() - interval '1 h' FROM generate_series(1, 120)`,
      )
      const mine = [...(await claims.claim(120))].toSorted(() => Math.random() - 0.5)
      await expire(fixture.observer, name)
      const meet = barrier(5)
      const halves = [mine.slice(0, 60), mine.slice(60)]
      const outcomes = await Promise.all([
        ...halves.map(async (half) => {
          await meet()
          return (await claims.complete(half)).kept.length
        }),
        ...others.map(async (other) => {
          await meet()
          return (await other.recover({ limit: 50 })).freed
        }),
      ])
      expect(outcomes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(120)
      completed += (outcomes[0] ?? 0) + (outcomes[1] ?? 0)
      const left = await claims.recover({ limit: 500 })
      expect(left.dead).toBe(0)
      await fixture.observer.query(`DELETE FROM ${name} WHERE state = 'new'`)
    }
    const states = await fixture.rows(name)
    expect(states.filter(({ state }) => state === 'ok')).toHaveLength(completed)
    expect(states.filter(({ state }) => state === 'busy')).toHaveLength(0)
  })

  test('control: by hand, in opposite orders, they deadlock', async () => {
    const { name } = await fixture.table(2)
    const a = await callerTransaction(fixture)
    const b = await callerTransaction(fixture)
    const set = (id: number): string => `UPDATE ${name} SET state = 'ok' WHERE id = ${id}`
    await a.query(set(1))
    await b.query(set(2))
    const pid = await pidOf(a)
    const waiting = a.query(set(2)).catch((error: unknown) => error)
    await waitUntilBlocked(fixture.observer, pid)
    const other = await b.query(set(1)).catch((error: unknown) => error)
    await b.query('ROLLBACK')
    expect([await waiting, other]).toContainEqual(expect.objectContaining({ code: '40P01' }))
  })
})

test('complete waits for a row, and finds out that it is lost', async () => {
  const { name, claims } = await fixture.table(1)
  const [claim] = await claims.claim()
  if (!claim) throw new Error('no claim')
  // A sweep that has not committed yet.
  const sweep = await callerTransaction(fixture)
  await sweep.query(`UPDATE ${name} SET state = 'new', token = NULL WHERE id = 1`)
  const tx = await callerTransaction(fixture)
  const pid = await pidOf(tx)
  const completing = claims.complete(tx, claim).catch((error: unknown) => error)
  await waitUntilBlocked(fixture.observer, pid)
  await sweep.query('COMMIT')
  expect(await completing).toMatchObject({ code: 'CLAIM_LOST' })
  expect(await fixture.rows(name)).toMatchObject([{ state: 'new' }])
})
