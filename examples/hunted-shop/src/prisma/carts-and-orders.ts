/** Carts, orders and bills on Prisma. What is racy and what is safe is as in the other version. */
import type { PrismaClient } from '../../prisma/generated/client.ts'
import type { Charge } from '../orders.ts'
import { Refused } from '../refused.ts'
import type { Routes } from '../shop.ts'
import { unlessTaken } from './errors.ts'

interface ById {
  readonly id: number
}
interface Item extends ById {
  readonly price: number
}

export function cartAndOrderRoutes(prisma: PrismaClient, charge: Charge): Routes {
  const decide = async (id: number, status: string): Promise<unknown> => {
    const { count } = await prisma.return.updateMany({
      where: { id, status: 'open' },
      data: { status },
    })
    if (count === 0) throw new Refused(409, 'decided')
    return { [status]: id }
  }
  return {
    'POST /cart/add': async ({ id, price }: Item) => {
      await prisma.cartItem.create({ data: { cartId: id, price } })
      return { added: price }
    },
    'POST /cart/checkout': ({ id: cartId }: ById) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS found FROM carts WHERE id = ${cartId} FOR NO KEY UPDATE`
        const { _sum } = await tx.cartItem.aggregate({ where: { cartId }, _sum: { price: true } })
        const total = _sum.price ?? 0
        if (total === 0) throw new Refused(409, 'empty')
        await tx.cartOrder.create({ data: { cartId, total } })
        await tx.cartItem.deleteMany({ where: { cartId } })
        return { total }
      }),
    'POST /basket/add': ({ id: basketId, price }: Item) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS found FROM baskets WHERE id = ${basketId} FOR UPDATE`
        await tx.basketItem.create({ data: { basketId, price } })
        return { added: price }
      }),
    'POST /basket/checkout': ({ id: basketId }: ById) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS found FROM baskets WHERE id = ${basketId} FOR UPDATE`
        const { _sum } = await tx.basketItem.aggregate({
          where: { basketId },
          _sum: { price: true },
        })
        const total = _sum.price ?? 0
        if (total === 0) throw new Refused(409, 'empty')
        await tx.basketOrder.create({ data: { basketId, total } })
        await tx.basketItem.deleteMany({ where: { basketId } })
        return { total }
      }),
    'POST /orders/pay': async ({ id }: ById) => {
      const order = await prisma.order.findUnique({ where: { id } })
      if (order?.status !== 'open') throw new Refused(409, 'not open')
      await charge(order.total)
      await prisma.$transaction([
        prisma.payment.create({ data: { orderId: id, amount: order.total } }),
        prisma.order.update({ where: { id }, data: { status: 'paid' } }),
      ])
      return { paid: id }
    },
    'POST /bills/pay': ({ id }: ById) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS found FROM bills WHERE id = ${id} FOR UPDATE`
        const bill = await tx.bill.findUnique({ where: { id } })
        if (bill?.status !== 'open') throw new Refused(409, 'not open')
        await charge(bill.total)
        await tx.receipt.create({ data: { billId: id, amount: bill.total } })
        await tx.bill.update({ where: { id }, data: { status: 'paid' } })
        return { paid: id }
      }),
    'POST /orders/ship': async ({ id }: ById) => {
      const order = await prisma.order.findUnique({ where: { id } })
      if (order?.status !== 'paid') throw new Refused(409, 'not paid')
      await unlessTaken(prisma.shipment.create({ data: { orderId: id } }))
      return { shipped: id }
    },
    'POST /orders/cancel': async ({ id }: ById) => {
      const { count } = await prisma.order.updateMany({
        where: { id, status: 'paid', shipment: null },
        data: { status: 'cancelled' },
      })
      if (count === 0) throw new Refused(409, 'not to be cancelled')
      return { cancelled: id }
    },
    'POST /returns/approve': ({ id }: ById) => decide(id, 'approved'),
    'POST /returns/reject': ({ id }: ById) => decide(id, 'rejected'),
  }
}
