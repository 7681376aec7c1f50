/** The shop as it is often written: look, check, write, all of it in transactions. */
import { prisma } from './database.ts'
import type { Delivery, Line, NewOrder, NewReturn, Outcome } from './shop.ts'

export async function deliver({ id, lines }: Delivery): Promise<Outcome> {
  await prisma.$transaction(async (tx) => {
    for (const { sku, quantity } of lines) {
      await tx.variant.upsert({
        where: { sku },
        create: { sku, stock: quantity },
        update: { stock: { increment: quantity } },
      })
      await tx.stockMovement.create({ data: { sku, quantity, source: 'delivery', externalId: id } })
    }
  })
  return { is: 'done' }
}

// #region order
export async function takeOrder({ id, source, lines }: NewOrder): Promise<Outcome> {
  return prisma.$transaction(async (tx) => {
    const known = await tx.order.findFirst({ where: { externalId: id } })
    if (known !== null) return { is: 'repeated' }
    const missing: Line[] = []
    for (const { sku, quantity } of lines) {
      const { stock } = (await tx.variant.findUnique({ where: { sku } })) ?? { stock: 0 }
      if (stock < quantity) missing.push({ sku, quantity: quantity - stock })
    }
    if (missing.length > 0) return { is: 'short', missing }
    for (const { sku, quantity } of lines) {
      await tx.variant.update({ where: { sku }, data: { stock: { decrement: quantity } } })
      await tx.stockMovement.create({ data: { sku, quantity: -quantity, source, externalId: id } })
    }
    await tx.order.create({ data: { externalId: id, source, lines: { create: [...lines] } } })
    return { is: 'done' }
  })
}
// #endregion

export async function takeReturn({ id, orderId, lines }: NewReturn): Promise<Outcome> {
  return prisma.$transaction(async (tx) => {
    const known = await tx.returnLine.findFirst({ where: { externalId: id } })
    if (known !== null) return { is: 'repeated' }
    const order = await tx.order.findFirst({
      where: { externalId: orderId },
      include: { lines: true, returns: true },
    })
    if (order === null) return { is: 'refused', reason: 'not-found' }
    const sum = (of: readonly Line[], sku: string): number =>
      of.reduce((total, line) => total + (line.sku === sku ? line.quantity : 0), 0)
    for (const { sku, quantity } of lines) {
      const left = sum(order.lines, sku) - sum(order.returns, sku)
      if (left < quantity) return { is: 'refused', reason: 'over-refund' }
    }
    for (const { sku, quantity } of lines) {
      await tx.variant.update({ where: { sku }, data: { stock: { increment: quantity } } })
      await tx.stockMovement.create({ data: { sku, quantity, source: 'return', externalId: id } })
      await tx.returnLine.create({ data: { externalId: id, orderId: order.id, sku, quantity } })
    }
    return { is: 'done' }
  })
}
