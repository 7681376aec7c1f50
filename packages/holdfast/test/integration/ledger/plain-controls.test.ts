/**
 * Conditions of `apply_plain`, one by one: with each, what is not plain is left to `apply`; with that one
 * condition cut out of the function, the same calls go wrong.
 */
import { waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import {
  callApply,
  callApplyPlain,
  columnsOf,
  honestLine,
  type RawLine,
} from '../../support/ledger-raw.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = ledgerFixture()

/** What is cut out, by the schema that goes without it. */
const cuts: Readonly<Record<string, readonly [piece: RegExp, instead: string]>> = {
  without_known_ids: [/AND NOT EXISTS \(\s+SELECT FROM operation o[^)]*\)[^)]*\)/, ''],
  without_mixed_allowances: [/AND l\.allowances IN \(0, l\.nth\)/, ''],
  without_order: [
    /FROM \(SELECT l\.\* FROM line l WHERE l\.last\) l/,
    'FROM (SELECT l.* FROM line l WHERE l.last ORDER BY l.ord OFFSET 0) l',
  ],
}

beforeAll(async () => {
  for (const [schema, [piece, instead]] of Object.entries(cuts)) {
    await migrateFiles(fromPg(fixture.observer), weakened('apply_plain', piece, instead), {
      schema,
    })
  }
})

/** Accounts of one scope, opened with 10 each; further lines for them. */
async function opened(
  schema: string,
  keys: readonly string[] = ['a'],
): Promise<(key: string, change?: Partial<RawLine>) => RawLine> {
  const scope = fresh()
  const line = (key: string, change: Partial<RawLine> = {}): RawLine => ({
    ...honestLine(scope, key, fresh()),
    ...change,
  })
  const first = keys.map((key, op) => line(key, { op, amount: '10' }))
  expect(await callApply(fixture.pool, columnsOf(first), schema)).toEqual(keys.map(() => 0))
  return line
}

describe('an id that is known', () => {
  const again = async (schema: string): Promise<number | string> => {
    const line = await opened(schema)
    const operation = line('a')
    expect(await callApplyPlain(fixture.pool, [operation], schema)).toBe(1)
    return await callApplyPlain(fixture.pool, [operation, line('a')], schema).catch(
      (error: pg.DatabaseError) => error.code as string,
    )
  }

  test('is left out, and its neighbour is applied', async () => {
    expect(await again('holdfast')).toBe(1)
  })

  // Whoever is told this by a call tries again, for ever.
  test('control: without the look at known ids the whole call fails', async () => {
    expect(await again('without_known_ids')).toBe('23505')
  })
})

describe('lines of one account, some with an allowance and some without', () => {
  /** Takes more than there is, beside somebody who may overdraw. */
  const both = async (schema: string): Promise<number> => {
    const line = await opened(schema)
    return await callApplyPlain(
      fixture.pool,
      [
        line('a', { kind: 2, amount: '15', allowance: null }),
        line('a', { kind: 2, amount: '1', allowance: '100' }),
      ],
      schema,
    )
  }

  test('are left to apply, which refuses the one that has no allowance', async () => {
    expect(await both('holdfast')).toBe(0)
    const line = await opened('holdfast')
    const lines = [
      line('a', { kind: 2, amount: '15', allowance: null }),
      line('a', { op: 1, kind: 2, amount: '1', allowance: '100' }),
    ]
    expect(await callApply(fixture.pool, columnsOf(lines))).toEqual([2, 0])
    // All of one kind are plain.
    const alike = lines.map((each) => ({ ...line('a'), amount: '1', allowance: each.allowance }))
    expect(await callApplyPlain(fixture.pool, [alike[0] as RawLine])).toBe(1)
    expect(await callApplyPlain(fixture.pool, [alike[1] as RawLine])).toBe(1)
  })

  test("control: without the condition one line is judged by the other's allowance", async () => {
    expect(await both('without_mixed_allowances')).toBe(2)
  })
})

describe('two calls over the same accounts, in opposite orders', () => {
  const clients: pg.Client[] = []
  beforeAll(async () => {
    for (let at = 0; at < 3; at += 1) {
      const client = new pg.Client({ connectionString: fixture.database.directUrl })
      await client.connect()
      clients.push(client)
    }
  })
  afterAll(async () => {
    for (const client of clients) await client.end()
  })

  /**
   * Somebody has the middle one of three while both calls come; each then has its first account, or waits
   * for the other's.
   */
  const crossed = async (schema: string): Promise<(number | string)[]> => {
    const line = await opened(schema, ['a', 'b', 'c'])
    const [holder, one, other] = clients as [pg.Client, pg.Client, pg.Client]
    const call = (client: pg.Client, keys: readonly string[]): Promise<number | string> =>
      callApplyPlain(
        client,
        keys.map((key) => line(key)),
        schema,
      ).catch((error: pg.DatabaseError) => error.code as string)
    await holder.query('BEGIN')
    const middle = line('b')
    await holder.query(
      `SELECT FROM ${schema}.balance WHERE bucket = $1 AND account = $2 FOR NO KEY UPDATE`,
      [middle.bucket, middle.base],
    )
    const pids = [one, other].map(
      (client) => (client as unknown as { processID: number }).processID,
    )
    const calls = [call(one, ['a', 'b', 'c']), call(other, ['c', 'b', 'a'])]
    for (const pid of pids) await waitUntilBlocked(fixture.observer, pid)
    await holder.query('COMMIT')
    return await Promise.all(calls)
  }

  test('lock them in one order, and both are applied', async () => {
    expect(await crossed('holdfast')).toEqual([3, 3])
  })

  test('control: locked in the order of the lines, one of them ends in a deadlock', async () => {
    expect((await crossed('without_order')).map(String).toSorted()).toEqual(['3', '40P01'])
  })
})
