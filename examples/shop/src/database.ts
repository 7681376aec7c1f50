import { PrismaPg } from '@prisma/adapter-pg'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPrisma, type PrismaTransactionOf } from 'holdfast/drivers/prisma'
import { migrate } from 'holdfast/schema'
import { PrismaClient } from '../prisma/generated/client.ts'
import { settings } from './settings.ts'

export const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: settings.databaseUrl, max: 10 }),
  // Requests beyond the pool queue for a connection; Prisma's own limits for that are short.
  transactionOptions: { maxWait: 30_000, timeout: 30_000 },
})

const driver = fromPrisma(prisma)

/** Holdfast over the client the service has anyway. It opens no connection of its own. */
export const hf: Holdfast<PrismaTransactionOf<PrismaClient>> = createHoldfast(driver)

/** Installs the ledger's tables, or finds them installed. Any number of processes may call it. */
export async function installLedger(): Promise<void> {
  await migrate(driver)
}
