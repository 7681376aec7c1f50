/** The same shop on the ledger: stock and the shop's own rows commit together or not at all. */
import type { StockVerdict } from 'holdfast/stock'
import { hf } from './database.ts'
import type { Delivery, NewOrder, NewReturn, Outcome } from './shop.ts'
import { stock } from './stock.ts'

export async function deliver({ id, lines }: Delivery): Promise<Outcome> {
  return outcomeOf(await stock.receive(lines, { externalId: id, source: 'delivery' }))
}

// #region order
export async function takeOrder({ id, source, lines }: NewOrder): Promise<Outcome> {
  return hf.transaction(async (tx) => {
    const reference = { type: 'order', id }
    const verdict = await stock.issue(tx, lines, { externalId: id, source, reference })
    // Repeated: the first time stock and order were committed together, so the order is there.
    if (verdict.ok && !verdict.replayed) {
      await tx.order.create({ data: { externalId: id, source, lines: { create: [...lines] } } })
    }
    return outcomeOf(verdict)
  })
}
// #endregion

export async function takeReturn({ id, orderId, lines }: NewReturn): Promise<Outcome> {
  return hf.transaction(async (tx) => {
    const reference = { type: 'order', id: orderId }
    const verdict = await stock.return(tx, lines, {
      externalId: id,
      of: orderId,
      source: 'return',
      reference,
    })
    if (verdict.ok && !verdict.replayed) {
      const order = await tx.order.findFirstOrThrow({ where: { externalId: orderId } })
      await tx.returnLine.createMany({
        data: lines.map((line) => ({ ...line, externalId: id, orderId: order.id })),
      })
    }
    return outcomeOf(verdict)
  })
}

function outcomeOf(verdict: StockVerdict<number>): Outcome {
  if (verdict.ok) return { is: verdict.replayed ? 'repeated' : 'done' }
  if (verdict.reason !== 'insufficient') return { is: 'refused', reason: verdict.reason }
  const short = verdict.lines.filter(({ missing }) => missing > 0)
  return { is: 'short', missing: short.map(({ sku, missing }) => ({ sku, quantity: missing })) }
}
