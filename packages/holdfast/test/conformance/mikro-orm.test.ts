import { EntitySchema, RequestContext } from '@mikro-orm/core'
import { MikroORM, type SqlEntityManager } from '@mikro-orm/postgresql'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Row } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { sqlStateOf } from '../../src/core/sql-state.ts'
import { fromMikroOrm } from '../../src/drivers/mikro-orm.ts'
import { createHoldfast } from '../../src/index.ts'
import { createTransactions } from '../../src/tx/index.ts'
import { exerciseDriver } from './exercise-driver.ts'
import type { Harness } from './suite/harness.ts'
import { rejection } from './suite/setting.ts'

interface Account {
  id: string
  balance: number
}

const Account = new EntitySchema<Account>({
  name: 'Account',
  tableName: 'account',
  properties: { id: { type: 'text', primary: true }, balance: { type: 'int' } },
})

/** What the common suite needs, and the client itself for what only MikroORM has. */
interface MikroOrmHarness extends Harness<SqlEntityManager> {
  readonly orm: MikroORM
}

async function open(clientUrl: string): Promise<MikroOrmHarness> {
  const orm = await MikroORM.init({
    clientUrl,
    entities: [Account],
    pool: { min: 0, max: 6 },
    logger: () => undefined,
  })
  const em = orm.em as SqlEntityManager
  return {
    orm,
    driver: fromMikroOrm(em),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { code: string }) => error.code,
    driverOn: (tx) => fromMikroOrm(tx),
    run: async (handle, text) => await handle.execute<Row[]>(text),
    own: async (body, isolationLevel) =>
      await em.fork().transactional(body, isolationLevel === undefined ? {} : { isolationLevel }),
    savepoint: async (tx, body) => await tx.transactional(body),
    async leaveOpen(tx) {
      const rows = tx.createQueryBuilder(Account, 'a').stream()
      await rows[Symbol.asyncIterator]().next()
    },
    lookAlikes: {
      'the entity manager of the ORM': async (use) => await use(em),
      'a fork of it': async (use) => await use(em.fork() as SqlEntityManager),
    },
    end: async () => await orm.close(true),
  }
}

const at = exerciseDriver('MikroORM', open, ['the entity manager of the ORM', 'a fork of it'])

