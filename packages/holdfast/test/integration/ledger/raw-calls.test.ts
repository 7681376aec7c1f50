import type pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import {
  callApply,
  callApplyOne,
  columns,
  columnsOf,
  endingOf,
  honestLine,
  type RawLine,
  type Victims,
  victims,
} from '../../support/ledger-raw.ts'

/**
 * The functions, called with the application's role and without the library: whatever they are given,
 * they refuse it or keep the books right. What TypeScript checks is checked here once more.
 */
const fixture = ledgerFixture()
const app = appRole(fixture)

/** Credited, debited, held, allowance of an account. */
async function standing({ scope }: Victims, key: string): Promise<number[]> {
  const { rows } = await fixture.observer.query<{ standing: number[] }>(
    `SELECT ARRAY[b.credited, b.debited, b.held, b.allowance]::int[] AS standing
     FROM holdfast.balance b JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account
     WHERE a.scope = $1 AND a.key = $2`,
    [scope, key],
  )
  return rows[0]?.standing as number[]
}

const largest = String(2n ** 62n - 1n)
const refusedBy = (error: pg.DatabaseError): string => error.code as string

let at: Victims
beforeEach(async () => {
  at = await victims(app.pool)
})

describe('a line that is not valid is refused with an error, and nothing is written', () => {
  const anyKind = [1, 2, 3, 7, 8, 11, 12, 13]
  const wrongs: Record<string, Partial<RawLine>[]> = {
    'a negative amount': anyKind
      .filter((kind) => kind !== 11)
      .map((kind) => ({ kind, amount: '-5' })),
    'an amount of zero': anyKind.map((kind) => ({ kind, amount: '0' })),
    'no amount': anyKind.map((kind) => ({ kind, amount: null })),
    'an amount that is too large': [
      '4611686018427387904',
      '9223372036854775807',
      '-9223372036854775808',
    ].flatMap((amount) => [1, 2, 3, 11].map((kind) => ({ kind, amount }))),
    'a kind that is none': [0, 9, 14, 99, -1, null].map((kind) => ({ kind })),
    'a hold without a time': [null, '0', '-1', '9223372036854775807'].map((ttlMs) => ({
      kind: 3,
      ttlMs,
    })),
    'a hold without an id': [{ kind: 3, ref: null, ttlMs: '1000' }],
    'a rate that is none': ['0', '-1'].map((everyUs) => ({ kind: 2, everyUs })),
    'an allowance below zero or too large': [
      '-1',
      '4611686018427387904',
      '9223372036854775807',
    ].flatMap((allowance) =>
      [1, 2, 3].map((kind) => ({ kind, allowance, ttlMs: '1000', ref: fresh() })),
    ),
    'no name': (
      ['book', 'key', 'scope', 'operationId', 'id', 'owner', 'base', 'bucket'] as const
    ).map((column) => ({ [column]: null })),
    'no flags': [{ flags: null }],
    'no number': [{ op: null }],
    'words that are no JSON': [{ note: 'not json' }],
    'a window that is none': [
      { unit: 'fortnight', zone: 'UTC' },
      { unit: 'day', zone: 'Nowhere/At_All' },
    ],
  }
  const cases = Object.entries(wrongs).flatMap(([name, changes]) =>
    changes.map((change) => [name, change] as const),
  )

  test.each(cases)('%s: %j', async (_, change) => {
    const line = at.line({
      ...(change.kind === 3 ? { ttlMs: '1000', ref: fresh() } : {}),
      ...change,
    })
    const before = [await standing(at, 'rich'), await standing(at, 'walled')]
    const sent = callApply(app.pool, columnsOf([line])).catch(refusedBy)
    // A kind that nobody knows may also be answered as unknown.
    expect(['22023', '22P02', '22007', '22008', '23502', '22003', '4']).toContain(
      String(await sent),
    )
    // apply_one() needs names only for an account that is new.
    const unnamed = 'book' in change || 'key' in change || 'scope' in change
    if (change.op !== null && change.everyUs === undefined && !unnamed) {
      const one = await callApplyOne(app.pool, line).catch(refusedBy)
      expect(['22023', '22P02', '22007', '22008', '23502', '22003', '4']).toContain(String(one))
    }
    // Beside an honest one: the call is refused as a whole.
    const beside = [at.line(), { ...line, op: line.op === null ? null : 1 }]
    const both = await callApply(app.pool, columnsOf(beside)).catch(refusedBy)
    expect(typeof both === 'string' || both[1] === 4).toBe(true)
    const honest = typeof both === 'string' ? 0 : 5
    const [credited = 0, ...rest] = before[0] as number[]
    expect(await standing(at, 'rich')).toEqual([credited + honest, ...rest])
    expect(await standing(at, 'walled')).toEqual(before[1])
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })
})

describe('an account id that does not belong to its name is refused', () => {
  test.each<[string, () => Partial<RawLine>]>([
    ['the bucket of another scope', () => ({ bucket: ((at.line().bucket as number) + 1) % 4096 })],
    ['a bucket that is none', () => ({ bucket: 4096 })],
    ['an id made up', () => ({ base: fresh() })],
    ["somebody else's scope", () => ({ scope: fresh() })],
    ['another key', () => ({ key: fresh() })],
    ['another book', () => ({ book: fresh() })],
  ])('%s', async (_, change) => {
    const stranger = { ...honestLine(fresh(), 'new', fresh()), ...change() }
    expect(await callApply(app.pool, columnsOf([stranger])).catch(refusedBy)).toBe('22023')
    expect(await callApplyOne(app.pool, stranger).catch(refusedBy)).toBe('22023')
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })
})

