import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { type Service, startService } from '../demo/start-service.ts'
import type { Movement } from '../src/audit-trail.ts'
import { fromSource } from './from-source.ts'

let services: Service[]
let pool: pg.Pool

beforeAll(async () => {
  const { url, directUrl } = await testDatabase()
  pool = new pg.Pool({ connectionString: directUrl })
  await pool.query(await readFile(new URL('../prisma/schema.sql', import.meta.url), 'utf8'))
  // Both install the ledger: one does it, the other finds it done.
  const settings = { NODE_OPTIONS: `--import=${fromSource}` }
  services = await Promise.all([startService(url, settings), startService(url, settings)])
})

afterAll(async () => {
  await Promise.all(services?.map((service) => service.stop()) ?? [])
  await pool?.end()
})

async function post(
  path: string,
  message: unknown,
  at = 0,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${(services[at] as Service).url}/${path}`, {
    method: 'POST',
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })
  return { status: response.status, body: await response.json() }
}

const line = (sku: string, quantity: number): { sku: string; quantity: number } => ({
  sku,
  quantity,
})

describe('the service', () => {
  test('takes orders while there is something, and says what is missing', async () => {
    const lines = [line('mug', 3), line('tee', 1)]
    expect(await post('deliveries', { id: 'd1', lines })).toMatchObject({ status: 201 })
    expect(await post('deliveries', { id: 'd1', lines }, 1)).toMatchObject({ status: 200 })
    const taken = await post('orders', { id: 'o1', lines: [line('mug', 2)] })
    expect(taken).toEqual({ status: 201, body: { is: 'done' } })
    const short = await post('orders', { id: 'o2', lines: [line('mug', 2), line('tee', 1)] })
    expect(short).toEqual({ status: 409, body: { is: 'short', missing: [line('mug', 1)] } })
    const { rows } = await pool.query(
      `SELECT o.external_id, l.sku, l.quantity FROM shop_order o JOIN order_line l ON l.order_id = o.id`,
    )
    expect(rows).toEqual([{ external_id: 'o1', ...line('mug', 2) }])
  })

  test('takes an order once, however often and wherever it comes', async () => {
    await post('deliveries', { id: 'd2', lines: [line('cap', 100)] })
    const order = { id: 'o3', source: 'marketplace', lines: [line('cap', 1), line('cap', 2)] }
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => post('orders', order, n % 2)),
    )
    const once = answers.filter(({ status }) => status === 201)
    expect(once).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(7)
    const changed = await post('orders', { ...order, lines: [line('cap', 4)] })
    expect(changed).toEqual({ status: 422, body: { is: 'refused', reason: 'conflict' } })
    const { rows } = await pool.query(`SELECT FROM shop_order WHERE external_id = 'o3'`)
    expect(rows).toHaveLength(1)
  })

  test('takes back what was sold, once; and can tell the whole story', async () => {
    await post('deliveries', { id: 'd4', lines: [line('pin', 5)] })
    await post('orders', { id: 'o4', source: 'web', lines: [line('pin', 2)] })
    const back = { id: 'r1', orderId: 'o4', lines: [line('pin', 2)] }
    expect(await post('returns', back)).toMatchObject({ status: 201 })
    expect(await post('returns', back, 1)).toMatchObject({ status: 200 })
    expect(await post('returns', { ...back, id: 'r2' })).toMatchObject({
      status: 422,
      body: { reason: 'over-refund' },
    })
    expect(await post('returns', { ...back, orderId: 'o99' })).toMatchObject({ status: 422 })
    const response = await fetch(`${(services[1] as Service).url}/skus/pin/movements`)
    const trail = (await response.json()) as Movement[]
    expect(trail).toMatchObject([
      { sequence: 1, kind: 'credit', change: 5, onHand: 5, source: 'delivery', externalId: 'd4' },
      { sequence: 2, kind: 'debit', change: -2, onHand: 3, source: 'web', externalId: 'o4' },
      { sequence: 3, kind: 'refund', change: 2, onHand: 5, source: 'return', externalId: 'r1' },
    ])
  })

  test.each([
    '',
    '[',
    'null',
    '{}',
    '{"id":"a"}',
    '{"id":"a","lines":[]}',
    '{"lines":[{"sku":"a","quantity":1}]}',
    '{"id":"a","lines":[{"quantity":1}]}',
    '{"id":"a","lines":[{"sku":"a","quantity":0}]}',
    '{"id":"a","lines":[{"sku":"a","quantity":"1"}]}',
    '{"id":"a","lines":[null]}',
    `{"id":"${'a'.repeat(10_000)}"}`,
  ])('refuses the body %j', async (body) => {
    expect((await post('orders', body)).status).toBe(400)
  })

  test('knows its paths and methods', async () => {
    expect((await post('nowhere', {})).status).toBe(404)
    expect((await fetch(`${(services[0] as Service).url}/orders`)).status).toBe(405)
  })
})