describe('only MikroORM', () => {
  const key = lockKey('mikro-orm', 1)
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`

  test('a transaction by begin() takes locks, and none after its end', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const em = at.harness.orm.em.fork() as SqlEntityManager
      await em.begin()
      expect(at.harness.driver.join(em).state()).toBe('open')
      await at.locks.acquire(em, key)
      await at.locks.assertHeld(em, key)
      await em[end]()
      expect(at.harness.driver.join(em).state()).toBe('none')
      expect((await rejection(at.locks.acquire(em, key))).code).toBe('LOCK_OUTSIDE_TRANSACTION')
    }
  })

  test('inside of a transaction the entity manager of the ORM stands for it', async () => {
    const em = at.harness.orm.em as SqlEntityManager
    await em.transactional(async (tx) => {
      await at.locks.acquire(em, key)
      await at.locks.assertHeld(tx, key)
    })
    await at.locks.guard(key, async (tx) => {
      expect(await pid(em)).toBe(await pid(tx))
    })
  })

  test('em.begin() in a body is refused, and nothing is saved', async () => {
    const root = at.harness.orm.em as SqlEntityManager
    for (const [id, which] of [
      ['begins itself', (tx: SqlEntityManager) => tx],
      ['begins by the ORM', () => root],
    ] as const) {
      const heard: (string | undefined)[] = []
      const running = at.locks.guard(key, async (tx) => {
        await tx.execute(insert(id))
        heard.push((await rejection(which(tx).begin())).code)
        await tx.execute(insert(`${id} again`))
      })
      expect([(await rejection(running)).code, heard]).toEqual(['TX_NESTED', ['TX_NESTED']])
      expect([await at.balance(id), await at.balance(`${id} again`)]).toEqual([
        undefined,
        undefined,
      ])
    }
    await at.locks.guard(key, async (tx) => {
      await tx.transactional(async (inner) => await inner.execute(insert('nested')))
    })
    expect(await at.balance('nested')).toBe(1)
  })

  test('a flush that failed and was passed over is told', async () => {
    const running = at.locks.guard(key, async (em) => {
      await em.execute(insert('there'))
      em.create(Account, { id: 'there', balance: 2 })
      await em.flush().catch(() => undefined)
    })
    expect((await rejection(running)).code).toBe('TX_ROLLED_BACK')
  })

  test('a guard inside of a transaction of the caller has one of its own', async () => {
    const em = at.harness.orm.em as SqlEntityManager
    await em.transactional(async (outer) => {
      const outside = await pid(outer)
      const inside = await at.locks.guard(key, async (tx) => await pid(tx))
      expect(inside).not.toBe(outside)
      expect(await pid(em)).toBe(outside)
    })
  })

  async function pid(em: SqlEntityManager): Promise<unknown> {
    const rows = await em.execute<{ pid: number }[]>('SELECT pg_backend_pid() AS pid')
    return rows[0]?.pid
  }

  test('what the body has changed is flushed before COMMIT, and its failure is the body’s', async () => {
    const transactions = createTransactions(at.harness.driver)
    await transactions.run(async (em) => void em.create(Account, { id: 'flushed', balance: 1 }))
    expect(await at.balance('flushed')).toBe(1)
    const twice = transactions.run(
      async (em) => void em.create(Account, { id: 'flushed', balance: 2 }),
    )
    expect(sqlStateOf(await rejection(twice))).toBe('23505')
    expect(await at.balance('flushed')).toBe(1)
  })

  test('a guard reads what is there now, and not what was loaded before', async () => {
    const id = await at.account(1)
    const { orm, driver } = at.harness
    await RequestContext.create(orm.em, async () => {
      const before = await orm.em.findOneOrFail(Account, { id })
      await at.observer.query('UPDATE account SET balance = 5 WHERE id = $1', [id])
      // Control: in a transaction of its own MikroORM keeps what it has.
      const own = await orm.em.transactional(async (em) => await em.findOneOrFail(Account, { id }))
      expect([before.balance, own.balance]).toEqual([1, 1])
      const guarded = await createTransactions(driver).run(
        async (em) => await em.findOneOrFail(Account, { id }),
      )
      expect(guarded.balance).toBe(5)
    })
  })

  test.each(['commit', 'rollback'] as const)(
    'em.%s() in the body is refused, and nothing is saved',
    async (end) => {
      const running = createTransactions(at.harness.driver).run(async (em) => {
        await em.execute(insert(`by ${end}`))
        await rejection(em[end]())
        await em.execute(insert(`after ${end}`))
      })
      expect((await rejection(running)).code).toBe('TX_ENDED_INSIDE')
      expect([await at.balance(`by ${end}`), await at.balance(`after ${end}`)]).toEqual([
        undefined,
        undefined,
      ])
    },
  )

  test('control: MikroORM never gives back a connection that was lost in a transaction; we do', async () => {
    const { orm, own, driver } = await at.another()
    const kill = async (em: SqlEntityManager): Promise<unknown> =>
      await em.execute('SELECT pg_terminate_backend(pg_backend_pid())')
    const pool = (await orm.em.getConnection().getNativeClient()) as pg.Pool
    await rejection(driver.transaction(async ({ native }) => await kill(native), { scopes: [] }))
    expect(pool.totalCount).toBe(0)
    const clients: pg.PoolClient[] = []
    pool.on('acquire', (client) => void clients.push(client))
    await rejection(own(kill))
    expect(pool.totalCount).toBe(1)
    for (const client of clients) client.release(true)
  })

  test('a body that uses the pool is told', async () => {
    const { orm } = await at.another()
    const hf = createHoldfast(fromMikroOrm(orm.em as SqlEntityManager), {
      tx: { rootClient: 'throw' },
    })
    const used = hf.transaction(async () => await orm.em.fork().execute('SELECT 1'))
    expect((await rejection(used)).code).toBe('TX_ROOT_CLIENT')
  })

  test.each(['SELECT 1 / 0', 'rollback'])(
    'a subscriber that ends it by %s after our last look does not make it done',
    async (text) => {
      const { orm } = await at.another()
      orm.em.getEventManager().registerSubscriber({
        async beforeTransactionCommit({ em }) {
          await (em as SqlEntityManager).execute(text).catch(() => undefined)
        },
      })
      const hf = createHoldfast(fromMikroOrm(orm.em as SqlEntityManager))
      const id = `by ${text}`
      const saving = hf.transaction(async (em) => {
        await em.execute('INSERT INTO account VALUES (?, 1)', [id])
      })
      expect(['TX_ROLLED_BACK', 'TX_ENDED_INSIDE']).toContain((await rejection(saving)).code)
      expect(await at.balance(id)).toBeUndefined()
    },
  )

  test('without transactions it is refused', async () => {
    const em = at.harness.orm.em.fork({ disableTransactions: true }) as SqlEntityManager
    const running = fromMikroOrm(em).transaction(async () => undefined, { scopes: [] })
    expect((await rejection(running)).code).toBe('DRIVER_HANDLE_INVALID')
    expect(() => fromMikroOrm({} as never)).toThrow('fromMikroOrm takes an entity manager')
  })
})
