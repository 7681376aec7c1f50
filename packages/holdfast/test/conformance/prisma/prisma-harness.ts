import { PrismaPg } from '@prisma/adapter-pg'
import type { Isolation, Row } from '../../../src/core/driver.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { type Prisma, PrismaClient } from './generated/client.ts'
import type { Harness } from '../suite/harness.ts'

type Tx = Prisma.TransactionClient

interface PrismaError {
  readonly meta: {
    readonly driverAdapterError: { readonly cause: { readonly originalCode: string } }
  }
}

const levels = {
  'read committed': 'ReadCommitted',
  'repeatable read': 'RepeatableRead',
  serializable: 'Serializable',
} as const

/** What the common suite needs, and the client itself for what only Prisma has. */
export interface PrismaHarness extends Harness<Tx> {
  readonly prisma: PrismaClient
}

/** Prisma on adapter-pg. */
export async function openPrisma(url: string): Promise<PrismaHarness> {
  const adapter = new PrismaPg({ connectionString: url, max: 6 })
  const prisma = new PrismaClient({ adapter })
  const extended = prisma.$extends({ client: { hello: () => 'hello' } })
  return {
    prisma,
    driver: fromPrisma(prisma),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      roundTrips: { guard: 4, acquire: 1 },
    },
    sqlStateAt: (error: PrismaError) => error.meta.driverAdapterError.cause.originalCode,
    driverOn: (tx) => fromPrisma(tx),
    run: async (handle, text) => await handle.$queryRawUnsafe<Row[]>(text),
    unsent: (handle, text) => handle.$executeRawUnsafe(text),
    own: async <T>(body: (tx: Tx) => Promise<T>, isolation?: Isolation) =>
      await prisma.$transaction(
        body,
        isolation === undefined ? {} : { isolationLevel: levels[isolation] },
      ),
    savepoint: async (tx, body) => await tx.$transaction(body),
    lookAlikes: {
      'the root client': async (use) => await use(prisma),
      'an extended root client': async (use) => await use(extended as unknown as Tx),
    },
    end: async () => await prisma.$disconnect(),
  }
}
