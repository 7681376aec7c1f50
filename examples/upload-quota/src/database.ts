import { PrismaPg } from '@prisma/adapter-pg'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPrisma, type PrismaTransactionOf } from 'holdfast/drivers/prisma'
import { PrismaClient } from '../prisma/generated/client.ts'
import { settings } from './settings.ts'

export const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: settings.databaseUrl, max: 10 }),
  // Requests beyond the pool queue for a connection; Prisma's own limit for that is short.
  transactionOptions: { maxWait: 5_000 },
})

/** Holdfast over the client the service has anyway. It opens no connection of its own. */
export const hf: Holdfast<PrismaTransactionOf<PrismaClient>> = createHoldfast(fromPrisma(prisma), {
  wait: settings.lockWaitMs,
})
