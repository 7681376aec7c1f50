import { AsyncLocalStorage } from 'node:async_hooks'
import type pg from 'pg'
import { QueryTypes, Sequelize, type Transaction } from 'sequelize'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Isolation, Row } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { fromSequelize } from '../../src/drivers/sequelize.ts'
import { createHoldfast } from '../../src/index.ts'
import { createTransactions } from '../../src/tx/index.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { OpenPortal } from '../support/open-portal.ts'
import type { Harness } from './suite/harness.ts'
import { rejection } from './suite/setting.ts'

/** What the common suite needs, and the client itself for what only Sequelize has. */
interface SequelizeHarness extends Harness<Transaction> {
  readonly sequelize: Sequelize
}

type Levels = Transaction.ISOLATION_LEVELS

async function open(url: string): Promise<SequelizeHarness> {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: 6 } })
  // The first connection takes more than others: Sequelize asks for types.
  await sequelize.authenticate()
  return {
    sequelize,
    driver: fromSequelize(sequelize),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      endedWords: /^commit has been called on this transaction/,
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { original: { code: string } }) => error.original.code,
    run: async (transaction, text) =>
      await sequelize.query<Row>(text, { transaction, type: QueryTypes.SELECT }),
    own: async <T>(body: (tx: Transaction) => Promise<T>, isolation?: Isolation) =>
      isolation === undefined
        ? await sequelize.transaction(body)
        : await sequelize.transaction({ isolationLevel: isolation.toUpperCase() as Levels }, body),
    savepoint: async (transaction, body) => await sequelize.transaction({ transaction }, body),
    async leaveOpen(tx) {
      const { connection } = tx as unknown as { connection: pg.PoolClient }
      await connection.query(new OpenPortal()).read()
    },
    // Nothing else has the calls of a transaction.
    lookAlikes: {},
    end: async () => await sequelize.close(),
  }
}

const at = exerciseDriver('Sequelize', open, [])

