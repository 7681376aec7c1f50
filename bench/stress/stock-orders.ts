import { randomFor } from '../harness/random.ts'
import { zipf } from '../harness/zipf.ts'

export const skus = 1_000
/** What there is of each at the beginning. */
export const opening = 60
export const linesPerOrder = 5

const popular = zipf(skus)

export interface OrderLine {
  readonly sku: string
  readonly quantity: number
}

/** What is done with the lines. A cart is reserved first, and then bought or left. */
export type Trade = 'issue' | 'receive' | 'buy cart' | 'leave cart'

export interface StockOrder {
  readonly lines: readonly OrderLine[]
  readonly trade: Trade
  readonly route: 'combined' | 'direct' | 'joined'
  /** The same is sent a second time, as marketplaces do. */
  readonly twice: boolean
}

const routes = ['combined', 'direct', 'joined', 'joined'] as const

/**
 * Order number `number`: lines in the order a customer picked them, and the same article may be
 * among them twice. Less comes in than is wanted, so the popular ones are always about to run out.
 */
export function orderFor(seed: number, number: number): StockOrder {
  const random = randomFor(seed, number)
  const dice = random.integer(0, 99)
  const trade: Trade =
    dice < 10 ? 'receive' : dice < 20 ? 'buy cart' : dice < 30 ? 'leave cart' : 'issue'
  const line = (): OrderLine => ({
    sku: `sku-${popular(random)}`,
    quantity: trade === 'receive' ? random.integer(10, 40) : random.integer(1, 3),
  })
  return {
    lines: Array.from({ length: trade === 'receive' ? 1 : linesPerOrder }, line),
    trade,
    route: routes[random.integer(0, routes.length - 1)] ?? 'direct',
    twice: random.integer(0, 9) === 0,
  }
}
