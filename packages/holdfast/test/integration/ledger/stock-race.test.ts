/** Many orders at the same moment: never oversold, never twice, never in part. */
import { barrier } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { StockLine, StockVerdict } from '../../../src/stock/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const callers = 64
const skus = ['cap', 'mug', 'pin', 'tee']
const perSku = 20

/** As many as there are application instances in a small deployment, each with a pool of its own. */
let instances: { pool: pg.Pool; hf: Holdfast<pg.PoolClient> }[]

beforeAll(() => {
  instances = Array.from({ length: 4 }, () => {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 8 })
    return { pool, hf: createHoldfast(fromPg(pool)) }
  })
})
afterAll(async () => {
  await Promise.all(instances.map(({ pool }) => pool.end()))
})

/** Two or three SKUs, in an order that differs from caller to caller; one of them sometimes twice. */
function orderOf(caller: number): StockLine[] {
  const at = (step: number): string => skus[(caller * 3 + step) % skus.length] as string
  const lines = [
    { sku: at(0), quantity: 1 },
    { sku: at(caller % 2 === 0 ? 1 : 3), quantity: 1 },
    { sku: at(caller % 3 === 0 ? 0 : 2), quantity: 1 },
  ]
  return caller % 2 === 0 ? lines : lines.toReversed()
}

const piecesOf = (orders: readonly StockLine[][], sku: string): number =>
  orders.flat().reduce((sum, line) => sum + (line.sku === sku ? Number(line.quantity) : 0), 0)

describe('64 orders released by a barrier', () => {
  test('never take more than there is, nor a part of an order', async () => {
    const name = fresh()
    const stocks = instances.map(({ hf }) => hf.stock({ name }))
    await stocks[0]?.receive(
      skus.map((sku) => ({ sku, quantity: perSku })),
      { externalId: 'delivery' },
    )
    const arrive = barrier(callers)
    const answers = await Promise.all(
      Array.from({ length: callers }, async (_, caller) => {
        const at = caller % instances.length
        const { hf } = instances[at] as (typeof instances)[number]
        const stock = stocks[at] as (typeof stocks)[number]
        const lines = orderOf(caller)
        const order = { externalId: `order ${caller}` }
        await arrive()
        // A third of them inside transactions of their own, the rest coalesced.
        const verdict =
          caller % 3 === 0
            ? await hf.transaction((tx) => stock.issue(tx, lines, order))
            : await stock.issue(lines, order)
        return { lines, ok: verdict.ok }
      }),
    )
    const sold = answers.filter(({ ok }) => ok).map(({ lines }) => lines)
    expect(sold.length).toBeGreaterThan(0)
    expect(sold.length).toBeLessThan(callers)
    const { rows } = await fixture.observer.query<{
      key: string
      left: string
      lowest: string
      moves: string
    }>(
      `SELECT a.key, b.credited - b.debited AS left, m.lowest, m.moves
       FROM holdfast.account a
       JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
       CROSS JOIN LATERAL (
         SELECT min(v.credited - v.debited - v.held) AS lowest, count(*) AS moves
         FROM holdfast.movement v WHERE v.bucket = a.bucket AND v.account = a.id
       ) m
       WHERE a.book = $1 ORDER BY a.key`,
      [name],
    )
    expect(rows).toEqual(
      skus.map((sku) => ({
        key: sku,
        left: String(perSku - piecesOf(sold, sku)),
        lowest: expect.stringMatching(/^\d+$/),
        moves: String(1 + sold.filter((lines) => piecesOf([lines], sku) > 0).length),
      })),
    )
    // Whoever was refused was refused for a reason: something they wanted is (nearly) gone.
    expect(rows.some(({ left }) => Number(left) < 2)).toBe(true)
  })

  test('control: read, check, write oversells', async () => {
    await fixture.observer.query(`
      CREATE TABLE naive_stock (sku text PRIMARY KEY, stock int NOT NULL);
      INSERT INTO naive_stock VALUES ('mug', 1)`)
    const arrive = barrier(8)
    const { pool } = instances[0] as (typeof instances)[number]
    const sold = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await pool.connect()
        try {
          await client.query('BEGIN')
          const { rows } = await client.query<{ stock: number }>(
            `SELECT stock FROM naive_stock WHERE sku = 'mug'`,
          )
          await arrive()
          const fits = (rows[0]?.stock ?? 0) >= 1
          if (fits) await client.query(`UPDATE naive_stock SET stock = stock - 1`)
          await client.query('COMMIT')
          return fits
        } finally {
          client.release()
        }
      }),
    )
    const { rows } = await fixture.observer.query('SELECT stock FROM naive_stock')
    expect(sold.filter(Boolean)).toHaveLength(8)
    expect(rows).toEqual([{ stock: -7 }])
  })
})

