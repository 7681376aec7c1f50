/** The caller's own transaction on every client: order row and stock commit or roll back together. */
import { sample } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { testDatabase } from '../../support/database.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { fresh } from '../../support/ledger-fixture.ts'

let url: string
let observer: pg.Pool

beforeAll(async () => {
  const database = await testDatabase()
  url = database.url
  observer = new pg.Pool({ connectionString: database.directUrl, max: 2 })
  await migrate(fromPg(observer))
  await observer.query('CREATE TABLE shop_order (id text PRIMARY KEY)')
})
afterAll(async () => observer.end())

describe.each(sample(Object.entries(everyClient), 3, 2))('%s', (_, open) => {
  let client: OpenClient
  let hf: Holdfast<unknown>
  const name = fresh()
  const order = [
    { sku: 'mug', quantity: 2 },
    { sku: 'tee', quantity: 1 },
  ]

  beforeAll(async () => {
    client = await open(url)
    hf = createHoldfast(client.driver)
    const stock = hf.stock({ name })
    await stock.receive(
      order.map(({ sku }) => ({ sku, quantity: 5 })),
      { externalId: 'delivery' },
    )
  })
  afterAll(async () => client.end())

  const insert = async (tx: unknown, id: string): Promise<void> => {
    await client.driver.join(tx).query({
      text: 'INSERT INTO shop_order VALUES ($1::text) RETURNING id',
      values: [id],
    })
  }
  const there = async (id: string): Promise<{ orders: number; movements: number }> => {
    const { rows } = await observer.query<{ orders: number; movements: number }>(
      `SELECT (SELECT count(*) FROM shop_order WHERE id = $1)::int AS orders,
              (SELECT count(*) FROM holdfast.movement WHERE operation_id = $1)::int AS movements`,
      [id],
    )
    return rows[0] as { orders: number; movements: number }
  }

  test('commits both, with the words, and answers a duplicate in another transaction', async () => {
    const stock = hf.stock({ name })
    const id = fresh()
    const words = { source: 'wéb "shop"', reference: { type: 'order', id } }
    const verdict = await hf.transaction(async (tx) => {
      await insert(tx, id)
      return stock.issue(tx, order, { externalId: id, ...words })
    })
    expect(verdict).toMatchObject({
      ok: true,
      replayed: false,
      lines: [
        { sku: 'mug', onHand: 3 },
        { sku: 'tee', onHand: 4 },
      ],
    })
    expect(await there(id)).toEqual({ orders: 1, movements: 2 })
    const { rows } = await observer.query(
      'SELECT DISTINCT note FROM holdfast.movement WHERE operation_id = $1',
      [id],
    )
    expect(rows).toEqual([{ note: words }])
    const again = await hf.transaction((tx) => stock.issue(tx, order, { externalId: id, ...words }))
    expect(again).toMatchObject({ ok: true, replayed: true })
    const cart = await hf.transaction((tx) =>
      stock.reserve(tx, order.slice(1), { externalId: fresh(), ttl: '1 h' }),
    )
    const holdId = (cart.ok && cart.holdId) as string
    await hf.transaction((tx) => stock.extend(tx, holdId, '2 h'))
    const settled = await hf.transaction((tx) => stock.settle(tx, holdId))
    expect(settled).toMatchObject({ ok: true })
    const back = await hf.transaction((tx) =>
      stock.return(tx, order, { externalId: fresh(), of: id }),
    )
    expect(back).toMatchObject({ ok: true })
  })

  test('rolls both back', async () => {
    const stock = hf.stock({ name })
    const id = fresh()
    const failing = hf.transaction(async (tx) => {
      await insert(tx, id)
      expect(await stock.issue(tx, order, { externalId: id })).toMatchObject({ ok: true })
      throw new Error('the payment failed')
    })
    await expect(failing).rejects.toThrow('the payment failed')
    expect(await there(id)).toEqual({ orders: 0, movements: 0 })
  })

  test('a refusal leaves the transaction usable', async () => {
    const stock = hf.stock({ name })
    const id = fresh()
    const verdict = await hf.transaction(async (tx) => {
      const refused = await stock.issue(tx, [{ sku: 'mug', quantity: 99 }], { externalId: id })
      await insert(tx, id)
      return refused
    })
    expect(verdict).toMatchObject({ ok: false, reason: 'insufficient' })
    expect(await there(id)).toEqual({ orders: 1, movements: 0 })
  })
})
