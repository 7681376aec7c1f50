import { CamelCasePlugin, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Isolation, Row } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { fromKysely } from '../../src/drivers/kysely.ts'
import { createLocks } from '../../src/entries/locks.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { OpenPortal } from '../support/open-portal.ts'
import { installedVersion } from './suite/documented.ts'
import type { Harness } from './suite/harness.ts'
import { rejection } from './suite/setting.ts'

interface Database {
  account: { id: string; balance: number }
}
type Tx = Transaction<Database>

/** What the common suite needs, and the client itself for what only Kysely has. */
interface KyselyHarness extends Harness<Tx> {
  readonly db: Kysely<Database>
}

/** Since 0.29 it looks at what the server answers to COMMIT. */
const isOld = Number(installedVersion('kysely').split('.')[1]) < 29

async function open(url: string): Promise<KyselyHarness> {
  const pool = new pg.Pool({ connectionString: url, max: 6 })
  pool.on('error', () => undefined)
  // Kysely leaves a client in use without a listener, and does not let us reach it.
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool, cursor: OpenPortal as never }),
  })
  return {
    db,
    driver: fromKysely(db),
    facts: {
      silentRollback: isOld,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: false },
      roundTrips: { guard: 4, acquire: 1 },
    },
    sqlStateAt: (error: { code: string }) => error.code,
    driverOn: (tx) => fromKysely(tx),
    run: async (handle, text) => (await sql.raw<Row>(text).execute(handle)).rows,
    own: async <T>(body: (tx: Tx) => Promise<T>, isolation?: Isolation) => {
      const builder = db.transaction()
      return await (isolation === undefined
        ? builder
        : builder.setIsolationLevel(isolation)
      ).execute(body)
    },
    // A transaction with a callback has no savepoints of its own in Kysely.
    async savepoint(tx, body) {
      await sql`SAVEPOINT mine`.execute(tx)
      try {
        await body(tx)
      } catch (error) {
        await sql`ROLLBACK TO SAVEPOINT mine`.execute(tx)
        throw error
      }
      await sql`RELEASE SAVEPOINT mine`.execute(tx)
    },
    async leaveOpen(tx) {
      const rows = tx.selectFrom('account').selectAll().stream()
      await rows[Symbol.asyncIterator]().next()
    },
    lookAlikes: {
      'the root instance': async (use) => await use(db as unknown as Tx),
      'an instance bound to one connection': async (use) =>
        await db.connection().execute(async (bound) => await use(bound as unknown as Tx)),
    },
    end: async () => await db.destroy(),
  }
}

const at = exerciseDriver('Kysely', open, [
  'the root instance',
  'an instance bound to one connection',
])

describe('only Kysely', () => {
  const key = lockKey('kysely', 1)

  test('a controlled transaction takes locks, and none after its end', async () => {
    const { db, driver } = at.harness
    for (const end of ['commit', 'rollback'] as const) {
      const trx = await db.startTransaction().execute()
      expect(driver.join(trx).state()).toBe('open')
      await at.locks.acquire(trx, key)
      const inner = await trx.savepoint('mine').execute()
      await at.locks.assertHeld(inner, key)
      await trx[end]().execute()
      expect(driver.join(trx).state()).toBe('none')
      const late = at.locks.acquire(trx, key)
      expect((await rejection(late)).code).toBe('LOCK_OUTSIDE_TRANSACTION')
    }
  })

  test('a handle kept after its transaction refuses by itself, and is told by us', async () => {
    let kept: Tx | undefined
    await at.harness.own(async (tx) => {
      kept = tx
      await Promise.resolve()
    })
    const error = await rejection(at.locks.acquire(kept as Tx, key))
    expect(error.code).toBe('TX_HANDLE_ENDED')
    expect((error.cause as Error).message).toMatch(/transaction is already committed/i)
  })

  test.skipIf(isOld)(
    'a statement that fails after the body, before COMMIT: TX_ROLLED_BACK',
    async () => {
      const failing = async (tx: Tx): Promise<void> => {
        const executor = tx.getExecutor()
        await executor.provideConnection(async (connection) => {
          // Not seen by our probe, because it is sent just before COMMIT, beneath whatever holds the body.
          const send = connection.executeQuery.bind(connection)
          connection.executeQuery = async (query, ...rest) => {
            if (query.sql === 'commit') {
              await send({ ...query, sql: 'SELECT 1 / 0' }, ...rest).catch(() => undefined)
            }
            return await send(query, ...rest)
          }
          await Promise.resolve()
        })
      }
      // A client of its own, because its connection stays as it is now.
      const { driver, own } = await at.another()
      await own(failing).catch(() => undefined)
      const late = driver.transaction(async () => await Promise.resolve(), { scopes: [] })
      expect((await rejection(late)).code).toBe('TX_ROLLED_BACK')
    },
  )

  test('plugins that rename columns do not get in the way', async () => {
    const camel = at.harness.db.withPlugin(new CamelCasePlugin())
    const locks = createLocks(fromKysely(camel), { watch: false })
    await locks.guard(key, async (tx) => {
      await locks.assertHeld(tx, key)
      // Control: they do rename the columns of raw results.
      const { rows } = await sql`SELECT 1 AS snake_case`.execute(tx)
      expect(rows).toEqual([{ snakeCase: 1 }])
    })
    expect.assertions(1)
  })

  test('leaves a client in use without an error listener: the caller has to add one', async () => {
    const pool = new pg.Pool({ connectionString: at.url, max: 1 })
    const acquired: pg.PoolClient[] = []
    pool.on('acquire', (client) => void acquired.push(client))
    const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
    await fromKysely(db).transaction(
      async (transaction) => {
        await transaction.query({ text: 'SELECT 1 AS one', values: [] })
        expect(acquired[0]?.listenerCount('error')).toBe(0)
      },
      { scopes: [] },
    )
    await db.destroy()
    expect.assertions(1)
  })
})
