/** At most one, and one for each, on Prisma. What is racy and what is safe is as in the other version. */
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { Refused } from '../refused.ts'
import type { Routes } from '../shop.ts'
import { unlessTaken } from './errors.ts'

interface ByCustomer {
  readonly customer: number
}

export function onceAndClaimRoutes(prisma: PrismaClient): Routes {
  return {
    'POST /newsletter/join': async ({ email }: { email: string }) => {
      const known = await prisma.newsletter.findFirst({ where: { email } })
      if (known) throw new Refused(409, 'known')
      await prisma.newsletter.create({ data: { email } })
      return { joined: true }
    },
    'POST /accounts/register': async ({ email }: { email: string }) => {
      const known = await prisma.account.findUnique({ where: { email } })
      if (known) throw new Refused(409, 'taken')
      await unlessTaken(prisma.account.create({ data: { email } }))
      return { registered: true }
    },
    'POST /invoices/number': ({ customer: customerId }: ByCustomer) =>
      prisma.$transaction(async (tx) => {
        const { _max } = await tx.invoice.aggregate({ _max: { number: true } })
        const number = (_max.number ?? 0) + 1
        await tx.invoice.create({ data: { number, customerId } })
        return { number }
      }),
    'POST /statements/number': ({ customer: customerId }: ByCustomer) =>
      prisma.$transaction(async (tx) => {
        const { value: number } = await tx.counter.update({
          where: { name: 'statements' },
          data: { value: { increment: 1 } },
        })
        await tx.statement.create({ data: { number, customerId } })
        return { number }
      }),
    'POST /subscriptions/start': ({ customer: customerId }: ByCustomer) =>
      prisma.$transaction(async (tx) => {
        const known = await tx.subscription.findFirst({ where: { customerId, active: true } })
        if (known) throw new Refused(409, 'active already')
        await tx.subscription.create({ data: { customerId, active: true } })
        return { started: customerId }
      }),
    'POST /memberships/start': ({ customer: customerId }: ByCustomer) =>
      unlessTaken(
        prisma.$transaction(async (tx) => {
          const known = await tx.membership.findFirst({ where: { customerId, active: true } })
          if (known) throw new Refused(409, 'active already')
          await tx.membership.create({ data: { customerId, active: true } })
          return { started: customerId }
        }),
      ),
    'POST /stars': async ({ product, customer }: ByCustomer & { readonly product: number }) => {
      const data = { productId: product, customerId: customer }
      await prisma.star.createMany({ data, skipDuplicates: true })
      return { starred: product }
    },
    'POST /documents/edit': async ({ id, body }: { id: number; body: string }) => {
      const found = await prisma.document.findUnique({ where: { id } })
      if (!found) throw new Refused(404, 'unknown')
      const { count } = await prisma.document.updateMany({
        where: { id, version: found.version },
        data: { body, version: { increment: 1 } },
      })
      if (count === 0) throw new Refused(409, 'changed meanwhile')
      return { edited: id }
    },
    'POST /vouchers/claim': ({ guest: owner }: { guest: string }) =>
      prisma.$transaction(async (tx) => {
        const free = await tx.voucher.findFirst({ where: { owner: null }, orderBy: { id: 'asc' } })
        if (!free) throw new Refused(409, 'none left')
        await tx.voucher.update({ where: { id: free.id }, data: { owner } })
        return { voucher: free.id }
      }),
    'POST /drivers/off-call': ({ id }: { id: number }) =>
      prisma.$transaction(
        async (tx) => {
          const onCall = await tx.driver.count({ where: { onCall: true } })
          if (onCall < 2) throw new Refused(409, 'somebody has to stay')
          await tx.driver.update({ where: { id }, data: { onCall: false } })
          return { off: id }
        },
        { isolationLevel: 'RepeatableRead' },
      ),
  }
}
