import { deferred } from '@holdfast/testkit'
import { CamelCasePlugin, CompiledQuery, Kysely, MysqlDialect } from 'kysely'
import { createPool, type Pool } from 'mysql2'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { fromKyselyMysql } from '../../../../src/drivers/kysely-mysql.ts'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { emptyDatabase } from '../support/empty-database.ts'

interface Db {
  log: { id: number; howMany: number | null }
}

/** What is particular about Kysely; what all clients have in common runs on it in the other files. */
describe.each(inject('innodbServers'))('$name', ({ url: serverUrl }) => {
  const database = emptyDatabase(serverUrl)
  const key = lockKey('seat', 1)

  beforeEach(async () => {
    await using session = await InnodbSession.open(database.url())
    await session.all(
      'DROP TABLE IF EXISTS log',
      'CREATE TABLE log (id INT PRIMARY KEY, how_many INT) ENGINE=InnoDB',
      `INSERT INTO log (id) VALUES ${Array.from({ length: 500 }, (_, at) => `(${at + 1})`).join(', ')}`,
    )
  })

  interface Place extends AsyncDisposable {
    readonly pool: Pool
    readonly db: Kysely<Db>
  }
  const open = (connectionLimit = 5): Place => {
    const pool = createPool({ uri: database.url(), connectionLimit })
    const dialect = new MysqlDialect({ pool })
    const db = new Kysely<Db>({ dialect, plugins: [new CamelCasePlugin()] })
    return { pool, db, [Symbol.asyncDispose]: async () => await pool.promise().end() }
  }

  test('the README of it: a guard, and a lock in the own transaction, with the own types and plugins', async () => {
    await using place = open()
    const { db, pool } = place
    const driver = fromKyselyMysql(db, pool)
    await migrate(driver)
    const hf = createHoldfast(driver)
    await hf.guard(key, async (trx) => {
      await trx.updateTable('log').set({ howMany: 1 }).where('id', '=', 1).execute()
    })
    await db.transaction().execute(async (trx) => {
      await hf.locks.acquire(trx, key)
      await hf.locks.assertHeld(trx, key)
      const { rows } = await hf.rows.lock(trx, 'log', [1], { columns: ['how_many'] })
      expect(rows).toEqual([{ how_many: 1 }])
      await trx.updateTable('log').set({ howMany: 2 }).where('id', '=', 1).execute()
    })
    const row = await db.selectFrom('log').selectAll().where('id', '=', 1).executeTakeFirst()
    expect(row).toEqual({ id: 1, howMany: 2 })
    await expect(hf.locks.acquire(db as never, key)).rejects.toMatchObject({
      code: 'LOCK_OUTSIDE_TRANSACTION',
    })
  })

  test('savepoints of a controlled transaction are of the same transaction', async () => {
    await using place = open()
    const driver = fromKyselyMysql(place.db, place.pool)
    await migrate(driver)
    const hf = createHoldfast(driver)
    const trx = await place.db.startTransaction().execute()
    await trx.updateTable('log').set({ howMany: 7 }).where('id', '=', 1).execute()
    const inner = await trx.savepoint('mine').execute()
    await hf.locks.acquire(inner, key)
    await hf.locks.assertHeld(trx, key)
    await inner.rollbackToSavepoint('mine').execute()
    await expect(hf.locks.assertHeld(trx, key)).rejects.toMatchObject({ code: 'LOCK_NOT_HELD' })
    await trx.rollback().execute()
    await expect(hf.locks.acquire(trx, key)).rejects.toMatchObject({
      code: expect.stringMatching(/^(?:LOCK_OUTSIDE_TRANSACTION|TX_HANDLE_ENDED)$/) as string,
    })
  })

  test('a transaction of a transaction is refused, and so is a pool of another one', async () => {
    await using place = open()
    await using other = open()
    const { db, pool } = place
    await db.transaction().execute(async (trx) => {
      const inner = fromKyselyMysql(trx, pool)
      await expect(inner.transaction(async () => 1, { scopes: [] })).rejects.toMatchObject({
        code: 'TX_NESTED',
      })
    })
    const wrong = fromKyselyMysql(db, other.pool)
    let ran = false
    const body = async (): Promise<void> => void (ran = true)
    const refused = {
      code: 'DRIVER_HANDLE_INVALID',
      details: { subject: expect.stringContaining('pool of the dialect') as string },
    }
    await expect(wrong.transaction(body, { scopes: [] })).rejects.toMatchObject(refused)
    expect(ran).toBe(false)
    await db.transaction().execute(async (trx) => {
      const told = wrong.join(trx).query({ text: 'SELECT 1', values: [] })
      await expect(told).rejects.toMatchObject(refused)
    })
  })

  test('what a body takes from the root instance is on another connection', async () => {
    await using place = open()
    const driver = fromKyselyMysql(place.db, place.pool)
    const id = async (db: Kysely<Db>): Promise<unknown> =>
      (await db.executeQuery<{ id: number }>(CompiledQuery.raw('SELECT CONNECTION_ID() AS id')))
        .rows[0]?.id
    await driver.transaction(
      async ({ native: trx, query }) => {
        const [own] = await query({ text: 'SELECT CONNECTION_ID() AS id', values: [] })
        expect(await id(trx)).toBe(own?.['id'])
        expect(await id(place.db)).not.toBe(own?.['id'])
        await place.db.transaction().execute(async (other) => {
          expect(await id(other)).not.toBe(own?.['id'])
        })
      },
      { scopes: [] },
    )
  })

  describe('streams', () => {
    const texts = (trx: Kysely<Db>): AsyncIterableIterator<unknown> =>
      trx.selectFrom('log').selectAll().orderBy('id').stream()

    test('are read to the end, or left early', async () => {
      await using place = open(1)
      const driver = fromKyselyMysql(place.db, place.pool)
      const run = async (most: number): Promise<number> =>
        await driver.transaction(
          async ({ native: trx }) => {
            let read = 0
            for await (const _ of texts(trx)) {
              read += 1
              if (read === most) break
            }
            return read
          },
          { scopes: [] },
        )
      expect(await run(1_000)).toBe(500)
      expect(await run(3)).toBe(3)
      expect(await run(500)).toBe(500)
    })

    test('one that is left open: TX_UNAWAITED, and nothing is saved', async () => {
      await using place = open()
      const driver = fromKyselyMysql(place.db, place.pool)
      const told = driver.transaction(
        async ({ native: trx }) => {
          await trx.updateTable('log').set({ howMany: 9 }).where('id', '=', 1).execute()
          await texts(trx).next()
        },
        { scopes: [] },
      )
      await expect(told).rejects.toMatchObject({ code: 'TX_UNAWAITED' })
      const row = await place.db.selectFrom('log').selectAll().executeTakeFirst()
      expect(row?.howMany).toBeNull()
    })

    test.each(['COMMIT', 'CREATE TABLE never (id INT)'])(
      'nothing ends by one: %s',
      async (text) => {
        await using place = open()
        const driver = fromKyselyMysql(place.db, place.pool)
        const told = driver.transaction(
          async ({ native: trx }) => {
            await trx.updateTable('log').set({ howMany: 9 }).where('id', '=', 1).execute()
            const rows = trx.getExecutor().stream(CompiledQuery.raw(text), 1)
            await rows.next().catch(() => undefined)
          },
          { scopes: [] },
        )
        await expect(told).rejects.toMatchObject({ code: 'TX_ENDED_INSIDE' })
        const row = await place.db.selectFrom('log').selectAll().executeTakeFirst()
        expect(row?.howMany).toBeNull()
      },
    )
  })

  test('statements that wait in Kysely when the body returns are not sent', async () => {
    await using place = open()
    const driver = fromKyselyMysql(place.db, place.pool)
    const left: Promise<unknown>[] = []
    const told = driver.transaction(
      async ({ native: trx }) => {
        for (const id of [1, 2, 3]) {
          const sent = trx.updateTable('log').set({ howMany: 9 }).where('id', '=', id).execute()
          left.push(sent.catch(() => undefined))
        }
      },
      { scopes: [] },
    )
    await expect(told).rejects.toMatchObject({ code: 'TX_UNAWAITED' })
    await Promise.all(left)
    const row = await place.db.selectFrom('log').selectAll().where('howMany', '=', 9).execute()
    expect(row).toEqual([])
  })

  test('hooks of the dialect run on the connection that the body gets', async () => {
    const pool = createPool({ uri: database.url(), connectionLimit: 1 })
    const seen: unknown[] = []
    const dialect = new MysqlDialect({
      pool,
      onReserveConnection: async (connection) => {
        seen.push((await connection.executeQuery(CompiledQuery.raw('SELECT 1 AS one'))).rows)
      },
    })
    const driver = fromKyselyMysql(new Kysely<Db>({ dialect }), pool)
    const over = deferred()
    const running = driver.transaction(async () => await over.promise, { scopes: [] })
    over.resolve()
    await running
    expect(seen).toEqual([[{ one: 1 }]])
    await pool.promise().end()
  })
})
