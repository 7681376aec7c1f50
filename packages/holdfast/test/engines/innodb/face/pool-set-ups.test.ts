import { deferred } from '@holdfast/testkit'
import { createPool as mariadbPool } from 'mariadb'
import { createPool as mysql2Pool } from 'mysql2/promise'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../../../../../testkit/src/servers/free-port.ts'
import { fromMariadb } from '../../../../src/drivers/mariadb.ts'
import { fromMysql2 } from '../../../../src/drivers/mysql2.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { holdersOfRows } from '../../../../src/engines/innodb/locks/holders.ts'
import { namedLock } from '../../../../src/engines/innodb/locks/lock-name.ts'
import { lockTable } from '../../../../src/engines/innodb/schema/lock-table.ts'
import { createHoldfast, type Holdfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

interface Field {
  readonly type: string
  string(): string | null
}
type Next = () => unknown

/** Settings of a pool that change what becomes of the rows of everybody. */
const setUps: readonly (readonly [name: string, settings: object])[] = [
  ['typeCast: false', { typeCast: false }],
  ['all as text', { typeCast: (field: Field) => field.string() }],
  [
    'BIGINT as text',
    {
      typeCast: (field: Field, next: Next) =>
        /LONGLONG|BIGINT/.test(field.type) ? field.string() : next(),
    },
  ],
  ['all as null', { typeCast: () => null }],
  ['dates as text', { dateStrings: true }],
  ['rows as arrays', { rowsAsArray: true }],
  ['nested tables', { nestTables: true }],
  ['nested tables by a sign', { nestTables: '_' }],
  ['large numbers', { supportBigNumbers: true, bigNumberStrings: true, decimalNumbers: true }],
  ['metaAsArray', { metaAsArray: true }],
  ['bigIntAsNumber', { bigIntAsNumber: true, decimalAsNumber: true, insertIdAsNumber: true }],
  ['named placeholders', { namedPlaceholders: true }],
]

eachInnodb((place) => {
  const open = (settings: object): { hf: Holdfast<never>; driver: never } & AsyncDisposable => {
    const { hostname: host, port, username: user, pathname } = new URL(place.url())
    const given = { host, port: Number(port), user, database: pathname.slice(1), ...settings }
    const pool =
      place.client === 'mysql2'
        ? mysql2Pool({ connectionLimit: 3, ...given } as never)
        : mariadbPool({
            connectionLimit: 3,
            minimumIdle: 0,
            acquireTimeout: 1_000,
            allowPublicKeyRetrieval: true,
            ...given,
          } as never)
    const driver = (
      place.client === 'mysql2' ? fromMysql2(pool as never) : fromMariadb(pool as never)
    ) as never
    return {
      hf: createHoldfast(driver),
      driver,
      [Symbol.asyncDispose]: async () => {
        await pool.end()
      },
    }
  }

  test.each(setUps)('a pool with %s', async (_, settings) => {
    await using other = await place.session()
    await other.all(
      'DROP TABLE IF EXISTS wallet',
      'CREATE TABLE wallet (id INT PRIMARY KEY, cents BIGINT NOT NULL, version INT NOT NULL DEFAULT 1) ENGINE=InnoDB',
      'INSERT INTO wallet VALUES (7, 300, 1), (8, 4, 1), (9, 1152921504606846977, 1)',
    )
    await using client = open(settings)
    const { hf } = client
    await migrate(client.driver)
    const key = lockKey('wallet', 1)
    await using holder = place.pool()
    const [has, over] = [deferred(), deferred()]
    const holding = createHoldfast(holder.driver).guard(key, async () => {
      has.resolve()
      await over.promise
    })
    await has.promise
    const late = hf.guard(key, async () => 1, { wait: 100, queue: false })
    await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
    const { row: named } = namedLock(key)
    const { alone } = client.driver as InnodbDriver<never>
    expect(await holdersOfRows(alone, lockTable(undefined), [named])).toMatchObject([
      { row: named },
    ])
    expect(await hf.tryGuard(key, async () => 1)).toMatchObject({ ok: false })
    over.resolve()
    await holding
    await hf.guard([key, lockKey('wallet', 2)], async (tx) => {
      await hf.locks.assertHeld(tx, key)
      for (const keys of [[7], [8, 7, 9]]) {
        const { rows, missing } = await hf.rows.lock<{ id: number; cents: number | bigint }>(
          tx,
          'wallet',
          keys,
        )
        expect(missing).toEqual([])
        expect(rows.map(({ id }) => Number(id))).toEqual(keys)
        const typeCast: unknown = 'typeCast' in settings ? settings.typeCast : undefined
        // What is too large for a number loses nothing, where the pool says that it takes care.
        if (
          place.client === 'mariadb'
            ? !('bigIntAsNumber' in settings)
            : typeof typeCast === 'function'
        )
          for (const row of rows)
            expect(String(row.cents)).toBe(
              { 7: '300', 8: '4', 9: '1152921504606846977' }[Number(row.id)],
            )
      }
    })
    const row = await hf.transaction(async (tx) =>
      hf.rows.updateVersioned<{ cents: number }>(tx, 'wallet', 8, {
        version: 1,
        set: { cents: 5 },
      }),
    )
    expect(Number(row.cents)).toBe(5)
  })

  describe('no connection can be had', () => {
    test.each([
      ['a wrong password', { user: 'someone', password: 'wrong' }, 1045],
      ['a database that is not there', { database: 'no_such_database' }, 1049],
    ])('%s: the words of the server', async (_, settings, errno) => {
      await using session = await place.session()
      await session.rows("CREATE USER IF NOT EXISTS someone@'%' IDENTIFIED BY 'right'")
      await using client = open(settings)
      await expect(client.hf.guard(lockKey('a', 1), async () => 1)).rejects.toMatchObject({ errno })
    })

    test('a port where nobody is: CONNECTION_UNAVAILABLE', async () => {
      await using client = open({ port: await freePort('127.0.0.1') })
      await expect(
        client.hf.guard(lockKey('a', 1), async () => 1, { retry: false }),
      ).rejects.toMatchObject({
        code: 'CONNECTION_UNAVAILABLE',
      })
    })

    test('all are in use: POOL_STARVED', async () => {
      // Of mysql2 a pool that lets nobody wait says so.
      await using client = open({ connectionLimit: 1, waitForConnections: false })
      const [has, over] = [deferred(), deferred()]
      const holding = client.hf.transaction(async () => {
        has.resolve()
        await over.promise
      })
      await has.promise
      const told = client.hf.transaction(async () => 1, { retry: false })
      await expect(told).rejects.toMatchObject({ code: 'POOL_STARVED' })
      over.resolve()
      await holding
    })
  })

  test('a pool that resets each session, with all that was prepared there', async () => {
    await using client = open({ connectionLimit: 1, resetOnRelease: true, resetAfterUse: true })
    await using other = await place.session()
    await other.all('DROP TABLE IF EXISTS made', 'CREATE TABLE made (n INT) ENGINE=InnoDB')
    await migrate(client.driver)
    for (let n = 1; n <= 4; n += 1)
      await client.hf.guard(lockKey('a', 1), async (tx) => {
        await (tx as Handle).query(`INSERT INTO made VALUES (${n})`)
      })
    expect(await other.rows('SELECT COUNT(*) AS n FROM made')).toMatchObject([{ n: 4 }])
  })

  test('a pool of the other client is refused', async () => {
    const pool = mariadbPool(place.url().replace('mysql:', 'mariadb:'))
    expect(() => fromMysql2(pool as never)).toThrow(
      expect.objectContaining({ code: 'DRIVER_HANDLE_INVALID' }),
    )
    await pool.end()
  })

  test('a transaction that takes no writes is no standby', async () => {
    await using client = open({})
    await using pool = place.pool(1)
    await migrate(client.driver)
    const hf = createHoldfast(pool.driver)
    const handle = await pool.connect()
    await handle.query('START TRANSACTION READ ONLY')
    await expect(hf.locks.acquire(handle, lockKey('a', 1))).rejects.toMatchObject({ errno: 1792 })
    await handle.rollback()
    await handle.release()
    expect(await hf.guard(lockKey('a', 1), async () => 1)).toBe(1)
  })
})
