import 'reflect-metadata'
import { deferred } from '@holdfast/testkit'
import type { EventEmitter } from 'node:events'
import type pg from 'pg'
import {
  DataSource,
  type EntityManager,
  type EntitySubscriberInterface,
  EventSubscriber,
  type QueryRunner,
} from 'typeorm'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Isolation } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { createTransactions } from '../../src/tx/index.ts'
import { fromTypeOrm } from '../../src/drivers/typeorm.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { breakableWire } from '../support/breakable-wire.ts'
import { OpenPortal } from '../support/open-portal.ts'
import type { Harness } from './suite/harness.ts'
import { pidOf, portOf, rejection, terminate, watchSockets } from './suite/setting.ts'

/** What the common suite needs, and the client itself for what only TypeORM has. */
interface TypeOrmHarness extends Harness<EntityManager> {
  readonly dataSource: DataSource
}

async function open(url: string): Promise<TypeOrmHarness> {
  const dataSource = new DataSource({ type: 'postgres', url, poolSize: 6, logging: false })
  await dataSource.initialize()
  return {
    dataSource,
    driver: fromTypeOrm(dataSource),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { driverError: { code: string } }) => error.driverError.code,
    driverOn: (tx) => fromTypeOrm(tx),
    run: async (handle, text) => await handle.query(text),
    own: async <T>(body: (tx: EntityManager) => Promise<T>, isolation?: Isolation) =>
      isolation === undefined
        ? await dataSource.transaction(body)
        : await dataSource.transaction(isolation.toUpperCase() as Uppercase<Isolation>, body),
    savepoint: async (tx, body) => await tx.transaction(body),
    async leaveOpen(tx) {
      // What `queryRunner.stream()` does.
      const client = (await tx.queryRunner?.connect()) as pg.PoolClient
      await client.query(new OpenPortal()).read()
    },
    lookAlikes: {
      'the manager of the data source': async (use) => await use(dataSource.manager),
      'the data source': async (use) => await use(dataSource as unknown as EntityManager),
      'the manager of a query runner without a transaction': async (use) => {
        const runner = dataSource.createQueryRunner()
        try {
          await runner.connect()
          await use(runner.manager)
        } finally {
          await runner.release()
        }
      },
      'the manager of a query runner that has not connected': async (use) => {
        const runner = dataSource.createQueryRunner()
        try {
          await use(runner.manager)
        } finally {
          await runner.release()
        }
      },
    },
    end: async () => await dataSource.destroy(),
  }
}

const at = exerciseDriver('TypeORM', open, [
  'the manager of the data source',
  'the data source',
  'the manager of a query runner without a transaction',
  'the manager of a query runner that has not connected',
])