describe('the same webhook, delivered to every instance at once', () => {
  test('is one movement, and everyone gets the same answer', async () => {
    const name = fresh()
    const stocks = instances.map(({ hf }) => hf.stock({ name }))
    const order = [
      { sku: 'mug', quantity: 2 },
      { sku: 'tee', quantity: 1 },
    ]
    await stocks[0]?.receive(
      order.map(({ sku }) => ({ sku, quantity: 100 })),
      { externalId: 'delivery' },
    )
    const arrive = barrier(callers)
    const deliver = async (caller: number): Promise<StockVerdict<number>> => {
      const at = caller % instances.length
      const { hf } = instances[at] as (typeof instances)[number]
      const stock = stocks[at] as (typeof stocks)[number]
      // Every eighth was changed on its way.
      const lines = caller % 8 === 7 ? [...order, { sku: 'mug', quantity: 1 }] : order
      await arrive()
      return caller % 2 === 0
        ? hf.transaction((tx) => stock.issue(tx, lines, { externalId: 'webhook' }))
        : stock.issue(lines, { externalId: 'webhook' })
    }
    const verdicts = await Promise.all(Array.from({ length: callers }, (_, at) => deliver(at)))
    const accepted = verdicts.filter(({ ok }) => ok)
    const conflicts = verdicts.filter(
      (verdict) => !verdict.ok && verdict.reason === 'conflict' && verdict.field === 'amount',
    )
    // Either form may come first; then it is the other one that conflicts.
    expect(accepted.length + conflicts.length).toBe(callers)
    expect([8, 56]).toContain(conflicts.length)
    expect(accepted.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(new Set(accepted.map(({ lines }) => JSON.stringify(lines))).size).toBe(1)
    const { rows } = await fixture.observer.query(
      `SELECT count(*)::int AS moves FROM holdfast.movement m
       JOIN holdfast.account a ON a.bucket = m.bucket AND a.id = m.account
       WHERE a.book = $1 AND m.operation_id = 'webhook'`,
      [name],
    )
    expect(rows).toEqual([{ moves: 2 }])
  })

  test('control: looking for the id first applies it more than once', async () => {
    await fixture.observer.query('CREATE TABLE naive_movement (external_id text, quantity int)')
    const arrive = barrier(8)
    const { pool } = instances[0] as (typeof instances)[number]
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const { rowCount } = await pool.query(
          `SELECT FROM naive_movement WHERE external_id = 'webhook'`,
        )
        await arrive()
        if (rowCount === 0) await pool.query(`INSERT INTO naive_movement VALUES ('webhook', -2)`)
      }),
    )
    const { rowCount } = await fixture.observer.query('SELECT FROM naive_movement')
    expect(rowCount).toBe(8)
  })
})

describe('the last wall', () => {
  test('a balance below zero is refused by the table itself, whoever asks', async () => {
    const stock = fixture.hf.stock({ name: fresh(), backorder: 2 })
    await stock.receive([{ sku: 'mug', quantity: 3 }], { externalId: 'd1' })
    await stock.reserve([{ sku: 'mug', quantity: 1 }], { externalId: 'c1', ttl: '1 h' })
    const change = (set: string): Promise<pg.QueryResult> =>
      fixture.observer.query(
        `UPDATE holdfast.balance b SET ${set} FROM holdfast.account a
         WHERE a.bucket = b.bucket AND a.id = b.account AND a.book = $1`,
        [stock.name],
      )
    const { rows } = await fixture.observer.query('SHOW is_superuser')
    expect(rows).toEqual([{ is_superuser: 'on' }])
    const refused = { code: '23514', constraint: 'balance_never_below' }
    await expect(change('debited = debited + 5')).rejects.toMatchObject(refused)
    await expect(change('held = held + 5')).rejects.toMatchObject(refused)
    await expect(change('credited = 0, debited = 2')).rejects.toMatchObject(refused)
    await expect(change('held = -1')).rejects.toMatchObject(refused)
    // Control: the wall stands at zero and not before it.
    await expect(change('debited = debited + 4')).resolves.toMatchObject({ rowCount: 1 })
  })
})
