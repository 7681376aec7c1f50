import { PrismaPg } from '@prisma/adapter-pg'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'
import { PrismaClient } from './prisma/generated/client.ts'

export function openPrisma(url: string): OpenClient {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }),
    // A schedule may hold a transaction for longer than the five seconds that Prisma allows.
    transactionOptions: { maxWait: 60_000, timeout: 60_000 },
  })
  return {
    run: {
      quota: (version) =>
        prisma.$transaction(async (tx) => {
          if (version === 'fixed') await tx.$executeRawUnsafe(lockUser)
          const { used } = await tx.usage.findUniqueOrThrow({ where: { userId: 'ann' } })
          if (used + 1 > limit) return 'refused'
          await tx.usage.update({ where: { userId: 'ann' }, data: { used: { increment: 1 } } })
          return 'accepted'
        }),
      upload: (version) =>
        prisma.$transaction(async (tx) => {
          if (version === 'fixed') await tx.$executeRawUnsafe(lockUser)
          const { _sum } = await tx.userImage.aggregate({
            where: { userId: 'ann' },
            _sum: { byteSize: true },
          })
          if ((_sum.byteSize ?? 0) + incomingBytes > cap) return 'refused'
          await tx.userImage.create({ data: { userId: 'ann', byteSize: incomingBytes } })
          return 'accepted'
        }),
      stock: (version) =>
        prisma.$transaction(async (tx) => {
          if (version === 'fixed') {
            await tx.$executeRaw`SELECT id FROM variant WHERE id = 1 FOR UPDATE`
          }
          const { stock } = await tx.variant.findUniqueOrThrow({ where: { id: 1 } })
          if (stock < 1) return 'sold out'
          await tx.variant.update({ where: { id: 1 }, data: { stock: stock - 1 } })
          await tx.stockMovement.create({ data: { variantId: 1, change: -1 } })
          return 'sold'
        }),
      webhook: (version) =>
        prisma.$transaction(async (tx) => {
          if (version === 'fixed') {
            const { count } = await tx.uniqueWebhook.createMany({
              data: [{ externalId: event }],
              skipDuplicates: true,
            })
            return count === 1 ? 'handled' : 'seen before'
          }
          const seen = await tx.webhook.findFirst({ where: { externalId: event } })
          if (seen !== null) return 'seen before'
          await tx.webhook.create({ data: { externalId: event } })
          return 'handled'
        }),
      job: (version, who) =>
        prisma.$transaction(async (tx) => {
          const [job] =
            version === 'fixed'
              ? await tx.$queryRaw<{ id: number }[]>`
                  SELECT id FROM job WHERE worker IS NULL ORDER BY id LIMIT 1
                  FOR UPDATE SKIP LOCKED`
              : await tx.job.findMany({ where: { worker: null }, orderBy: { id: 'asc' }, take: 1 })
          if (job === undefined) return 'nothing to do'
          await tx.job.update({ where: { id: job.id }, data: { worker: who } })
          return `job ${job.id}`
        }),
    },
    [Symbol.asyncDispose]: () => prisma.$disconnect(),
  }
}
