import { PrismaPg } from '@prisma/adapter-pg'
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPrisma, type PrismaTransactionOf } from 'holdfast/drivers/prisma'
import { PrismaClient } from '../prisma/generated/client.ts'

// The race explorer makes transactions wait for each other: in tests nothing gives up early.
const isTest = process.env['NODE_ENV'] === 'test'

export const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString: process.env['DATABASE_URL'] }),
  transactionOptions: isTest ? { maxWait: 60_000, timeout: 60_000 } : { maxWait: 10_000 },
})

/** Holdfast over the client that is there anyway. It opens no connection of its own. */
export const hf: Holdfast<PrismaTransactionOf<PrismaClient>> = createHoldfast(fromPrisma(prisma), {
  wait: isTest ? 'inherit' : '10 s',
})
