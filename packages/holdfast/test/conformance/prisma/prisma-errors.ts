import { deferred, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { sqlStateOf } from '../../../src/core/sql-state.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import type { PrismaHarness } from './prisma-harness.ts'
import { pidOf, rejection, type Setting, terminate } from '../suite/setting.ts'
import type { Prisma } from './generated/client.ts'

type Tx = Prisma.TransactionClient
type Found = readonly [name: string, code: string | undefined, state: string | undefined]

/** Prisma wraps the same database error differently for model queries, raw queries and COMMIT. */
export function prismaErrors(at: Setting<Tx, PrismaHarness>): void {
  const found = (error: Error & { code?: string }): Found => [
    error.name,
    error.code,
    sqlStateOf(error),
  ]
  const touch = async (tx: Tx, id: string): Promise<unknown> =>
    await tx.account.update({ where: { id }, data: { balance: { increment: 1 } } })
  const touchRaw = async (tx: Tx, id: string): Promise<unknown> =>
    await tx.$executeRaw`UPDATE account SET balance = balance + 1 WHERE id = ${id}`
  const known = 'PrismaClientKnownRequestError'

  async function errorIn(
    body: (tx: Tx) => Promise<unknown>,
    isolationLevel: Prisma.TransactionIsolationLevel = 'ReadCommitted',
  ): Promise<Found> {
    return found(await rejection(at.harness.prisma.$transaction(body, { isolationLevel })))
  }

  describe('the SQLSTATE in errors of Prisma', () => {
    describe.each([
      ['a model query', touch, 'P2034', 'P2039'],
      ['a raw query', touchRaw, 'P2010', 'P2010'],
    ] as const)('at %s', (_, write, conflictCode, otherCode) => {
      test('40001', async () => {
        const id = await at.account(0)
        const error = await errorIn(async (tx) => {
          await tx.account.findMany()
          await at.observer.query('UPDATE account SET balance = 9 WHERE id = $1', [id])
          await write(tx, id)
        }, 'RepeatableRead')
        expect(error).toEqual([known, conflictCode, '40001'])
      })

      test('40P01', async () => {
        const [mine, theirs] = [await at.account(0), await at.account(0)]
        const rival = await at.rival()
        await rival.query("SET LOCAL deadlock_timeout = '60s'")
        await rival.query('UPDATE account SET balance = 9 WHERE id = $1', [theirs])
        const { rows } = await rival.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
        const error = await errorIn(async (tx) => {
          await tx.$executeRaw`SET LOCAL deadlock_timeout = '10ms'`
          await write(tx, mine)
          void rival.query('UPDATE account SET balance = 9 WHERE id = $1', [mine])
          await waitUntilBlocked(at.observer, rows[0]?.pid as number)
          await write(tx, theirs)
        })
        expect(error).toEqual([known, conflictCode, '40P01'])
      })

      test('55P03', async () => {
        const id = await at.account(0)
        await (await at.rival()).query('UPDATE account SET balance = 9 WHERE id = $1', [id])
        const error = await errorIn(async (tx) => {
          await tx.$executeRaw`SET LOCAL lock_timeout = '20ms'`
          await write(tx, id)
        })
        expect(error).toEqual([known, otherCode, '55P03'])
      })

      test('57014', async () => {
        const id = await at.account(0)
        await (await at.rival()).query('UPDATE account SET balance = 9 WHERE id = $1', [id])
        const error = await errorIn(async (tx) => {
          await tx.$executeRaw`SET LOCAL statement_timeout = '20ms'`
          await write(tx, id)
        })
        expect(error).toEqual([known, otherCode, '57014'])
      })

      test('25P02', async () => {
        const id = await at.account(0)
        const error = await errorIn(async (tx) => {
          await tx.$queryRaw`SELECT 1 / 0 AS infinity`.catch(() => undefined)
          await write(tx, id)
        })
        expect(error).toEqual([known, otherCode, '25P02'])
      })

      test('57P01', async () => {
        const id = await at.account(0)
        await (await at.rival()).query('UPDATE account SET balance = 9 WHERE id = $1', [id])
        const other = await at.another()
        const pid = deferred<number>()
        const outcome = rejection(
          other.prisma.$transaction(async (tx) => {
            pid.resolve(await pidOf(other, tx))
            await write(tx, id)
          }),
        )
        await waitUntilBlocked(at.observer, await pid.promise)
        await terminate(at.observer, await pid.promise)
        expect(found(await outcome)).toEqual([known, otherCode, '57P01'])
      })
    })

    test('23505 at a model query and at a raw query', async () => {
      const id = await at.account(0)
      const data = { id, balance: 0 }
      expect(await errorIn(async (tx) => await tx.account.create({ data }))).toEqual([
        known,
        'P2002',
        '23505',
      ])
      expect(
        await errorIn(async (tx) => await tx.$executeRaw`INSERT INTO account VALUES (${id}, 0)`),
      ).toEqual([known, 'P2010', '23505'])
    })

    test('at COMMIT the error is of no Prisma class', async () => {
      const late = await errorIn(
        async (tx) => await tx.$executeRaw`INSERT INTO late VALUES ('p'), ('p')`,
      )
      expect(late).toEqual(['DriverAdapterError', undefined, '23505'])
    })
  })

  test('a statement sent together with one that fails is an error, not an empty answer', async () => {
    const { driver, prisma } = at.harness
    const transaction = prisma.$transaction(async (tx) => {
      const failing = tx.$queryRaw`SELECT 1 / 0 AS infinity`.catch(() => 'failed')
      const ours = rejection(
        Promise.resolve(driver.join(tx).query({ text: 'SELECT true AS there', values: [] })),
      )
      expect(await failing).toBe('failed')
      expect((await ours).code).toBe('TX_ROLLED_BACK')
      // Control: what Prisma itself says of the second statement.
      const [, second] = await Promise.allSettled([
        tx.$queryRaw`SELECT 1 / 0 AS infinity`,
        tx.$queryRaw`SELECT true AS there`,
      ])
      expect(second).toEqual({ status: 'fulfilled', value: undefined })
    })
    await transaction
    expect.assertions(3)
  })

  test('control: Prisma cannot read the result of a lock taken by hand', async () => {
    const error = await errorIn(async (tx) => await tx.$queryRaw`SELECT pg_advisory_xact_lock(1)`)
    expect(error).toEqual([known, 'P2010', undefined])
  })

  test('control: a statement that nobody awaits may not be run at all', async () => {
    const forgotten = deferred<unknown>()
    await at.harness.prisma.$transaction(async (tx) => {
      await tx.$queryRaw`SELECT 1 AS one`
      tx.$queryRaw`SELECT 1 AS one`.catch(forgotten.resolve)
    })
    expect(await forgotten.promise).toMatchObject({ code: 'P2028' })
  })

  test('an extended client: its transactions are known, and keep their extensions', async () => {
    const extended = at.harness.prisma.$extends({
      model: {
        account: {
          async rich(): Promise<string> {
            return await Promise.resolve('rich')
          },
        },
      },
    })
    const driver = fromPrisma(extended)
    const locks = createLocks(driver, { watch: false })
    const key = lockKey('extended', 1)
    await locks.guard(key, async (tx) => {
      expect(await tx.account.rich()).toBe('rich')
      await locks.assertHeld(tx, key)
    })
    await extended.$transaction(async (tx) => {
      expect(driver.join(tx).state()).toBe('open')
      await locks.acquire(tx, key)
    })
    expect.assertions(2)
  })

  test('T1: Prisma commits in the middle of a body, and that is told', async () => {
    const body = async (tx: Tx, own?: Error): Promise<void> => {
      await at.harness.run(tx, "INSERT INTO account VALUES ('too early', 1)")
      const outer = tx as unknown as { $transaction: Nested }
      // A nested transaction that fails in a nested one ends the outermost.
      await outer.$transaction(async (one) => {
        const failing = one.$transaction(async (two) => {
          await two.$queryRawUnsafe('SELECT 1 / 0').catch(() => undefined)
        })
        await failing.catch(() => undefined)
      })
      if (own !== undefined) throw own
    }
    for (const own of [undefined, new Error('mine')]) {
      const error = await rejection(
        at.locks.guard(lockKey('early', 1), async (tx) => await body(tx, own)),
      )
      expect(error).toMatchObject({ code: 'TX_ENDED_INSIDE', details: { ended: 'committed' } })
      expect(await at.balance('too early')).toBe(1)
      await at.observer.query("DELETE FROM account WHERE id = 'too early'")
    }
  })
}

type Nested = (
  body: (inner: {
    $transaction: Nested
    $queryRawUnsafe(text: string): Promise<unknown>
  }) => Promise<void>,
) => Promise<void>
