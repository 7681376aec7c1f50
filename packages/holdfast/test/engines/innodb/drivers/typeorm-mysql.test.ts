import { DataSource, EntitySchema } from 'typeorm'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { fromTypeOrmMysql } from '../../../../src/drivers/typeorm-mysql.ts'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { emptyDatabase } from '../support/empty-database.ts'

const log = new EntitySchema<{ id: number; howMany: number | null }>({
  name: 'log',
  columns: {
    id: { type: 'int', primary: true },
    howMany: { type: 'int', name: 'how_many', nullable: true },
  },
})

/** What is particular about TypeORM; what all clients have in common runs on it in the other files. */
describe.each(
  inject('innodbServers').flatMap(({ name, url }) =>
    (['mysql', 'mariadb'] as const).map((type) => ({ name, url, type })),
  ),
)('$name, type $type', ({ url: serverUrl, type }) => {
  const database = emptyDatabase(serverUrl)
  const key = lockKey('seat', 1)

  beforeEach(async () => {
    await using session = await InnodbSession.open(database.url())
    await session.all(
      'DROP TABLE IF EXISTS log',
      'CREATE TABLE log (id INT PRIMARY KEY, how_many INT) ENGINE=InnoDB',
      'INSERT INTO log (id) VALUES (1), (2)',
    )
  })

  interface Place extends AsyncDisposable {
    readonly source: DataSource
  }
  const open = async (): Promise<Place> => {
    const source = new DataSource({ type, url: database.url(), entities: [log] })
    await source.initialize()
    return { source, [Symbol.asyncDispose]: async () => await source.destroy() }
  }
  const values = async ({ source }: Place): Promise<unknown> =>
    (await source.getRepository(log).find({ order: { id: 'ASC' } })).map(({ howMany }) => howMany)

  test('a guard, and a lock in the own transaction', async () => {
    await using place = await open()
    const driver = fromTypeOrmMysql(place.source)
    await migrate(driver)
    const hf = createHoldfast(driver)
    await hf.guard(key, async (manager) => {
      await manager.getRepository(log).save({ id: 1, howMany: 1 })
      await hf.locks.assertHeld(manager, key)
    })
    await place.source.transaction(async (manager) => {
      await hf.locks.acquire(manager, key)
      await hf.locks.assertHeld(manager, key)
      await manager.getRepository(log).save({ id: 2, howMany: 2 })
    })
    expect(await values(place)).toEqual([1, 2])
    await expect(hf.locks.acquire(place.source.manager, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
    })
  })

  test('nested transactions are savepoints of the same one; one that is left open is refused', async () => {
    await using place = await open()
    const driver = fromTypeOrmMysql(place.source)
    await migrate(driver)
    const hf = createHoldfast(driver)
    await hf.transaction(async (manager) => {
      await manager.getRepository(log).save({ id: 1, howMany: 1 })
      const undone = manager.transaction(async (inner) => {
        await inner.getRepository(log).save({ id: 2, howMany: 2 })
        await hf.locks.acquire(inner, key)
        await hf.locks.assertHeld(manager, key)
        throw new Error('undone')
      })
      await expect(undone).rejects.toThrow('undone')
      await expect(hf.locks.assertHeld(manager, key)).rejects.toMatchObject({
        code: 'LOCK_NOT_HELD',
      })
    })
    expect(await values(place)).toEqual([1, null])
    const left = hf.transaction(async (manager) => {
      await manager.getRepository(log).save({ id: 2, howMany: 9 })
      await manager.queryRunner?.startTransaction()
    })
    await expect(left).rejects.toMatchObject({ code: 'TX_NESTED' })
    expect(await values(place)).toEqual([1, null])
  })

  test('subscribers are told of COMMIT when it has happened', async () => {
    await using place = await open()
    await using session = await InnodbSession.open(database.url())
    const seen: unknown[] = []
    const look = async (): Promise<unknown> =>
      await session.value('SELECT how_many FROM log WHERE id = 1')
    place.source.subscribers.push({
      beforeTransactionCommit: async () => void seen.push(await look()),
      afterTransactionCommit: async () => void seen.push(await look()),
      afterTransactionRollback: () => void seen.push('rolled back'),
    })
    const driver = fromTypeOrmMysql(place.source)
    await driver.transaction(
      async ({ native }) => await native.getRepository(log).save({ id: 1, howMany: 5 }),
      { scopes: [] },
    )
    expect(seen).toEqual([null, 5])
    const failing = driver.transaction(async () => Promise.reject(new Error('mine')), {
      scopes: [],
    })
    await expect(failing).rejects.toThrow('mine')
    expect(seen).toEqual([null, 5, 'rolled back'])
  })

  test('a data source that is not initialized is told', async () => {
    const source = new DataSource({ type, url: database.url() })
    const told = fromTypeOrmMysql(source).transaction(async () => 1, { scopes: [] })
    await expect(told).rejects.toMatchObject({ code: 'DRIVER_HANDLE_INVALID' })
  })
})
