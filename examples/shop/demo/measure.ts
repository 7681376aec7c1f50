import { readFile } from 'node:fs/promises'
import type { Movement } from '../src/audit-trail.ts'
import { withClient } from './databases.ts'
import { deliveryOf, ordersOf, type Plan, returnsOf } from './round.ts'
import { type Service, startService } from './start-service.ts'

/** What came of one run. */
export interface Measured {
  /** Answers to orders, by status. */
  readonly answers: ReadonlyMap<number, number>
  /** Counted by the database, not by what the clients were told. */
  readonly orders: number
  readonly ordersTwice: number
  readonly piecesOversold: number
  readonly skusBelowZero: number
  readonly piecesOverReturned: number
}

const schema = new URL('../prisma/schema.sql', import.meta.url)
const processes = 3

/**
 * Runs the service as three processes on an empty database. In every round all orders are sent at the
 * same moment, each to two of the processes; then some are sent back, in the same way.
 */
export async function measure(
  databaseUrl: string,
  ledger: 'on' | 'off',
  plan: Plan,
  onRound: () => void,
): Promise<{ measured: Measured; trail: readonly Movement[] }> {
  const sql = await readFile(schema, 'utf8')
  await withClient(databaseUrl, async (client) => await client.query(sql))
  const answers = new Map<number, number>()
  const services: Service[] = []
  let skusBelowZero = 0
  try {
    // The processes of the naive shop deadlock now and then, and say so at length.
    const errors = ledger === 'on' ? 'inherit' : 'ignore'
    services.push(
      ...(await Promise.all(
        Array.from({ length: processes }, () =>
          startService(databaseUrl, { LEDGER: ledger }, errors),
        ),
      )),
    )
    for (let round = 1; round <= plan.rounds; round += 1) {
      const orders = ordersOf(round, plan)
      await post(services[0] as Service, 'deliveries', deliveryOf(round, plan))
      const sent = await Promise.all(orders.map((order, n) => twice(services, 'orders', order, n)))
      for (const status of sent.flat()) answers.set(status, (answers.get(status) ?? 0) + 1)
      skusBelowZero += await belowZero(databaseUrl, ledger, round)
      const taken = orders.filter((_, n) => sent[n]?.includes(201)).slice(0, plan.returns)
      const returned = taken.flatMap((order) => returnsOf(order))
      await Promise.all(returned.map((message, n) => twice(services, 'returns', message, n)))
      onRound()
    }
    const trail = ledger === 'on' ? await trailOf(services[0] as Service, 'mug-1') : []
    return { measured: { answers, skusBelowZero, ...(await damage(databaseUrl, plan)) }, trail }
  } finally {
    await Promise.all(services.map((service) => service.stop()))
  }
}

/** Marketplaces send a message until they hear that it arrived: here, twice at the same moment. */
async function twice(
  services: readonly Service[],
  path: string,
  message: unknown,
  n: number,
): Promise<number[]> {
  const targets = [n, n + 1].map((at) => services[at % services.length] as Service)
  return Promise.all(targets.map((service) => post(service, path, message)))
}

async function post(service: Service, path: string, message: unknown): Promise<number> {
  const response = await fetch(`${service.url}/${path}`, {
    method: 'POST',
    body: JSON.stringify(message),
  })
  await response.arrayBuffer()
  return response.status
}

async function trailOf(service: Service, sku: string): Promise<Movement[]> {
  const response = await fetch(`${service.url}/skus/${sku}/movements`)
  return (await response.json()) as Movement[]
}

/** How many SKUs of a round are, or on the ledger ever were, below zero. */
async function belowZero(
  databaseUrl: string,
  ledger: 'on' | 'off',
  round: number,
): Promise<number> {
  const source =
    ledger === 'on'
      ? 'SELECT DISTINCT key FROM holdfast.movements WHERE available < 0 AND key LIKE $1'
      : 'SELECT sku FROM variant WHERE stock < 0 AND sku LIKE $1'
  return withClient(databaseUrl, async (client) => {
    const { rowCount } = await client.query(source, [`%-${round}`])
    return rowCount ?? 0
  })
}

/** By what the shop promised to its customers: its own order and return rows. */
async function damage(
  databaseUrl: string,
  { pieces }: Plan,
): Promise<Omit<Measured, 'answers' | 'skusBelowZero'>> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<Record<string, number>>(
      `SELECT
         (SELECT count(DISTINCT external_id) FROM shop_order)::int AS orders,
         (SELECT count(*) - count(DISTINCT external_id) FROM shop_order)::int AS twice,
         (SELECT coalesce(sum(greatest(sold - $1::int, 0)), 0)
          FROM (SELECT sum(quantity) AS sold FROM order_line GROUP BY sku) AS s)::int AS oversold,
         (SELECT coalesce(sum(greatest(back - sold, 0)), 0)
          FROM (SELECT order_id, sku, sum(quantity) AS back FROM return_line GROUP BY 1, 2) AS r
          JOIN (SELECT order_id, sku, sum(quantity) AS sold FROM order_line GROUP BY 1, 2) AS s
            USING (order_id, sku))::int AS returned`,
      [pieces],
    )
    const [found] = rows
    return {
      orders: Number(found?.['orders']),
      ordersTwice: Number(found?.['twice']),
      piecesOversold: Number(found?.['oversold']),
      piecesOverReturned: Number(found?.['returned']),
    }
  })
}
