/** Prisma on the shop's database. */
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client.ts'

export function openPrisma(url: string | undefined): PrismaClient {
  return new PrismaClient({
    adapter: new PrismaPg({ connectionString: url, max: 10 }),
    // In an order that a hunt tries, others may come first for longer than Prisma's five seconds.
    transactionOptions: { maxWait: 60_000, timeout: 60_000 },
  })
}
