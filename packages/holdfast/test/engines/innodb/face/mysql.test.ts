import { createPool as mysql2CallbackPool } from 'mysql2'
import { describe, expect, test } from 'vitest'
import { createHoldfast as createOnPostgres } from '../../../../src/index.ts'
import { migrate as migrateOnPostgres } from '../../../../src/schema/migrate.ts'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import { fromMariadb } from '../../../../src/drivers/mariadb.ts'
import { fromPg } from '../../../../src/drivers/pg.ts'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'

eachInnodb((place) => {
  test('migrate makes the table once, however many do it at once', async () => {
    await using pool = place.pool()
    const hf = createHoldfast(pool.driver)
    await expect(hf.guard(lockKey('a', 1), async () => 1)).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
    })
    await Promise.all([migrate(pool.driver), migrate(pool.driver), migrate(pool.driver)])
    await migrate(pool.driver)
    expect(await hf.guard(lockKey('a', 1), async () => 1)).toBe(1)
    // As the first statement, now that the table is known.
    expect(await hf.guard(lockKey('a', 1), async () => 2)).toBe(2)
    expect(await hf.tryGuard(lockKey('a', 1), async () => 3)).toEqual({ ok: true, result: 3 })
    expect(await hf.close()).toEqual({ left: [] })
    await expect(hf.transaction(async () => 1)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })

  test('the table may be in another database', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    const database = `${new URL(place.url()).pathname.slice(1)}_locks`
    await session.rows(`CREATE DATABASE ${database}`)
    await migrate(pool.driver, { database })
    const hf = createHoldfast(pool.driver, { database })
    expect(await hf.guard(lockKey('b', 1), async () => 1)).toBe(1)
    expect(await session.value(`SELECT COUNT(*) FROM ${database}.holdfast_lock`)).toBe(1)
    await session.rows(`DROP DATABASE ${database}`)
  })

  test.each([
    ['another engine', 'ENGINE=MyISAM', 'ascii_bin', 'BIGINT'],
    ['another collation', 'ENGINE=InnoDB', 'ascii_general_ci', 'BIGINT'],
    ['a count that ends', 'ENGINE=InnoDB', 'ascii_bin', 'INT'],
  ])('a lock table of %s is refused', async (_, engine, collation, count) => {
    await using pool = place.pool()
    await using session = await place.session()
    const database = `${new URL(place.url()).pathname.slice(1)}_unfit`
    await session.rows(`CREATE DATABASE ${database}`)
    await session.rows(
      `CREATE TABLE ${database}.holdfast_lock (
         name VARCHAR(64) CHARACTER SET ascii COLLATE ${collation} PRIMARY KEY, seq ${count} NOT NULL,
         stamp BIGINT NOT NULL, conn BIGINT NOT NULL, since BIGINT NOT NULL) ${engine}`,
    )
    const refused = { code: 'ENGINE_TABLE_UNFIT' }
    await expect(migrate(pool.driver, { database })).rejects.toMatchObject(refused)
    const hf = createHoldfast(pool.driver, { database })
    await expect(hf.guard(lockKey('a', 1), async () => 1)).rejects.toMatchObject(refused)
    await session.rows(`DROP DATABASE ${database}`)
  })

  test('a driver for the other product is refused, and the right import is named', async () => {
    await using pool = place.pool()
    const pg = fromPg({ connect: () => Promise.reject(new Error('no connection')) })
    const mismatch = (use: string): object => ({
      code: 'ENGINE_MISMATCH',
      details: expect.objectContaining({ use }) as unknown,
    })
    expect(() => createOnPostgres(pool.driver)).toThrow(
      expect.objectContaining(mismatch('import createHoldfast from holdfast/mysql')),
    )
    expect(() => createHoldfast(pg as never)).toThrow(
      expect.objectContaining(mismatch('import createHoldfast from holdfast')),
    )
    await expect(migrate(pg as never)).rejects.toMatchObject(
      mismatch('import migrate from holdfast/schema'),
    )
    await expect(migrateOnPostgres(pool.driver)).rejects.toMatchObject(
      mismatch('import migrate from holdfast/mysql'),
    )
  })

  describe('what is no pool of the client is refused', () => {
    test('mysql2 without promises, and the other client', async () => {
      const callback = mysql2CallbackPool({ uri: place.url() })
      const refused = expect.objectContaining({ code: 'DRIVER_HANDLE_INVALID' })
      expect(() => fromMysql2(callback as never)).toThrow(refused)
      expect(() => fromMariadb(callback.promise() as never)).toThrow(refused)
      expect(() => fromMysql2('mysql://localhost' as never)).toThrow(refused)
      const connection = await new Promise<object>((resolve, reject) => {
        callback.getConnection((error, taken) => (error ? reject(error) : resolve(taken)))
      })
      // Before anything is sent on it.
      const hf = createHoldfast(fromMysql2(callback.promise()))
      const acquiring = hf.locks.acquire(connection as never, lockKey('a', 1))
      await expect(acquiring).rejects.toMatchObject({
        code: 'DRIVER_HANDLE_INVALID',
        message: expect.stringContaining('pass connection.promise()') as string,
      })
      callback.end(() => undefined)
      await using pool = place.pool()
      expect(() => pool.driver.join({} as never)).toThrow(refused)
    })
  })
})
