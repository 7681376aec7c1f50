/** R10: at most so many rows of a key are claimed in any span of time, over all processes. */
import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { WorkOptions } from '../../../src/entries/claims.ts'
import { leaseSettings } from '../../../src/claims/layout.ts'
import { turnsOf } from '../../../src/engines/postgres/claims/turns.ts'
import { workTable } from '../../../src/claims/work-table.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { claimRows } from '../../../src/engines/postgres/claims/claims.ts'
import { createHoldfast } from '../../../src/index.ts'
import { appRole } from '../../support/app-role.ts'
import { optionsFor } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture(`
  CREATE TABLE task (
    id bigint PRIMARY KEY, tenant text NOT NULL, state text NOT NULL DEFAULT 'new',
    due timestamptz NOT NULL DEFAULT now(), tries int NOT NULL DEFAULT 0, token uuid, until timestamptz,
    owner text, why text
  )`)
const role = appRole(fixture)

let queues = 0
function queue(perScope: NonNullable<WorkOptions['perScope']>) {
  queues += 1
  const name = `rate ${queues}`
  // Each its own: what one process remembers, another does not.
  const open = () => createHoldfast(fromPg(role.pool)).work({ queue: name, perScope })
  const add = (scope: string, count: number) =>
    open().enqueue(Array.from({ length: count }, (_, at) => ({ payload: at, scope })))
  return { name, open, add, work: open() }
}

const perScope = (claims: readonly { row: { scope: string } }[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { row } of claims) counts[row.scope] = (counts[row.scope] ?? 0) + 1
  return counts
}

/** As if so much time had passed. */
const pass = async (span: string): Promise<void> =>
  void (await fixture.observer.query(
    `UPDATE holdfast.claim_rate SET until = until - $1::interval,
     starts = ARRAY(SELECT s - $1::interval FROM unnest(starts) AS s)`,
    [span],
  ))

describe('R10: a rate per key', () => {
  test('is exact over several processes that claim at once, and other keys do not wait', async () => {
    const { open, add } = queue({ rate: { most: 5, per: '1 min' } })
    for (const scope of ['a', 'b', 'c']) await add(scope, 40)
    const claimed = []
    for (let round = 0; round < 4; round += 1) {
      const ready = barrier(4)
      const rounds = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const work = open()
          await ready()
          return await work.claim(7)
        }),
      )
      claimed.push(...rounds.flat())
    }
    expect(perScope(claimed)).toEqual({ a: 5, b: 5, c: 5 })
    await add('late', 1)
    expect(perScope(await open().claim(9))).toEqual({ late: 1 })
  })

  test('any span of time, not a window that begins anew', async () => {
    const { work, add } = queue({ rate: { most: 4, per: '1 min' } })
    await add('a', 20)
    expect(await work.claim(1)).toHaveLength(1)
    await pass('40 s')
    expect(await work.claim(9)).toHaveLength(3)
    await pass('15 s')
    expect(await work.claim(9)).toHaveLength(0)
    // The first one is past, the three others are not.
    await pass('10 s')
    expect(await work.claim(9)).toHaveLength(1)
    await pass('60 s')
    expect(await work.claim(9)).toHaveLength(4)
  })

  test('beside the limit of rows in flight', async () => {
    const { work, add } = queue({ limit: 2, rate: { most: 3, per: '1 min' } })
    await add('a', 9)
    const first = await work.claim(9)
    expect(first).toHaveLength(2)
    await work.complete(first)
    const second = await work.claim(9)
    expect(second).toHaveLength(1)
    await work.complete(second)
    expect(await work.claim(9)).toHaveLength(0)
  })

  test('an attempt that failed counts, and two queues have rates of their own', async () => {
    const [one, two] = [1, 2].map(() => queue({ rate: { most: 2, per: '1 min' } }))
    await one?.add('a', 1)
    await two?.add('a', 3)
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await one?.work.fail((await one?.work.claim(1)) ?? [], { retryInMs: 0 })
    }
    expect(await one?.work.claim(1)).toEqual([])
    expect(await two?.work.claim(9)).toHaveLength(2)
  })

  test('what is rolled back was not claimed', async () => {
    const { name, add } = queue({ rate: { most: 2, per: '1 min' } })
    const work = fixture.hf.work({ queue: name, perScope: { rate: { most: 2, per: '1 min' } } })
    await add('a', 3)
    const tx = await callerTransaction(fixture)
    expect(await work.claim(tx, 9)).toHaveLength(2)
    await tx.query('ROLLBACK')
    expect(await work.claim(9)).toHaveLength(2)
    expect(await work.claim(9)).toHaveLength(0)
  })

  test('keys whose time is past are forgotten', async () => {
    const { work, add } = queue({ rate: { most: 2, per: '1 min' } })
    for (const scope of ['x', 'y', 'z']) await add(scope, 1)
    await work.claim(9)
    await pass('10 min')
    await add('w', 1)
    await work.claim(9)
    await add('v', 1)
    await work.claim(9)
    const { rows } = await fixture.observer.query(
      `SELECT key FROM holdfast.claim_rate WHERE limiter LIKE $1 ORDER BY 1`,
      [`%${encodeURIComponent(`rate ${queues}`)}%`],
    )
    expect(rows.map(({ key }) => key as string)).toEqual(['v', 'w'])
  })

  test('of a table of one’s own', async () => {
    await fixture.observer.query(
      `INSERT INTO task (id, tenant) SELECT g, E'acme ''\\\\' FROM generate_series(1, 5) g`,
    )
    const claims = fixture.hf.claims({
      ...optionsFor('task'),
      perKey: { column: 'tenant', rate: { most: 3, per: 60_000 } },
    })
    expect(await claims.claim(9)).toHaveLength(3)
    expect(await claims.claim(9)).toHaveLength(0)
  })

  test('control: counting and claiming without the lock goes above it', async () => {
    const { name, add } = queue({ rate: { most: 1, per: '1 min' } })
    await add('a', 4)
    const { layout, perKey } = leaseSettings(
      {
        ...workTable('holdfast', name),
        perKey: { column: 'scope', rate: { most: 1, per: '1 min' } },
      },
      undefined,
    )
    const turns = turnsOf('scope', ['a'], 1, { limit: undefined, rate: perKey?.rate })
    const claiming = claimRows(
      layout,
      { limit: 1, joined: false, turns },
      { token: '00000000-0000-0000-0000-000000000000', ms: 1_000, holder: 'me' },
    )
    const both = [await callerTransaction(fixture), await callerTransaction(fixture)]
    let claimed = 0
    for (const tx of both) {
      claimed += (await tx.query(claiming.text, [...claiming.values])).rows.length
    }
    expect(claimed).toBe(2)
  })

  test.each([
    { most: 0, per: '1 s' },
    { most: 1_001, per: '1 s' },
    { most: 1.5, per: '1 s' },
    { most: 1, per: 'soon' },
  ] as const)('refused: %o', (rate) => {
    expect(() =>
      fixture.hf.claims({ ...optionsFor('task'), perKey: { column: 'tenant', rate } as never }),
    ).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }) as Error)
  })
})
