/** Every verb, fenced and batched, alone and in the caller's transaction. */
import { describe, expect, test } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { claimsFixture, expire, ids } from '../../support/claims-fixture.ts'
import { callerTransaction, eventsOn } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()

describe('claim', () => {
  test('gives the oldest rows in order, writes the lease, and each row to one caller', async () => {
    const { name, claims } = await fixture.table(6, { holder: 'me' })
    const first = await claims.claim(4)
    expect(ids(first)).toEqual([1, 2, 3, 4])
    expect(first[0]).toMatchObject({ attempt: 1, key: ['1'], row: { tenant: 'a', tries: 1 } })
    expect(Object.keys(first[0]?.row ?? {}).filter((column) => column.startsWith('#'))).toEqual([])
    expect(ids(await claims.claim(4))).toEqual([5, 6])
    expect(await claims.claim(4)).toEqual([])
    const { rows } = await fixture.observer.query(
      `SELECT count(*)::int AS n, bool_and(token IS NOT NULL AND owner = 'me'
         AND until BETWEEN now() + interval '20 s' AND now() + interval '31 s') AS leased
       FROM ${name} WHERE state = 'busy'`,
    )
    expect(rows).toEqual([{ n: 6, leased: true }])
  })

  test('callers at the same moment share a statement and get disjoint rows', async () => {
    const { claims } = await fixture.table(10)
    const before = await statements()
    const all = await Promise.all(Array.from({ length: 5 }, () => claims.claim(3)))
    expect(all.map(ids)).toEqual([[1, 2, 3], [4, 5, 6], [7, 8, 9], [10], []])
    expect((await statements()) - before).toBeLessThan(5)
  })

  test('leaves out what others have locked, without waiting', async () => {
    const { name, claims } = await fixture.table(3)
    const other = await fixture.observer.connect()
    await other.query('BEGIN')
    await other.query(`SELECT FROM ${name} WHERE id = 1 FOR UPDATE`)
    expect(ids(await claims.claim(2))).toEqual([2, 3])
    await other.query('ROLLBACK')
    other.release()
    expect(ids(await claims.claim(2))).toEqual([1])
  })

  test('in a transaction of the caller: claimed when it commits, never if it does not', async () => {
    const { name, claims } = await fixture.table(2)
    const tx = await callerTransaction(fixture)
    expect(ids(await claims.claim(tx, 1))).toEqual([1])
    expect((await fixture.rows(name))[0]?.state).toBe('new')
    await tx.query('ROLLBACK')
    expect((await fixture.rows(name))[0]?.state).toBe('new')
    await tx.query('BEGIN')
    const [claim] = await claims.claim(tx)
    await tx.query('COMMIT')
    expect((await claims.complete(claim ?? [])).kept).toHaveLength(1)
  })

  test('no more than the columns that were asked for', async () => {
    const { claims } = await fixture.table(1, { select: ['id', 'tenant'] })
    expect((await claims.claim())[0]?.row).toEqual({ id: '1', tenant: 'a' })
  })
})

async function statements(): Promise<number> {
  const { rows } = await fixture.observer.query<{ n: string }>(
    'SELECT xact_commit::text AS n FROM pg_stat_database WHERE datname = current_database()',
  )
  return Number(rows[0]?.n)
}

