import { describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast, lockKey, migrate } from '../../../../src/sqlite.ts'
import { fresh } from '../support/caller-transaction.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { openDatabase, ormClients } from '../support/orm-clients.ts'
import { value } from '../support/sqlite-clients.ts'

const tables = [
  'CREATE TABLE counter (v INTEGER NOT NULL)',
  'INSERT INTO counter VALUES (0)',
  'CREATE TABLE single (id INTEGER PRIMARY KEY)',
  'INSERT INTO single VALUES (1)',
  `CREATE TABLE job (id INTEGER PRIMARY KEY, status TEXT NOT NULL DEFAULT 'pending', claim_token TEXT, lease_until TEXT)`,
  'INSERT INTO job (id) VALUES (1)',
]
const key = lockKey('counter', 1)
const all = await ormClients()

/** ORMs whose handles are made over a connection that is held to the transaction. */
eachSqlite(tables, (place) => {
  const here = all.filter(({ client }) => client === place.client)
  describe.each(here.map((each) => [each.name, each] as const))('%s', (_, orm) => {
    const { send } = orm
    const start = async (): Promise<Holdfast<object>> => {
      const open = (): ReturnType<typeof openDatabase> => openDatabase(place.client, place.file())
      const driver = orm.driver(open)
      place.closing(driver)
      await migrate(driver)
      return createHoldfast(driver, { wait: '20 s' })
    }
    const count = async (tx: object): Promise<void> => {
      const [row] = (await send(tx, 'SELECT v FROM counter')) as { readonly v: number }[]
      await new Promise(setImmediate)
      await send(tx, `UPDATE counter SET v = ${Number(row?.v) + 1}`)
    }
    const counted = (): unknown => value(place.open(), 'SELECT v FROM counter')

    test('no update is lost, over several connections', async () => {
      const both = await Promise.all([start(), start()])
      await Promise.all(
        Array.from({ length: 20 }, (__, at) =>
          (both[at % 2] as Holdfast<object>).guard(key, count),
        ),
      )
      expect(counted()).toBe(20)
    })

    test('control: on an instance without a transaction updates are lost', async () => {
      const database = openDatabase(place.client, place.file())
      const own = orm.over(database)
      await Promise.all(Array.from({ length: 20 }, () => count(own)))
      expect(counted()).toBeLessThan(20)
      database.close()
    })

    test('a body that throws leaves nothing', async () => {
      const hf = await start()
      const failing = hf.guard(key, async (tx) => {
        await count(tx)
        throw new Error('mine')
      })
      await expect(failing).rejects.toThrow('mine')
      expect(counted()).toBe(0)
    })

    test.each([
      ['COMMIT', 'TX_ENDED_INSIDE'],
      ['ROLLBACK', 'TX_ENDED_INSIDE'],
      ['BEGIN IMMEDIATE', 'TX_NESTED'],
    ])('%s in a body is not sent, and nothing is saved', async (text, code) => {
      const hf = await start()
      const running = hf.guard(key, async (tx) => {
        await count(tx)
        await send(tx, text).catch(() => undefined)
        await send(tx, 'UPDATE counter SET v = 99')
      })
      await expect(running).rejects.toMatchObject({ code })
      expect(counted()).toBe(0)
    })

    test('what SQLite has rolled back is told, though the body swallows it', async () => {
      const hf = await start()
      const running = hf.guard(key, async (tx) => {
        await count(tx)
        await send(tx, 'INSERT OR ROLLBACK INTO single VALUES (1)').catch(() => undefined)
        await send(tx, 'UPDATE counter SET v = 99').catch(() => undefined)
      })
      await expect(running).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
      expect(counted()).toBe(0)
    })

    test('a transaction of its own in a body is a savepoint, or refused with nothing saved', async () => {
      const hf = await start()
      const running = hf.guard(key, async (tx) => {
        await count(tx)
        await orm.nested(tx, 'UPDATE counter SET v = v + 10')
      })
      if (orm.name === 'kysely') {
        await expect(running).rejects.toMatchObject({ code: 'TX_NESTED' })
        expect(counted()).toBe(0)
      } else {
        await running
        expect(counted()).toBe(11)
      }
    })

    test('a handle is of no use when its body has returned', async () => {
      const hf = await start()
      let kept: object = {}
      await hf.guard(key, async (tx) => void (kept = tx))
      await expect(send(kept, 'UPDATE counter SET v = 99')).rejects.toSatisfy((error: unknown) =>
        [error, (error as { cause?: unknown }).cause].some(
          (each) => (each as { code?: unknown } | undefined)?.code === 'TX_HANDLE_ENDED',
        ),
      )
      await hf.guard(key, async (tx) => {
        await send(kept, 'UPDATE counter SET v = 99').catch(() => undefined)
        await count(tx)
      })
      expect(counted()).toBe(1)
    })

    test('once, leases and claims take the handle of a body', async () => {
      const hf = await start()
      const name = fresh()
      const lease = await hf.leases.acquire(name)
      const claims = hf.claims({ table: 'job' })
      const [claim] = await claims.claim(1)
      const once = (): Promise<unknown> =>
        hf.transaction(async (tx) => {
          await lease.guard(tx)
          const { result } = await hf.once(tx, name, async (inner) => {
            await count(inner)
            return 'first'
          })
          await claims.complete(tx, claim ?? [])
          await hf.locks.acquire(tx, key)
          return result
        })
      expect([await once(), await once()]).toEqual(['first', 'first'])
      expect(counted()).toBe(1)
      expect(value(place.open(), 'SELECT status FROM job')).toBe('done')
      await lease.release()
    })

    describe('an instance that is not over the connection that its function is given is refused', () => {
      const open = (): ReturnType<typeof openDatabase> => openDatabase(place.client, place.file())
      const refused = { code: 'DRIVER_HANDLE_INVALID' }

      test("one of the application's own: nothing of the body is saved beside its transaction", async () => {
        const database = open()
        const own = orm.over(database)
        const driver = orm.driver(open, () => own)
        place.closing(driver)
        const hf = createHoldfast(driver)
        const failing = (): Promise<unknown> =>
          hf.guard(key, async (tx) => {
            await send(tx, 'SELECT v FROM counter')
            throw new Error('reached')
          })
        await expect(failing()).rejects.toMatchObject(refused)
        await expect(failing()).rejects.toMatchObject(refused)
        // The file is free again.
        await send(own, 'UPDATE counter SET v = v + 1')
        expect(counted()).toBe(1)
        database.close()
      })

      test('a new one each time, over a connection of its own', async () => {
        const opened: ReturnType<typeof openDatabase>[] = []
        const driver = orm.driver(open, () => {
          const database = open()
          opened.push(database)
          return orm.over(database)
        })
        place.closing(driver)
        const running = createHoldfast(driver).guard(key, (tx) => send(tx, 'SELECT v FROM counter'))
        await expect(running).rejects.toMatchObject(refused)
        for (const each of opened) each.close()
      })

      test('the one of the first transaction once more', async () => {
        let first: object | undefined
        const driver = orm.driver(open, (database) => (first ??= orm.over(database)))
        place.closing(driver)
        const hf = createHoldfast(driver)
        await hf.guard(key, count)
        await expect(hf.guard(key, count)).rejects.toMatchObject(refused)
        expect(counted()).toBe(1)
      })
    })

    test("a handle of the caller's own is refused, and so is what is no instance", async () => {
      const hf = await start()
      const database = openDatabase(place.client, place.file())
      const refused = { code: 'DRIVER_HANDLE_INVALID' }
      await expect(hf.locks.acquire(orm.over(database), key)).rejects.toMatchObject(refused)
      const by = orm.driver as (open: unknown, over?: unknown) => unknown
      expect(() => by('app.db')).toThrow(expect.objectContaining(refused))
      database.close()
    })
  })
})
