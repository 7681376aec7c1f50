import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { fromBetterSqlite3 } from '../../../../src/drivers/better-sqlite3.ts'
import { fromNodeSqlite } from '../../../../src/drivers/node-sqlite.ts'
import { fromPg } from '../../../../src/drivers/pg.ts'
import { createHoldfast as createOnPostgres } from '../../../../src/index.ts'
import { createHoldfast, lockKey, migrate } from '../../../../src/sqlite.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { driverBy, type Handle, openHandle, value } from '../support/sqlite-clients.ts'

const key = lockKey('a', 1)

const tables = [
  'CREATE TABLE t (id INTEGER PRIMARY KEY)',
  `CREATE TABLE job (id INTEGER PRIMARY KEY, status TEXT NOT NULL DEFAULT 'pending', claim_token TEXT,
   lease_until TEXT, attempts INTEGER NOT NULL DEFAULT 0)`,
  'INSERT INTO job (id) VALUES (1)',
]

eachSqlite(tables, (place) => {
  test('everything through one face; migrate makes its tables once, however many do it', async () => {
    const driver = place.driver()
    const hf = createHoldfast(driver)
    // A guard needs no table.
    expect(await hf.guard(key, async () => 1)).toBe(1)
    await Promise.all([migrate(driver), migrate(place.driver()), migrate(driver)])
    await migrate(driver)
    expect(await hf.tryGuard(key, async () => 2)).toEqual({ ok: true, result: 2 })
    expect(await hf.transaction(async (tx) => value(tx, 'SELECT 3'))).toBe(3)
    expect(await hf.close()).toEqual({ left: [] })
    await expect(hf.transaction(async () => 1)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    driver.close()
    driver.close()
    // A driver can be used again: it opens the file anew.
    expect(await createHoldfast(driver).guard(key, async () => 4)).toBe(4)
  })

  test('connections that give whole numbers as bigints', async () => {
    const open = (): Handle => {
      if (place.client === 'node:sqlite')
        return new DatabaseSync(place.file(), { readBigInts: true }) as unknown as Handle
      const handle = openHandle(place.client, place.file())
      ;(handle as unknown as { defaultSafeIntegers(on: boolean): void }).defaultSafeIntegers(true)
      return handle
    }
    const driver = place.driver(open)
    await migrate(driver)
    const hf = createHoldfast(driver)
    const lease = await hf.leases.acquire('a')
    await hf.transaction(async (tx) => await lease.guard(tx))
    expect(await lease.renew()).toBe(true)
    expect(await lease.release()).toBe(true)
    const once = async (): Promise<unknown> => await hf.once('a', async () => 1)
    expect([await once(), await once()]).toMatchObject([{ replayed: false }, { replayed: true }])
    const jobs = hf.claims({
      table: 'job',
      columns: { attempts: 'attempts' },
      perKey: { column: 'id', limit: 1, rate: { most: 1, per: '1 h' } },
    })
    const [claim] = await jobs.claim(1)
    expect(claim).toMatchObject({ key: ['1'], attempt: 1 })
    expect((await jobs.complete(claim ?? [])).kept).toHaveLength(1)
    const schedule = hf.schedule({
      name: 'a',
      every: '7 days',
      guarantee: 'at-least-once',
      handler: () => {},
    })
    expect(await schedule.runNow()).toMatchObject({ outcome: 'done', attempt: 1 })
    expect(await schedule.history()).toMatchObject([{ state: 'done', attempts: 1 }])
  })

  test.each([
    ['in memory', (): string => ':memory:', undefined],
    ['a temporary file', (): string => '', undefined],
    ['another journal mode', (): string => `${place.file()}.rollback`, undefined],
    ['read-only', place.file, 'PRAGMA query_only = 1'],
  ])('refused at first use: %s', async (_, file, setting) => {
    const open = (): Handle => {
      const handle = openHandle(place.client, file())
      if (setting !== undefined) handle.exec(setting)
      return handle
    }
    const driver = place.driver(open)
    const hf = createHoldfast(driver)
    const refused = {
      code: 'ENGINE_FILE_UNFIT',
      message: expect.stringContaining('WAL') as unknown,
    }
    await expect(hf.guard(key, async () => 1)).rejects.toMatchObject(refused)
    await expect(hf.tryGuard(key, async () => 1)).rejects.toMatchObject(refused)
    await expect(hf.transaction(async () => 1)).rejects.toMatchObject(refused)
    await expect(migrate(driver)).rejects.toMatchObject(refused)
  })

  test('a connection that was opened for reading only is refused: its guard would exclude nobody', async () => {
    const unfit = { code: 'ENGINE_FILE_UNFIT' }
    const reading = place.driver(() => openHandle(place.client, place.file(), true))
    const hf = createHoldfast(reading)
    const db = place.open()
    db.exec('PRAGMA user_version = 7')
    for (const time of [1, 2]) {
      const body = async (): Promise<number> => time
      await expect(hf.guard(key, body)).rejects.toMatchObject(unfit)
      await expect(hf.tryGuard(key, body)).rejects.toMatchObject(unfit)
      await expect(hf.transaction(body)).rejects.toMatchObject(unfit)
    }
    // Who may write is looked at, and leaves nothing behind, also beside others who write.
    const writers = [createHoldfast(place.driver()), createHoldfast(place.driver())]
    await Promise.all(writers.map(async (one) => await one.guard(key, async () => 1)))
    expect(value(db, 'PRAGMA user_version')).toBe(7)
  })

  test('what is no function that opens the database is refused, and what to pass is named', () => {
    const db = place.open()
    for (const each of [fromNodeSqlite, fromBetterSqlite3]) {
      const by = each as (open: unknown, options?: object) => unknown
      for (const given of [db, place.file(), undefined]) {
        expect(() => by(given)).toThrow(
          expect.objectContaining({
            code: 'DRIVER_HANDLE_INVALID',
            message: expect.stringMatching(/\(\) => new Database(?:Sync)?\(path\)/) as unknown,
          }),
        )
      }
      expect(() => by(() => db, { wait: 1 })).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      )
    }
    expect(() => createHoldfast(db as never)).toThrow(
      expect.objectContaining({
        code: 'DRIVER_HANDLE_INVALID',
        details: expect.objectContaining({
          use: expect.stringContaining(
            place.client === 'node:sqlite' ? 'fromNodeSqlite' : 'fromBetterSqlite3',
          ) as unknown,
        }) as unknown,
      }),
    )
  })

  test('a function that gives something else, and a handle that is none', async () => {
    const refused = { code: 'DRIVER_HANDLE_INVALID' }
    const wrong = createHoldfast(driverBy(place.client, () => ({}) as never))
    await expect(wrong.guard(key, async () => 1)).rejects.toMatchObject(refused)
    const hf = createHoldfast(place.driver())
    await expect(hf.locks.acquire({} as never, key)).rejects.toMatchObject(refused)
    await expect(hf.locks.acquire(undefined as never, key)).rejects.toMatchObject(refused)
  })

  test('libsql is refused, which looks like better-sqlite3 and cannot always commit', async () => {
    const libsql = { open: true, inTransaction: false, maxWriteReplicationIndex: () => 0 }
    const hf = createHoldfast(fromBetterSqlite3(() => libsql as never))
    await expect(hf.guard(key, async () => 1)).rejects.toMatchObject({
      code: 'DRIVER_HANDLE_INVALID',
      message: expect.stringContaining('libsql') as unknown,
    })
  })

  test('a driver for the other product is refused, and the right import is named', async () => {
    const pg = fromPg({ connect: () => Promise.reject(new Error('no connection')) })
    const mismatch = (use: string): object => ({
      code: 'ENGINE_MISMATCH',
      details: expect.objectContaining({ use }) as unknown,
    })
    expect(() => createOnPostgres(place.driver())).toThrow(
      expect.objectContaining(mismatch('import createHoldfast from holdfast/sqlite')),
    )
    expect(() => createHoldfast(pg as never)).toThrow(
      expect.objectContaining(mismatch('import createHoldfast from holdfast')),
    )
    await expect(migrate(pg as never)).rejects.toMatchObject({ code: 'ENGINE_MISMATCH' })
  })
})
