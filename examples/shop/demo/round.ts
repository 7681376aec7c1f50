import type { Delivery, Line, NewOrder, NewReturn } from '../src/shop.ts'

/** How hard to try. Every round has SKUs of its own. */
export interface Plan {
  readonly rounds: number
  /** Orders of a round, all at once; each comes twice. */
  readonly orders: number
  /** Pieces of each SKU. */
  readonly pieces: number
  /** Orders of a round that are sent back. */
  readonly returns: number
}

const products = ['mug', 'tee', 'cap', 'pin']

/** What there is to sell in a round. */
export function deliveryOf(round: number, { pieces }: Plan): Delivery {
  const lines = products.map((product) => ({ sku: `${product}-${round}`, quantity: pieces }))
  return { id: `delivery-${round}`, lines }
}

/** The orders of a round: two or three lines, in any order, some with the same SKU twice. */
export function ordersOf(round: number, { orders }: Plan): NewOrder[] {
  return Array.from({ length: orders }, (_, n) => {
    const sku = (step: number): string =>
      `${products[(n + step) % products.length] as string}-${round}`
    const lines = [
      { sku: sku(0), quantity: 1 + (n % 2) },
      { sku: sku(n % 3 === 0 ? 1 : 3), quantity: 1 },
      ...(n % 4 === 0 ? [{ sku: sku(0), quantity: 1 }] : []),
    ]
    return {
      id: `order-${round}-${n}`,
      source: n % 3 === 0 ? 'web' : 'marketplace',
      lines: n % 2 === 0 ? lines : lines.toReversed(),
    }
  })
}

/** A customer sends back all there is of one SKU, and then claims it once more. */
export function returnsOf(order: NewOrder): NewReturn[] {
  const { sku } = order.lines[0] as Line
  const quantity = order.lines.reduce(
    (sum, line) => sum + (line.sku === sku ? line.quantity : 0),
    0,
  )
  return ['a', 'b'].map((claim) => ({
    id: `return-${claim}-${order.id}`,
    orderId: order.id,
    lines: [{ sku, quantity }],
  }))
}
