import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../race/prisma/generated/client.ts'
import type { OpenDb } from './clients.ts'
import type { Ask, Row } from './model.ts'

const levels = {
  'READ COMMITTED': 'ReadCommitted',
  'REPEATABLE READ': 'RepeatableRead',
  SERIALIZABLE: 'Serializable',
} as const

export async function openPrisma(url: string): Promise<OpenDb> {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }),
    // A transaction waits at the gate for as long as the explorer lets others go first.
    transactionOptions: { maxWait: 60_000, timeout: 60_000 },
  })
  await prisma.$connect()
  return {
    ask: (text, ...values) => prisma.$queryRawUnsafe<Row[]>(text, ...values),
    transaction: (body, isolation) =>
      prisma.$transaction((tx) => {
        const ask: Ask = (text, ...values) => tx.$queryRawUnsafe<Row[]>(text, ...values)
        return body(ask, ask)
      }, isolation && { isolationLevel: levels[isolation] }),
    end: () => prisma.$disconnect(),
  }
}
