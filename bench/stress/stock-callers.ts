/** The program of one process of customers; see stock.ts. */
import { barrier } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import type { Stock, StockVerdict } from '../../packages/holdfast/src/stock/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { joinTeam } from '../harness/team-member.ts'
import { stockName, type StockReport, type StockRound, type StockSetup } from './stock.ts'
import { orderFor, type StockOrder } from './stock-orders.ts'

const connections = 16

interface Way {
  readonly hf: Holdfast<PoolClient>
  readonly stock: Stock<PoolClient, number>
}

interface Shop {
  readonly url: string
  readonly pool: Pool
  readonly combined: Way
  readonly direct: Way
}

async function open(url: string): Promise<Shop> {
  const pool = await openPool(url, connections)
  const way = (coalesce: boolean): Way => {
    const hf = createHoldfast(fromPg(pool), { ledger: { coalesce } })
    return { hf, stock: hf.stock({ name: stockName }) }
  }
  return { url, pool, combined: way(true), direct: way(false) }
}

/** Takes or brings the goods, or puts them aside. */
async function move(
  { stock }: Way,
  tx: PoolClient | undefined,
  externalId: string,
  { lines, trade }: StockOrder,
): Promise<StockVerdict<number>> {
  const options = { externalId }
  if (trade === 'receive') {
    return await (tx === undefined
      ? stock.receive(lines, options)
      : stock.receive(tx, lines, options))
  }
  if (trade === 'issue') {
    return await (tx === undefined ? stock.issue(lines, options) : stock.issue(tx, lines, options))
  }
  const reserving = { ...options, ttl: '10 min' } as const
  return await (tx === undefined
    ? stock.reserve(lines, reserving)
    : stock.reserve(tx, lines, reserving))
}

/** Gives the number of lines that were booked: all of them or none. */
async function place(shop: Shop, id: string, order: StockOrder): Promise<number> {
  const way = order.route === 'combined' ? shop.combined : shop.direct
  let verdict: StockVerdict<number>
  if (order.route === 'joined') {
    // As a shop does it: the order's own row and its stock are committed together.
    verdict = await way.hf.transaction(async (tx) => {
      await tx.query('INSERT INTO orders (id) VALUES ($1)', [id])
      const moved = await move(way, tx, id, order)
      if (!moved.ok) await tx.query('DELETE FROM orders WHERE id = $1', [id])
      return moved
    })
  } else {
    verdict = await move(way, undefined, id, order)
  }
  if (order.twice) {
    const again = await move(shop.combined, undefined, id, order)
    if (again.ok !== verdict.ok || !again.replayed) throw new Error('a repetition was judged anew')
  }
  if (!verdict.ok) return 0
  const { holdId } = verdict
  if (holdId !== undefined) {
    const ended = await (order.trade === 'buy cart'
      ? way.stock.settle(holdId)
      : way.stock.release(holdId))
    if (!ended.ok) throw new Error(`a cart could not be ended: ${ended.reason}`)
  }
  return verdict.lines.length
}

joinTeam<StockSetup, StockRound, StockReport>(async ({ seed, callers }, member) => {
  let shop: Shop | undefined
  return {
    async ready({ url, round, ordersPerCaller }) {
      if (shop?.url !== url) {
        await shop?.pool.end()
        shop = await open(url)
      }
      const here = shop
      const troubles: string[] = []
      const placed: { id: string; lines: number; joined: boolean; cart: boolean }[] = []
      let refused = 0
      const together = barrier(callers)
      const caller = async (index: number): Promise<void> => {
        await together()
        for (let at = 0; at < ordersPerCaller; at += 1) {
          const id = `${round}-${member}-${index}-${at}`
          const order = orderFor(seed, ((round * 8 + member) * 128 + index) * 64 + at)
          try {
            const lines = await place(here, id, order)
            if (lines === 0) refused += 1
            else {
              const joined = order.route === 'joined'
              placed.push({ id, lines, joined, cart: order.trade.endsWith('cart') })
            }
          } catch (error) {
            troubles.push(`an order failed: ${String(error)}`)
          }
        }
      }
      return async () => {
        await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)))
        await here.pool.query(
          `INSERT INTO placed (id, lines, joined, cart)
           SELECT * FROM unnest($1::text[], $2::int[], $3::boolean[], $4::boolean[])`,
          [
            placed.map(({ id }) => id),
            placed.map(({ lines }) => lines),
            placed.map(({ joined }) => joined),
            placed.map(({ cart }) => cart),
          ],
        )
        return { accepted: placed.length, refused, troubles }
      }
    },
    close: async () => await shop?.pool.end(),
  }
})
