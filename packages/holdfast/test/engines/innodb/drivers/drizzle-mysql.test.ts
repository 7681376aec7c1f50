import { eq, sql } from 'drizzle-orm'
import { int, mysqlTable } from 'drizzle-orm/mysql-core'
import { drizzle, type MySql2Database } from 'drizzle-orm/mysql2'
import { createPool } from 'mysql2'
import { createConnection } from 'mysql2/promise'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { fromDrizzleMysql } from '../../../../src/drivers/drizzle-mysql.ts'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { emptyDatabase } from '../support/empty-database.ts'

const log = mysqlTable('log', { id: int('id').primaryKey(), howMany: int('how_many') })

/** What is particular about Drizzle; what all clients have in common runs on it in the other files. */
describe.each(inject('innodbServers'))('$name', ({ url: serverUrl }) => {
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
    readonly db: MySql2Database
  }
  const open = (): Place => {
    const pool = createPool({ uri: database.url(), connectionLimit: 5 })
    const end = async (): Promise<void> => await pool.promise().end()
    return { db: drizzle(pool) as unknown as MySql2Database, [Symbol.asyncDispose]: end }
  }
  const values = async (db: MySql2Database): Promise<unknown> =>
    (await db.select().from(log).orderBy(log.id)).map(({ howMany }) => howMany)

  test('a guard, and a lock in the own transaction, over either kind of pool', async () => {
    await using place = open()
    const promises = createPool({ uri: database.url() }).promise()
    for (const db of [place.db, drizzle(promises) as unknown as MySql2Database]) {
      const driver = fromDrizzleMysql(db)
      await migrate(driver)
      const hf = createHoldfast(driver)
      await hf.guard(key, async (tx) => {
        await tx.update(log).set({ howMany: 1 }).where(eq(log.id, 1))
        await hf.locks.assertHeld(tx, key)
      })
      await db.transaction(async (tx) => {
        await hf.locks.acquire(tx, key)
        await hf.locks.assertHeld(tx, key)
        await tx.update(log).set({ howMany: 2 }).where(eq(log.id, 2))
      })
      expect(await values(db)).toEqual([1, 2])
      await expect(hf.locks.acquire(db as never, key)).rejects.toMatchObject({
        code: 'LOCK_OUTSIDE_TRANSACTION',
      })
    }
    await promises.end()
  })

  test('nested transactions are savepoints of the same one', async () => {
    await using place = open()
    const driver = fromDrizzleMysql(place.db)
    await migrate(driver)
    const hf = createHoldfast(driver)
    await hf.transaction(async (tx) => {
      await tx.update(log).set({ howMany: 1 }).where(eq(log.id, 1))
      const undone = tx.transaction(async (inner) => {
        await inner.update(log).set({ howMany: 2 }).where(eq(log.id, 2))
        await hf.locks.acquire(inner, key)
        await hf.locks.assertHeld(tx, key)
        inner.rollback()
      })
      await expect(undone).rejects.toThrow('Rollback')
      await expect(hf.locks.assertHeld(tx, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
    })
    expect(await values(place.db)).toEqual([1, null])
  })

  test('a driver over a transaction opens none in it', async () => {
    await using place = open()
    await place.db.transaction(async (tx) => {
      const inner = fromDrizzleMysql(tx as unknown as MySql2Database)
      await expect(inner.transaction(async () => 1, { scopes: [] })).rejects.toMatchObject({
        code: 'TX_NESTED',
      })
    })
  })

  test('a database on a single connection opens no transactions, and is told a pool', async () => {
    const connection = await createConnection({ uri: database.url() })
    const db = drizzle(connection) as unknown as MySql2Database
    const hf = createHoldfast(fromDrizzleMysql(db))
    await expect(hf.guard(key, async () => 1)).rejects.toMatchObject({
      code: 'DRIVER_HANDLE_INVALID',
      message: expect.stringContaining('make it on a pool of mysql2') as string,
    })
    await connection.end()
  })

  test('what a statement was refused with is told, and not what Drizzle wraps around it', async () => {
    await using place = open()
    const driver = fromDrizzleMysql(place.db)
    const told = driver.transaction(
      async ({ native: tx }) => {
        await tx.update(log).set({ howMany: 9 }).where(eq(log.id, 1))
        await tx.execute(sql`COMMIT`)
      },
      { scopes: [] },
    )
    await expect(told).rejects.toMatchObject({ code: 'TX_ENDED_INSIDE' })
    expect(await values(place.db)).toEqual([null, null])
  })
})