describe('finishing', () => {
  test('complete, fail, release and heartbeat do what they say', async () => {
    const { name, claims } = await fixture.table(4)
    const [a, b, c, d] = await claims.claim(4)
    if (!a || !b || !c || !d) throw new Error('four claims')
    const before = d.deadline
    expect(await claims.complete(a)).toMatchObject({ kept: [a], lost: [] })
    expect(await claims.fail(b, { error: new Error('no luck\0') })).toMatchObject({
      kept: [b],
      dead: [],
    })
    expect(await claims.release([c])).toMatchObject({ kept: [c] })
    expect(await claims.heartbeat([d])).toMatchObject({ kept: [d] })
    expect(d.deadline).toBeGreaterThan(before)
    expect(await fixture.rows(name)).toMatchObject([
      { state: 'ok', tries: 1 },
      { state: 'new', tries: 1, why: 'no luck' },
      { state: 'new', tries: 0 },
      { state: 'busy', tries: 1 },
    ])
  })

  test('the last attempt makes a row dead', async () => {
    const { name, claims } = await fixture.table(1, { maxAttempts: 2 })
    expect((await claims.fail(await claims.claim(), { retryInMs: 0 })).dead).toEqual([])
    const [again] = await claims.claim()
    expect(again?.attempt).toBe(2)
    const { dead } = await claims.fail(again ?? [], { error: 'twice' })
    expect(dead).toEqual([again])
    expect(await fixture.rows(name)).toMatchObject([{ state: 'given up', why: 'twice' }])
    expect(await claims.claim()).toEqual([])
  })

  test('a failed row waits by the clock of the server', async () => {
    const { claims, name } = await fixture.table(1)
    await claims.fail(await claims.claim(), { retryInMs: 60_000 })
    expect(await claims.claim()).toEqual([])
    await fixture.observer.query(`UPDATE ${name} SET due = now() - interval '1 ms'`)
    expect(await claims.claim()).toHaveLength(1)
  })

  test('done rows can be deleted instead', async () => {
    const { name, claims } = await fixture.table(2, { deleteDone: true })
    await claims.complete(await claims.claim(2))
    expect(await fixture.rows(name)).toEqual([])
  })

  test('hundreds in one statement, the lost ones told', async () => {
    const { name, claims } = await fixture.table(300)
    const all = await claims.claim(300)
    await fixture.observer.query(`UPDATE ${name} SET token = gen_random_uuid() WHERE id % 3 = 0`)
    const lost = eventsOn<{ count: number }>('holdfast:claims.lost')
    const before = await statements()
    const outcome = await claims.complete(all)
    expect(ids(outcome.lost)).toEqual(Array.from({ length: 100 }, (_, at) => 3 * at + 3))
    expect(outcome.kept).toHaveLength(200)
    expect((await statements()) - before).toBeLessThan(5)
    expect(lost).toEqual([{ table: name, verb: 'complete', count: 100 }])
  })

  test('one row that the table refuses does not fail the others', async () => {
    const { name, claims } = await fixture.table(5)
    await fixture.observer.query(`ALTER TABLE ${name} ADD CHECK (id <> 3 OR state <> 'ok')`)
    const all = await claims.claim(5)
    const outcomes = await Promise.allSettled(all.map((claim) => claims.complete(claim)))
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
  })

  test('asked again after a lost answer, a completed row is completed', async () => {
    const { claims } = await fixture.table(1)
    const mine = await claims.claim()
    await claims.complete(mine)
    expect(await claims.complete(mine)).toMatchObject({ lost: [] })
  })
})

describe('a claim whose lease was over', () => {
  test('is recovered in its old place, and the late owner changes nothing', async () => {
    const { name, claims } = await fixture.table(3)
    const [late] = await claims.claim(1)
    if (!late) throw new Error('no claim')
    await expire(fixture.observer, name)
    const told = eventsOn<object>('holdfast:claims.recovered')
    expect(await claims.recover()).toEqual({ freed: 1, dead: 0 })
    expect(told).toEqual([{ table: name, freed: 1, dead: 0 }])
    const next = await claims.claim(2)
    expect(ids(next)).toEqual([1, 2])
    for (const verb of ['heartbeat', 'complete', 'fail', 'release'] as const) {
      expect((await claims[verb](late)).lost).toEqual([late])
    }
    expect(await fixture.rows(name)).toMatchObject([
      { state: 'busy', tries: 2 },
      { state: 'busy', tries: 1 },
      { state: 'new' },
    ])
    expect((await claims.complete(next)).kept).toHaveLength(2)
  })

  test('control: without the token, the late owner ends what belongs to another', async () => {
    const { name, claims } = await fixture.table(1)
    await claims.claim()
    await expire(fixture.observer, name)
    await claims.recover()
    const next = await claims.claim()
    await fixture.observer.query(`UPDATE ${name} SET state = 'ok' WHERE id = 1 AND state = 'busy'`)
    expect((await claims.heartbeat(next)).lost).toEqual(next)
  })

  test('is dead when it was the last attempt', async () => {
    const { name, claims } = await fixture.table(1, { maxAttempts: 1 })
    await claims.claim()
    await expire(fixture.observer, name)
    expect(await claims.recover()).toEqual({ freed: 1, dead: 1 })
    expect(await fixture.rows(name)).toMatchObject([{ state: 'given up', why: 'lease expired' }])
  })
})

