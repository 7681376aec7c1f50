import { deferred, waitUntil } from '@holdfast/testkit'
import { PrismaPg } from '@prisma/adapter-pg'
import { describe, expect, test } from 'vitest'
import { legacyKey } from '../../../src/core/locks/lock-key.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import type { PrismaHarness } from './prisma-harness.ts'
import { pidOf, rejection, type Setting } from '../suite/setting.ts'
import { type Prisma, PrismaClient } from './generated/client.ts'

type Tx = Prisma.TransactionClient

/** Prisma gives a transaction up by a timer of its own; lock waits must end before it. */
export function prismaTimeouts(at: Setting<Tx, PrismaHarness>): void {
  const settings = { scopes: [] }
  const key = legacyKey.bigint(60)
  const timeoutMs = 1_500

  async function takenByRival(): Promise<void> {
    await (await at.rival()).query('SELECT pg_advisory_xact_lock(60)')
  }

  /** Until Prisma has rolled the transaction of that backend back. */
  async function givenUp(pid: number): Promise<void> {
    await waitUntil('Prisma has given up', async () => {
      const { rows } = await at.observer.query(
        'SELECT FROM pg_stat_activity WHERE pid = $1 AND xact_start IS NULL',
        [pid],
      )
      return rows.length > 0 || undefined
    })
  }

  describe("Prisma's transaction timer", () => {
    test.each([
      ['runs a statement', async (tx: Tx) => await tx.$queryRaw`SELECT 1 AS one`],
      ['returns', async () => undefined],
    ])('runs out, then the body %s: TX_CLIENT_TIMEOUT', async (_, afterwards) => {
      const id = await at.account(0)
      const driver = fromPrisma(at.harness.prisma, { transactionTimeoutMs: 100 })
      const error = await rejection(
        driver.transaction(async ({ native }) => {
          await native.account.update({ where: { id }, data: { balance: 1 } })
          await givenUp(await pidOf(at.harness, native))
          await afterwards(native)
        }, settings),
      )
      expect(error.code).toBe('TX_CLIENT_TIMEOUT')
      expect(error.cause).toMatchObject({ code: 'P2028' })
      expect(await at.balance(id)).toBe(0)
    })

    test('a deadline is its timeout', async () => {
      const { driver } = at.harness
      const limited = { ...settings, timeoutMs: 100 }
      const error = await rejection(
        driver.transaction(async ({ native }) => {
          await givenUp(await pidOf(at.harness, native))
        }, limited),
      )
      expect(error.code).toBe('TX_CLIENT_TIMEOUT')
    })

    test('T12: no connection within maxWait is a starved pool, and the body never ran', async () => {
      const adapter = new PrismaPg({ connectionString: at.url, max: 1 })
      const small = new PrismaClient({ adapter, transactionOptions: { maxWait: 50 } })
      const inside = deferred()
      const done = deferred()
      const first = small.$transaction(async () => {
        inside.resolve()
        await done.promise
      })
      await inside.promise
      let ran = false
      const error = await rejection(
        fromPrisma(small).transaction(async () => {
          ran = true
        }, settings),
      )
      done.resolve()
      await first
      await small.$disconnect()
      expect(error).toMatchObject({ code: 'POOL_STARVED', cause: { code: 'P2028' } })
      expect(ran).toBe(false)
    })
  })

  describe('a lock wait of a minute', () => {
    test('in a guard ends before the timer', async () => {
      await takenByRival()
      const driver = fromPrisma(at.harness.prisma, { transactionTimeoutMs: timeoutMs })
      const began = performance.now()
      const guard = createLocks(driver, { watch: false }).guard(key, async () => undefined, {
        waitMs: 60_000,
      })
      expect((await rejection(guard)).code).toBe('LOCK_TIMEOUT')
      expect(performance.now() - began).toBeLessThan(timeoutMs)
    })

    test("in the caller's transaction ends before the timer, which can go on", async () => {
      await takenByRival()
      const id = await at.account(0)
      const { prisma } = at.harness
      const driver = fromPrisma(prisma, { transactionTimeoutMs: timeoutMs })
      const locks = createLocks(driver, { watch: false })
      await prisma.$transaction(
        async (tx) => {
          const wait = locks.acquire(tx, key, { waitMs: 60_000, keepTransaction: true })
          expect((await rejection(wait)).code).toBe('LOCK_TIMEOUT')
          await tx.account.update({ where: { id }, data: { balance: 1 } })
        },
        { timeout: timeoutMs },
      )
      expect(await at.balance(id)).toBe(1)
    })

    test('control: without the cap the timer is first', async () => {
      await takenByRival()
      const wait = at.harness.prisma.$transaction(
        async (tx) => {
          await tx.$queryRaw`SELECT set_config('lock_timeout', '400ms', true) AS limit`
          await tx.$queryRaw`SELECT pg_advisory_xact_lock(60) IS NOT NULL AS taken`.catch(
            () => undefined,
          )
          await tx.$queryRaw`SELECT 1 AS one`
        },
        { timeout: 100 },
      )
      expect((await rejection(wait)).code).toBe('P2028')
    })
  })

  describe('the budget of a transaction', () => {
    const budgetOf = async (prisma: PrismaClient, ...rest: [] | [object]): Promise<unknown> => {
      const driver = fromPrisma(prisma, ...rest)
      return await driver.transaction(
        async ({ budgetMs }) => await Promise.resolve(budgetMs),
        settings,
      )
    }

    test('is what the timer leaves', async () => {
      const { prisma } = at.harness
      expect(await budgetOf(prisma)).toBe(4_750)
      expect(await budgetOf(prisma, { transactionTimeoutMs: 1_000 })).toBe(750)
      expect(await budgetOf(prisma, { transactionTimeoutMs: 300 })).toBe(150)
      await prisma.$transaction(async (tx) => {
        expect(fromPrisma(prisma).join(tx).budgetMs).toBe(4_750)
      })
    })

    test('follows what the client was constructed with, extended or not', async () => {
      const adapter = new PrismaPg({ connectionString: at.url, max: 1 })
      const prisma = new PrismaClient({ adapter, transactionOptions: { timeout: 9_000 } })
      expect(await budgetOf(prisma)).toBe(8_750)
      expect(await budgetOf(prisma.$extends({}) as unknown as PrismaClient)).toBe(8_750)
      await prisma.$disconnect()
    })

    test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('cannot be %d', (value) => {
      expect(() => fromPrisma(at.harness.prisma, { transactionTimeoutMs: value })).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
    })
  })
}
