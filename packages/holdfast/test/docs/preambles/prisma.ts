/** Blocks on Prisma: a client on the schema of examples/upload-quota, and a Holdfast on it. */
import { readFileSync } from 'node:fs'
import { withClient } from '@holdfast/testkit'
import { PrismaPg } from '@prisma/adapter-pg'
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { fromPrisma, type PrismaTransactionOf } from 'holdfast/drivers/prisma'
import { PrismaClient } from '../../../../../examples/upload-quota/prisma/generated/client.ts'

export { createHoldfast, isHoldfastError, lockKey, lockNamespace } from 'holdfast'
export { fromPrisma } from 'holdfast/drivers/prisma'
export { PrismaPg } from '@prisma/adapter-pg'
export { PrismaClient } from '../../../../../examples/upload-quota/prisma/generated/client.ts'

const url = process.env['DATABASE_URL'] as string
const schema = new URL('../../../../../examples/upload-quota/prisma/schema.sql', import.meta.url)
await withClient(url, async (client) => await client.query(readFileSync(schema, 'utf8')))

export const prisma: PrismaClient = new PrismaClient({
  adapter: new PrismaPg({ connectionString: url }),
})
export const hf: Holdfast<PrismaTransactionOf<PrismaClient>> = createHoldfast(fromPrisma(prisma))

export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)
export const imageId = 'image-1'
export const byteSize = 1_000_000
export const capBytes = 10_000_000

export async function close(): Promise<void> {
  await prisma.$disconnect()
}