describe('columns that do not fit together', () => {
  test.each(columns.map(([column]) => column))(
    '%s too short, too long, empty, null',
    async (column) => {
      const lines = [at.line(), at.line({ op: 1, kind: 2 }), endingOf(at.hold, 4)].map(
        (line, op) => ({
          ...line,
          op,
        }),
      )
      for (const values of [
        lines.slice(0, 1).map((line) => line[column]),
        [...lines, ...lines].map((line) => line[column]),
        [],
        null,
      ]) {
        const given = { ...columnsOf(lines), [column]: values }
        await callApply(app.pool, given).catch(refusedBy)
        expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
      }
    },
  )
})

describe('nothing is created or taken by', () => {
  const still = async (key = 'rich'): Promise<void> => {
    expect(await standing(at, key)).toEqual(key === 'rich' ? [30, 10, 5, 0] : [3, 0, 0, 0])
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  }

  test('"book it whatever the balance" on a walled account', async () => {
    for (const flags of [1, 3, 1 | 128, 255]) {
      for (const kind of [2, 3]) {
        const line = at.walled({ kind, amount: '4', flags, ttlMs: '60000', ref: fresh() })
        expect(await callApply(app.pool, columnsOf([line])).catch(refusedBy)).toEqual([2])
      }
    }
    const adjust = at.walled({ kind: 11, amount: '-4', flags: 1 })
    expect(await callApply(app.pool, columnsOf([adjust]))).toEqual([2])
    await still('walled')
  })

  test('a settlement of a negative amount, or of none that exists', async () => {
    const settle = endingOf(at.hold, 4)
    expect(
      await callApply(app.pool, columnsOf([{ ...settle, amount: '-5' }])).catch(refusedBy),
    ).toBe('22023')
    for (const ref of ['', 'fff', 'xyz', fresh(), `zzz-${fresh()}`, `fff-${fresh()}`, null]) {
      const answer = await callApply(app.pool, columnsOf([{ ...settle, ref }])).catch(refusedBy)
      expect(['22023', '22P02', '4']).toContain(String(answer))
    }
    await still()
  })

  test('a hold that takes the id of another', async () => {
    const forged = { ...at.line({ kind: 3 }), ttlMs: '60000', ref: at.hold.ref }
    expect(await callApply(app.pool, columnsOf([forged])).catch(refusedBy)).toMatch(/^23505|22023$/)
    expect(await callApplyOne(app.pool, forged).catch(refusedBy)).toMatch(/^23505|22023$/)
    await still()
  })

  test('the same operation id twice in one call', async () => {
    const twice = [at.line({ op: 0 }), at.line({ op: 1 })].map((line) => ({
      ...line,
      id: at.debit.owner,
      operationId: 'twice',
    }))
    const answer = await callApply(app.pool, columnsOf(twice)).catch(refusedBy)
    if (typeof answer !== 'string') expect(answer.filter((status) => status === 0)).toHaveLength(1)
    const [credited] = await standing(at, 'rich')
    expect(credited).toBeLessThanOrEqual(35)
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })

  test('lines of one operation with different ids', async () => {
    const lines = [
      at.line(),
      { ...at.line({ kind: 2 }), id: at.debit.id, operationId: at.debit.operationId },
    ]
    await callApply(app.pool, columnsOf(lines)).catch(refusedBy)
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })

  test('an operation whose lines do not follow each other', async () => {
    const [a, b] = [at.line({ op: 0 }), at.line({ op: 1, kind: 2, amount: '1' })]
    await callApply(app.pool, columnsOf([a, b, { ...a, kind: 2, amount: '1' }])).catch(refusedBy)
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })

  test('a refund of more than was taken, in pieces, in one call', async () => {
    const refund = at.line({ kind: 7, amount: '6', ref: at.debit.id })
    const twice = [refund, { ...at.line({ kind: 7, amount: '6', ref: at.debit.id }), op: 1 }]
    expect(await callApply(app.pool, columnsOf(twice))).toEqual([0, 7])
    const sameOperation = [
      at.line({ kind: 7, amount: '3', ref: at.debit.id }),
      at.line({ kind: 7, amount: '3', ref: at.debit.id }),
    ].map((line) => ({ ...line, id: at.debit.owner, operationId: 'pieces' }))
    await callApply(app.pool, columnsOf(sameOperation)).catch(refusedBy)
    expect((await standing(at, 'rich'))[0]).toBeLessThanOrEqual(40)
    expect(await brokenInvariants(fixture.observer, { scope: at.scope })).toEqual([])
  })

  test('counters at their end', async () => {
    const full = at.line({ kind: 1, amount: largest })
    expect(await callApply(app.pool, columnsOf([full]))).toEqual([6])
    expect(await callApplyOne(app.pool, full)).toBe(6)
    const owing = at.line({ kind: 2, amount: largest, flags: 1, allowance: largest })
    expect(await callApply(app.pool, columnsOf([owing]))).toEqual([6])
    await still()
  })

  test('the other functions', async () => {
    for (const most of [-1, 0, 2_147_483_647, null]) {
      const { rows } = await app.pool.query<{ sweep: string }>('SELECT holdfast.sweep($1::int)', [
        most,
      ])
      expect(rows[0]?.sweep).toMatch(/^0,/)
    }
    await still()
  })
})