describe('only TypeORM', () => {
  const key = lockKey('typeorm', 1)

  test('a transaction started on a query runner takes locks', async () => {
    const runner = at.harness.dataSource.createQueryRunner()
    await runner.startTransaction()
    expect(at.harness.driver.join(runner.manager).state()).toBe('open')
    await at.locks.acquire(runner.manager, key)
    await at.locks.assertHeld(runner.manager, key)
    await runner.commitTransaction()
    expect(at.harness.driver.join(runner.manager).state()).toBe('none')
    await runner.release()
    expect(at.harness.driver.join(runner.manager).state()).toBe('none')
  })

  // TypeORM's own ways to give the connection back; its types do not show them.
  test.each(['releasePostgresConnection', 'releaseCallback'] as const)(
    'queryRunner.%s() in the body is refused: the lock is kept, and nothing is saved',
    async (way) => {
      let held: number | undefined
      const running = at.locks.guard(key, async (manager) => {
        await manager.query(`INSERT INTO account VALUES ('by ${way}', 1)`)
        const runner = manager.queryRunner as unknown as Record<typeof way, () => unknown>
        try {
          await runner[way]()
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

  test('lost after the body and before COMMIT was sent: CONNECTION_LOST', async () => {
    const sockets = watchSockets()
    class Saboteur implements EntitySubscriberInterface {
      async beforeTransactionCommit({ queryRunner }: { queryRunner: QueryRunner }): Promise<void> {
        const pid = await pidOf(at.harness, queryRunner.manager)
        const port = await portOf(at.observer, pid)
        await terminate(at.observer, pid)
        await sockets.closed(port)
      }
    }
    EventSubscriber()(Saboteur)
    const dataSource = new DataSource({ type: 'postgres', url: at.url, subscribers: [Saboteur] })
    await dataSource.initialize()
    const lost = fromTypeOrm(dataSource).transaction(
      async (transaction) => await transaction.query({ text: 'SELECT 1 AS one', values: [] }),
      { scopes: [] },
    )
    expect((await rejection(lost)).code).toBe('CONNECTION_LOST')
    await dataSource.destroy()
  })

  test('T1: an error after COMMIT is no failed transaction, and nothing is run again', async () => {
    class Late implements EntitySubscriberInterface {
      async afterTransactionCommit(): Promise<void> {
        await Promise.reject(Object.assign(new Error('of the subscriber'), { code: '40001' }))
      }
    }
    EventSubscriber()(Late)
    const dataSource = new DataSource({ type: 'postgres', url: at.url, subscribers: [Late] })
    await dataSource.initialize()
    let runs = 0
    const paid = createTransactions(fromTypeOrm(dataSource)).run(async (manager) => {
      runs += 1
      await manager.query(`INSERT INTO account VALUES ('paid once ${runs}', 1)`)
    })
    expect((await rejection(paid)).code).toBe('COMMIT_UNKNOWN')
    expect(runs).toBe(1)
    expect(await at.balance('paid once 1')).toBe(1)
    await dataSource.destroy()
  })

  test.each([
    // TypeORM rolls everything back where it cannot set its savepoint.
    ['and is told as failed', false, 'TX_ROLLED_BACK'],
    ['but not if the body has saved it from that', true, 'TX_ENDED_INSIDE'],
  ])('a nested transaction in one that has failed ends it, %s', async (_, saves, code) => {
    const transactions = createTransactions(at.harness.driver)
    const running = transactions.run(async (manager) => {
      await manager.query('SAVEPOINT mine')
      await manager.query('SELECT 1 / 0').catch(() => undefined)
      await manager.transaction(async () => {}).catch(() => undefined)
      if (saves) await manager.query('ROLLBACK TO SAVEPOINT mine')
    })
    expect((await rejection(running)).code).toBe(code)
  })

  test('a nested transaction whose savepoint is gone is told as failed, and not as left open', async () => {
    const running = createTransactions(at.harness.driver).run(async (manager) => {
      await manager.query('SAVEPOINT mine')
      const nested = manager.transaction(async (inner) => {
        await inner.query('ROLLBACK TO SAVEPOINT mine')
      })
      await nested.catch(() => undefined)
    })
    expect((await rejection(running)).code).toBe('TX_ROLLED_BACK')
  })

  test.each([
    ['no savepoint', 'SELECT 1 / 0', ''],
    ['a savepoint that is gone', 'SELECT 1', 'ROLLBACK TO SAVEPOINT mine'],
  ])('%s: told as failed also where its last word comes late', async (_, before, inside) => {
    const wire = await breakableWire(at.url, 40)
    onTestFinished(async () => await wire[Symbol.asyncDispose]())
    const { driver } = await at.another(wire.url)
    const running = createTransactions(driver).run(async (manager) => {
      await manager.query('SAVEPOINT mine')
      await manager.query(before).catch(() => undefined)
      const nested = manager.transaction(async (inner) => {
        if (inside !== '') await inner.query(inside)
      })
      await nested.catch(() => undefined)
    })
    expect((await rejection(running)).code).toBe('TX_ROLLED_BACK')
  })

  // TypeORM counts it as its transaction only when the savepoint was answered, which is after the body has returned.
  test.each([
    ['alone', []],
    ['with statements that fail', ['SELECT 1 / 0', 'SELECT 1 / 0']],
  ])(
    'a nested transaction that nobody awaits, %s, is rolled back with the rest',
    async (_, more) => {
      const told = deferred<void>()
      const before = await at.account(1)
      const running = createTransactions(at.harness.driver).run(async (manager) => {
        await manager.query(`UPDATE account SET balance = 2 WHERE id = '${before}'`)
        const nested = manager.transaction(async () => {
          await told.promise
          throw new Error('too late')
        })
        nested.catch(() => undefined)
        for (const text of more) manager.query(text).catch(() => undefined)
      })
      expect((await rejection(running)).code).toBe('TX_UNAWAITED')
      told.resolve()
      // Whoever has the connection next would end what was left open on it.
      await Promise.all(
        Array.from({ length: 8 }, () => createTransactions(at.harness.driver).run(async () => {})),
      )
      expect(await at.balance(before)).toBe(1)
      const { rows } = await at.observer.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'`,
      )
      expect(rows).toEqual([])
    },
  )

  test('listens to the client it uses', async () => {
    await at.harness.own(async ({ queryRunner }) => {
      const client = (await queryRunner?.connect()) as EventEmitter
      expect(client.listenerCount('error')).toBe(1)
    })
    expect.assertions(1)
  })

  test('gives more than rows for UPDATE and DELETE, and rows for SELECT', async () => {
    const id = await at.account(1)
    await at.harness.own(async (manager) => {
      const update = `UPDATE account SET balance = 2 WHERE id = '${id}' RETURNING balance`
      expect(await manager.query(update)).toEqual([[{ balance: 2 }], 1])
      expect(await manager.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    })
    expect.assertions(2)
  })

  test('a transaction by hand on a query runner takes locks', async () => {
    const runner = at.harness.dataSource.createQueryRunner()
    await runner.query('BEGIN')
    expect(runner.isTransactionActive).toBe(false)
    await at.locks.acquire(runner.manager, key)
    await at.locks.assertHeld(runner.manager, key)
    await runner.query('ROLLBACK')
    await runner.release()
  })
})
