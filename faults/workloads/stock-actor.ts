import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Stock } from '../../packages/holdfast/src/stock/index.ts'
import { answerOf, type EndAsked, type LedgerAsked } from './ledger-answer.ts'
import { shop } from './stock-shop.ts'

interface OrderLine {
  readonly sku: string
  readonly quantity: number
}

/** Orders of several lines, reservations, and deliveries that do not quite keep up. */
export const stockActor: Actor = {
  workload: 'stock',
  copies: 1,
  async act(stage) {
    const { app, random, stopping } = stage
    const stock = app.hf.stock({ name: shop.name, late: 'refuse' })
    while (!stopping.aborted) {
      const dice = random.integer(0, 99)
      const lines = random
        .sample(shop.skus, random.integer(1, 4))
        .map((sku) => ({ sku, quantity: random.integer(1, 3) }))
      const id = newId(stage)
      if (dice < 40) await order(stage, stock, 'receive', lines, id)
      else if (dice < 75) await order(stage, stock, 'issue', lines, id, dice % 5 === 0)
      else await reserve(stage, stock, lines, id, dice)
      await stage.pace()
    }
  },
}

function askedOf(lines: readonly OrderLine[]): LedgerAsked {
  return {
    lines: lines.map(({ sku, quantity }) => ({ book: shop.name, key: sku, amount: quantity })),
  }
}

async function order<Tx>(
  stage: Stage<Tx>,
  stock: Stock<Tx, number, string>,
  operation: 'receive' | 'issue',
  lines: readonly OrderLine[],
  id: string,
  again = false,
): Promise<void> {
  const asked = { operation, key: shop.name, id, value: askedOf(lines) }
  const call = async () => answerOf(await stock[operation](lines, { externalId: id }))
  const { outcome } = await stage.recorder.persist(asked, call)
  // Also of a refused one: the customer was told no.
  if (again && (outcome === 'ok' || outcome === 'refused')) {
    await stage.recorder.persist(asked, call)
  }
}

async function reserve<Tx>(
  stage: Stage<Tx>,
  stock: Stock<Tx, number, string>,
  lines: readonly OrderLine[],
  id: string,
  dice: number,
): Promise<void> {
  const { recorder } = stage
  const { outcome, answer } = await recorder.persist(
    { operation: 'reserve', key: shop.name, id, value: askedOf(lines) },
    async () => answerOf(await stock.reserve(lines, { externalId: id, ttl: shop.reservationMs })),
  )
  const holdId = answer?.value.holdId
  if (outcome !== 'ok' || holdId === undefined) return
  await stage.pace()
  const sum = lines.reduce((total, { quantity }) => total + quantity, 0)
  if (dice < 88) {
    const value: EndAsked = { holdId, charge: sum, lines: lines.length }
    await recorder.persist({ operation: 'settle', key: shop.name, value }, async () =>
      answerOf(await stock.settle(holdId)),
    )
  } else if (dice < 96) {
    const value: EndAsked = { holdId, charge: 0, lines: lines.length }
    await recorder.persist({ operation: 'release', key: shop.name, value }, async () =>
      answerOf(await stock.release(holdId)),
    )
  }
}