describe("completing in the caller's transaction", () => {
  test('commits with what it wrote, or not at all', async () => {
    const { name, claims } = await fixture.table(1)
    await fixture.observer.query(`CREATE TABLE effect_${name} (id bigint)`)
    const [claim] = await claims.claim()
    if (!claim) throw new Error('no claim')
    const tx = await callerTransaction(fixture)
    await tx.query(`INSERT INTO effect_${name} VALUES (1)`)
    await claims.complete(tx, claim)
    expect((await fixture.rows(name))[0]?.state).toBe('busy')
    await tx.query('COMMIT')
    expect((await fixture.rows(name))[0]?.state).toBe('ok')
  })

  test('named twice is finished once, in a transaction and without', async () => {
    const { claims } = await fixture.table(3)
    const [one, two, three] = await claims.claim(3)
    if (!one || !two || !three) throw new Error('no claims')
    await fixture.hf.transaction(async (tx) => await claims.complete(tx, [one, one]))
    expect(await claims.complete([two, two])).toMatchObject({ kept: [two], lost: [] })
    expect(await claims.release([three, three])).toMatchObject({ kept: [three], lost: [] })
  })

  test('is refused when the claim is lost, so that nothing is committed', async () => {
    const { name, claims } = await fixture.table(1)
    const [claim] = await claims.claim()
    if (!claim) throw new Error('no claim')
    await expire(fixture.observer, name)
    await claims.recover()
    await expect(
      fixture.hf.transaction(async (tx) => await claims.complete(tx, claim)),
    ).rejects.toMatchObject({ code: 'CLAIM_LOST', details: { lost: [['1']] } })
  })

  test('holds the row: a sweep passes it by, and a heartbeat does not wait', async () => {
    const { name, claims } = await fixture.table(2)
    const both = await claims.claim(2)
    const [claim] = both
    if (!claim) throw new Error('no claim')
    const tx = await callerTransaction(fixture)
    await claims.complete(tx, claim)
    await expireUnlocked(name)
    expect(await claims.recover()).toEqual({ freed: 1, dead: 0 })
    expect((await claims.heartbeat(both)).lost).toEqual([both[1]])
    await tx.query('COMMIT')
    expect(await fixture.rows(name)).toMatchObject([{ state: 'ok' }, { state: 'new' }])
  })

  test('outside a transaction it is refused', async () => {
    const { claims } = await fixture.table(1)
    const [claim] = await claims.claim()
    const client = await fixture.pool.connect()
    try {
      await expect(claims.complete(client, claim ?? [])).rejects.toMatchObject({
        code: 'CLAIM_OUTSIDE_TRANSACTION',
      })
      await expect(claims.claim(client)).rejects.toMatchObject({
        code: 'CLAIM_OUTSIDE_TRANSACTION',
      })
    } finally {
      client.release()
    }
  })

  test('inside a transaction of ours, a call without it is refused', async () => {
    const { claims } = await fixture.table(1)
    await fixture.hf.transaction(async () => {
      await expect(claims.claim()).rejects.toMatchObject({ code: 'TX_NESTED' })
    })
  })
})

async function expireUnlocked(name: string): Promise<void> {
  await fixture.observer.query(
    `UPDATE ${name} SET until = now() - interval '1 ms'
     WHERE id IN (SELECT id FROM ${name} WHERE until IS NOT NULL FOR UPDATE SKIP LOCKED)`,
  )
}

test.each([
  [{ lease: 0 }, 'lease'],
  [{ key: [] }, 'key'],
  [{ table: 'a.b' }, 'table'],
  [{ maxAttempts: 0 }, 'maxAttempts'],
  [{ values: { pending: 'x', claimed: 'x' } }, 'values'],
  [{ values: { pending: 'a\\b' } }, 'values.pending'],
  [{ perKey: { column: 'tenant', limit: 0 } }, 'perKey.limit'],
])('options that cannot be meant are refused: %o', (options, option) => {
  const hf = createHoldfast(fromPg(fixture.pool))
  expect(() => hf.claims({ table: 't', ...options })).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      details: expect.objectContaining({ option }),
    }),
  )
})
