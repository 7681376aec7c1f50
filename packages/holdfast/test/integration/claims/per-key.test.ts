/** Turns between keys, and limits of what is in flight for one of them. */
import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { leaseSettings } from '../../../src/claims/layout.ts'
import { turnsOf } from '../../../src/engines/postgres/claims/turns.ts'
import type { ClaimsOptions } from '../../../src/entries/claims.ts'
import { claimRows } from '../../../src/engines/postgres/claims/claims.ts'
import { claimsFixture, optionsFor, type Task } from '../../support/claims-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()

/** A table in which the rows of the first tenant are the oldest. */
async function tenants(
  counts: Readonly<Record<string, number>>,
  limit?: number,
): Promise<{ name: string; options: ClaimsOptions; claims: ReturnType<typeof claimsOf> }> {
  const { name } = await fixture.table(0)
  await fixture.observer.query(`
    CREATE INDEX ON ${name} (tenant, due, id) WHERE state = 'new';
    CREATE INDEX ON ${name} (tenant) WHERE state = 'busy'`)
  for (const [tenant, count] of Object.entries(counts)) {
    await fixture.observer.query(
      `INSERT INTO ${name} (tenant, due) SELECT $1, now() - interval '1 hour' FROM generate_series(1, $2::int)`,
      [tenant, count],
    )
  }
  const options: ClaimsOptions = {
    ...optionsFor(name),
    perKey: { column: 'tenant', ...(limit === undefined ? {} : { limit }) },
  }
  return { name, options, claims: claimsOf(options) }
}

function claimsOf(options: ClaimsOptions): ReturnType<typeof fixture.hf.claims<Task>> {
  return fixture.create().claims<Task>(options)
}

const whose = (claims: readonly { row: { tenant: string } }[]): string[] =>
  claims.map(({ row }) => row.tenant)

async function inFlight(name: string): Promise<Record<string, number>> {
  const { rows } = await fixture.observer.query<{ tenant: string; n: number }>(
    `SELECT tenant, count(*)::int AS n FROM ${name} WHERE state = 'busy' GROUP BY tenant ORDER BY tenant`,
  )
  return Object.fromEntries(rows.map(({ tenant, n }) => [tenant, n]))
}

describe('turns', () => {
  test('go round, however many rows one has', async () => {
    const { claims } = await tenants({ a: 100, b: 3, c: 3 })
    const order: string[] = []
    for (let turn = 0; turn < 11; turn += 1) order.push(...whose(await claims.claim(1)))
    expect(order.join('')).toBe('abcabcabcaa')
  })

  test('share a batch', async () => {
    const { claims, name } = await tenants({ a: 100, b: 100, c: 1 })
    expect(await claims.claim(8)).toHaveLength(7)
    expect(await inFlight(name)).toEqual({ a: 3, b: 3, c: 1 })
  })

  test('control: oldest first, without turns, only one is served', async () => {
    const { name } = await tenants({ a: 100, b: 3, c: 3 })
    const claims = claimsOf(optionsFor(name))
    expect(new Set(whose(await claims.claim(20)))).toEqual(new Set(['a']))
  })

  test('in a transaction of the caller, and in transaction mode', async () => {
    const { name, claims } = await tenants({ a: 5, b: 5 })
    const tx = await callerTransaction(fixture)
    expect(whose(await claims.claim(tx, 1))).toEqual(['a'])
    expect(whose(await claims.claim(tx, 1))).toEqual(['b'])
    const taking = fixture.hf.claims<Task>({
      mode: 'transaction',
      table: name,
      columns: { status: 'state', runAt: 'due' },
      values: { pending: 'new', done: 'ok' },
      perKey: { column: 'tenant' },
    })
    expect(whose(await taking.take(tx, 4)).toSorted()).toEqual(['a', 'a', 'b', 'b'])
  })
})

describe('limits', () => {
  test('a full key does not block another', async () => {
    const { claims, name } = await tenants({ a: 1_000, b: 2, c: 1 }, 1)
    expect(whose(await claims.claim(10)).toSorted()).toEqual(['a', 'b', 'c'])
    expect(await claims.claim(10)).toEqual([])
    await fixture.observer.query(`INSERT INTO ${name} (tenant) VALUES ('d')`)
    const [d] = await claims.claim(10)
    expect(d?.row.tenant).toBe('d')
  })

  test('room comes back by complete, fail, release and by the sweep', async () => {
    const { claims, name } = await tenants({ a: 10 }, 1)
    for (const verb of ['complete', 'fail', 'release'] as const) {
      const mine = await claims.claim(5)
      expect(mine).toHaveLength(1)
      expect(await claims.claim(5)).toEqual([])
      await claims[verb](mine)
    }
    const mine = await claims.claim(5)
    await fixture.observer.query(
      `UPDATE ${name} SET until = now() - interval '1 s' WHERE until IS NOT NULL`,
    )
    // Nobody has given it back: somebody may still be working on it.
    expect(await claims.claim(5)).toEqual([])
    await claims.recover()
    expect(await claims.claim(5)).toHaveLength(1)
    expect((await claims.complete(mine)).lost).toEqual(mine)
  })

  test('many claimers at once never go above it', { timeout: 60_000 }, async () => {
    const { options, name } = await tenants({ a: 400, b: 400, c: 400 }, 3)
    const claimers = Array.from({ length: 16 }, () => claimsOf(options))
    const meet = barrier(claimers.length)
    let most = 0
    for (let round = 0; round < 10; round += 1) {
      const claimed = await Promise.all(
        claimers.map(async (claims) => {
          await meet()
          return { claims, mine: await claims.claim(4) }
        }),
      )
      most = Math.max(most, ...Object.values(await inFlight(name)))
      await Promise.all(claimed.map(async ({ claims, mine }) => await claims.complete(mine)))
    }
    expect(most).toBe(3)
  })

  test('who claims a key keeps others from it until the commit, and only from it', async () => {
    const { options, claims, name } = await tenants({ a: 10, b: 10 }, 2)
    const tx = await callerTransaction(fixture)
    // Two keys, one row each.
    expect(whose(await claims.claim(tx, 2))).toEqual(['a', 'b'])
    await fixture.observer.query(`INSERT INTO ${name} (tenant) VALUES ('c')`)
    // Does not wait, and cannot know how many there are of a and b.
    expect(whose(await claimsOf(options).claim(4))).toEqual(['c'])
    await tx.query('COMMIT')
    await claimsOf(options).claim(9)
    expect(await inFlight(name)).toEqual({ a: 2, b: 2, c: 1 })
  })

  test('control: counting and claiming without the lock goes above it', async () => {
    const { options, name } = await tenants({ a: 10 }, 1)
    const { layout } = leaseSettings(options, undefined)
    const turns = turnsOf('tenant', ['a'], 1, { limit: 1, rate: undefined })
    const claiming = claimRows(
      layout,
      { limit: 1, joined: false, turns },
      { token: '00000000-0000-0000-0000-000000000000', ms: 1_000, holder: 'me' },
    )
    const both = [await callerTransaction(fixture), await callerTransaction(fixture)]
    for (const tx of both) await tx.query(claiming.text, [...claiming.values])
    for (const tx of both) await tx.query('COMMIT')
    expect(await inFlight(name)).toEqual({ a: 2 })
  })
})