describe('only Sequelize', () => {
  const key = lockKey('sequelize', 1)
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`

  test('a transaction without a callback takes locks, and none after its end', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const transaction = await at.harness.sequelize.transaction()
      expect(at.harness.driver.join(transaction).state()).toBe('open')
      await at.locks.acquire(transaction, key)
      await at.locks.assertHeld(transaction, key)
      await transaction[end]()
      // Sequelize leaves the connection there, and it is somebody else's by now.
      expect(at.harness.driver.join(transaction).state()).toBe('none')
      const late = at.locks.acquire(transaction, key)
      expect((await rejection(late)).code).toBe('LOCK_OUTSIDE_TRANSACTION')
    }
  })

  // Sequelize would take the transaction for over, and close or give back its connection.
  test.each(['commit', 'rollback'] as const)(
    'transaction.%s() in the body is refused, and nothing is saved',
    async (end) => {
      const heard: (string | undefined)[] = []
      const running = createTransactions(at.harness.driver).run(async (transaction) => {
        await at.harness.run(transaction, insert(`by ${end}`))
        heard.push((await rejection(transaction[end]())).code)
        await at.harness.run(transaction, insert(`after ${end}`))
      })
      expect((await rejection(running)).code).toBe('TX_ENDED_INSIDE')
      expect(heard).toEqual(['TX_ENDED_INSIDE'])
      expect([await at.balance(`by ${end}`), await at.balance(`after ${end}`)]).toEqual([
        undefined,
        undefined,
      ])
    },
  )

  // Sequelize notes the end before it sends it, and would never roll back.
  test.each(['commitTransaction', 'rollbackTransaction'] as const)(
    'queryInterface.%s() in the body is refused, and leaves no lock behind',
    async (end) => {
      const { sequelize } = at.harness
      const calls = sequelize.getQueryInterface() as unknown as Record<
        typeof end,
        (tx: Transaction, options: object) => Promise<void>
      >
      const running = at.locks.guard(key, async (transaction) => {
        await at.harness.run(transaction, insert(`by ${end}`))
        await calls[end](transaction, {})
      })
      const error = await rejection(running)
      expect(error).toMatchObject({ code: 'TX_ENDED_INSIDE', details: { ended: 'refused' } })
      expect(await at.balance(`by ${end}`)).toBeUndefined()
      await at.locks.guard(key, async () => undefined, { wait: 'nowait' })
    },
  )

  // Sequelize's own way to give the connection back; its types do not show it.
  test.each(['cleanup', 'forceCleanup'] as const)(
    'transaction.%s() in the body is refused: the lock is kept, and nothing is saved',
    async (way) => {
      let held: number | undefined
      const running = at.locks.guard(key, async (transaction) => {
        await at.harness.run(transaction, insert(`by ${way}`))
        const inside = transaction as unknown as Record<typeof way, () => unknown>
        try {
          await inside[way]()
        } catch {
          // Passed over, as a helper might.
        }
        const { rows } = await at.observer.query(
          `SELECT FROM pg_locks WHERE locktype = 'advisory' AND database =
           (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
        held = rows.length
      })
      const error = await rejection(running)
      expect(error).toMatchObject({ code: 'TX_ENDED_INSIDE', details: { ended: 'refused' } })
      expect(held).toBe(1)
      expect(await at.balance(`by ${way}`)).toBeUndefined()
      await at.locks.guard(key, async () => undefined, { wait: 'nowait' })
    },
  )

  test('control: Sequelize runs afterCommit also where COMMIT has failed', async () => {
    const { sequelize } = at.harness
    let told = 0
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const failing = sequelize.transaction(async (transaction) => {
      transaction.afterCommit(() => {
        told += 1
      })
      await at.harness.run(transaction, "INSERT INTO late VALUES ('a'), ('a')")
    })
    await rejection(failing)
    expect(told).toBe(1)
  })

  test('with CLS: the body needs not pass its transaction, and ours stay outside of it', async () => {
    const store = new AsyncLocalStorage<Map<string, unknown>>()
    // What the packages for it offer.
    Sequelize.useCLS({
      bind: () => undefined,
      get: (name: string) => store.getStore()?.get(name),
      set: (name: string, value: unknown) => store.getStore()?.set(name, value),
      run: (run: (context: unknown) => unknown) => store.run(new Map(), () => run(undefined)),
    } as object)
    onTestFinished(() => {
      ;(Sequelize as unknown as { _cls?: unknown })._cls = undefined
    })
    const { sequelize, driver } = at.harness
    await createTransactions(driver).run(async () => {
      await sequelize.query(insert('by cls'))
      expect(await at.balance('by cls')).toBeUndefined()
      const [row] = await driver.alone.query({
        text: "SELECT count(*)::text AS seen FROM account WHERE id = 'by cls'",
        values: [],
      })
      expect(row?.['seen']).toBe('0')
    })
    expect(await at.balance('by cls')).toBe(1)
  })

  test('a pool without a free connection: POOL_STARVED', async () => {
    const sequelize = new Sequelize(at.url, { logging: false, pool: { max: 1, acquire: 100 } })
    await sequelize.authenticate()
    const { transaction } = fromSequelize(sequelize)
    const starved = transaction(
      async () => await rejection(transaction(async () => undefined, { scopes: [] })),
      { scopes: [] },
    )
    expect((await starved).code).toBe('POOL_STARVED')
    await sequelize.close()
  })

  test('a body that forgets its transaction is told', async () => {
    const { sequelize } = await at.another()
    const hf = createHoldfast(fromSequelize(sequelize), { tx: { rootClient: 'throw' } })
    const used = hf.transaction(async () => await sequelize.query('SELECT 1'))
    expect((await rejection(used)).code).toBe('TX_ROOT_CLIENT')
  })

  test.each([
    ['another dialect', { getDialect: () => 'mysql', connectionManager: { getConnection() {} } }],
    ['Sequelize 7', { dialect: { name: 'postgres' }, pool: {} }],
    ['nothing of the kind', {}],
  ])('refuses %s', (_, given) => {
    expect(() => fromSequelize(given as never)).toThrow('Sequelize 6 with dialect')
  })
})
