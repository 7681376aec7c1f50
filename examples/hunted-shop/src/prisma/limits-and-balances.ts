/** No more than so many, and money of customers, on Prisma. What is racy and what is safe is as in the other version. */
import type { Prisma, PrismaClient } from '../../prisma/generated/client.ts'
import { Refused } from '../refused.ts'
import type { Routes } from '../shop.ts'
import { retried, unlessTaken } from './errors.ts'

interface Withdrawal {
  readonly customer: number
  readonly amount: number
}

export function limitAndBalanceRoutes(prisma: PrismaClient): Routes {
  return {
    'POST /coupons/redeem': async ({ code }: { code: string }) => {
      const coupon = await prisma.coupon.findUnique({ where: { code } })
      if (!coupon || coupon.uses >= coupon.maxUses) throw new Refused(409, 'used up')
      await prisma.coupon.update({ where: { code }, data: { uses: { increment: 1 } } })
      return { redeemed: code }
    },
    'POST /gift-cards/redeem': async ({ code }: { code: string }) => {
      const { count } = await prisma.giftCard.updateMany({
        where: { code, uses: { lt: prisma.giftCard.fields.maxUses } },
        data: { uses: { increment: 1 } },
      })
      if (count === 0) throw new Refused(409, 'used up')
      return { redeemed: code }
    },
    'POST /shows/book': ({ show: id, guest }: { show: number; guest: string }) =>
      prisma.$transaction(async (tx) => {
        const show = await tx.show.findUnique({ where: { id }, include: { bookings: true } })
        const isGuest = show?.bookings.some((booking) => booking.guest === guest)
        if (!show || isGuest || show.bookings.length >= show.seats) throw new Refused(409, 'full')
        await tx.booking.create({ data: { showId: id, guest } })
        return { booked: id }
      }),
    'POST /teams/join': async ({ team: id, customer }: { team: number; customer: number }) => {
      const team = await prisma.team.findUnique({ where: { id } })
      if (!team || team.members >= team.most) throw new Refused(409, 'full')
      await unlessTaken(prisma.member.create({ data: { teamId: id, customerId: customer } }))
      await prisma.team.update({ where: { id }, data: { members: { increment: 1 } } })
      return { joined: id }
    },
    'POST /points/spend': ({
      customer: customerId,
      points,
    }: {
      customer: number
      points: number
    }) =>
      prisma.$transaction(async (tx) => {
        const { _sum } = await tx.point.aggregate({ where: { customerId }, _sum: { points: true } })
        if ((_sum.points ?? 0) < points) throw new Refused(409, 'not enough')
        await tx.point.create({ data: { customerId, points: -points } })
        return { spent: points }
      }),
    'POST /stock/take': async ({ sku, qty }: { sku: string; qty: number }) => {
      const { count } = await prisma.stock.updateMany({
        where: { sku, qty: { gte: qty } },
        data: { qty: { decrement: qty } },
      })
      if (count === 0) throw new Refused(409, 'sold out')
      return { sku, qty }
    },
    'POST /wallet/withdraw': ({ customer: customerId, amount }: Withdrawal) =>
      prisma.$transaction(async (tx) => {
        const wallet = await tx.wallet.findUnique({ where: { customerId } })
        if (!wallet || wallet.balance < amount) throw new Refused(409, 'not enough')
        const balance = wallet.balance - amount
        await tx.wallet.update({ where: { customerId }, data: { balance } })
        return { withdrawn: amount }
      }),
    'POST /purse/withdraw': ({ customer: customerId, amount }: Withdrawal) =>
      prisma.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 AS found FROM purses WHERE customer_id = ${customerId} FOR UPDATE`
        const purse = await tx.purse.findUnique({ where: { customerId } })
        if (!purse || purse.balance < amount) throw new Refused(409, 'not enough')
        const balance = purse.balance - amount
        await tx.purse.update({ where: { customerId }, data: { balance } })
        return { withdrawn: amount }
      }),
    'POST /profile/tag': async ({ customer: id, tag }: { customer: number; tag: string }) => {
      const customer = await prisma.customer.findUnique({ where: { id } })
      if (!customer) throw new Refused(404, 'unknown')
      const tags = [...(customer.tags as Prisma.JsonArray), tag]
      await prisma.customer.update({ where: { id }, data: { tags } })
      return { tagged: id }
    },
    'POST /deposits/transfer': (order: { from: number; to: number; amount: number }) =>
      retried(() =>
        prisma.$transaction(
          async (tx) => {
            const mine = await tx.deposit.findUnique({ where: { customerId: order.from } })
            if (!mine || mine.balance < order.amount) throw new Refused(409, 'not enough')
            const theirs = await tx.deposit.findUniqueOrThrow({ where: { customerId: order.to } })
            await tx.deposit.update({
              where: { customerId: order.from },
              data: { balance: mine.balance - order.amount },
            })
            await tx.deposit.update({
              where: { customerId: order.to },
              data: { balance: theirs.balance + order.amount },
            })
            return { moved: order.amount }
          },
          { isolationLevel: 'Serializable' },
        ),
      ),
  }
}
