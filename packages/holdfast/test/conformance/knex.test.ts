import knexOf, { type Knex } from 'knex'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Row } from '../../src/core/driver.ts'
import { lockKey } from '../../src/core/locks/lock-key.ts'
import { fromKnex } from '../../src/drivers/knex.ts'
import { createHoldfast } from '../../src/index.ts'
import { createTransactions } from '../../src/tx/index.ts'
import { exerciseDriver } from './exercise-driver.ts'
import { OpenPortal } from '../support/open-portal.ts'
import type { Harness } from './suite/harness.ts'
import { rejection } from './suite/setting.ts'

/** What the common suite needs, and the client itself for what only Knex has. */
interface KnexHarness extends Harness<Knex.Transaction> {
  readonly knex: Knex
}

const silent = { warn: () => undefined }

async function open(url: string): Promise<KnexHarness> {
  const knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 6 }, log: silent })
  return {
    knex,
    driver: fromKnex(knex),
    facts: {
      silentRollback: true,
      openState: 'open',
      killedState: '57P01',
      savepoints: { isCounted: true },
      roundTrips: { guard: 3, acquire: 1 },
    },
    sqlStateAt: (error: { code: string }) => error.code,
    driverOn: (tx) => fromKnex(tx),
    run: async (handle, text) => (await handle.raw<{ rows: Row[] }>(text)).rows,
    unsent: (handle, text) => handle.raw(text),
    own: async (body, isolationLevel) =>
      await knex.transaction(body, isolationLevel === undefined ? undefined : { isolationLevel }),
    savepoint: async (tx, body) => await tx.transaction(body),
    async leaveOpen(tx) {
      const client = (await tx.client.acquireConnection()) as pg.PoolClient
      await client.query(new OpenPortal()).read()
    },
    lookAlikes: {
      'the root instance': async (use) => await use(knex as unknown as Knex.Transaction),
    },
    end: async () => await knex.destroy(),
  }
}

const at = exerciseDriver('Knex', open, ['the root instance'])

describe('only Knex', () => {
  const key = lockKey('knex', 1)
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`

  test('a transaction without a callback takes locks, and none after its end', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const trx = await at.harness.knex.transaction()
      expect(at.harness.driver.join(trx).state()).toBe('open')
      await at.locks.acquire(trx, key)
      await at.locks.assertHeld(trx, key)
      await trx[end]()
      expect(at.harness.driver.join(trx).state()).toBe('none')
      expect((await rejection(at.locks.acquire(trx, key))).code).toBe('LOCK_OUTSIDE_TRANSACTION')
    }
  })

  test('a transaction that was ended by hand is seen, though Knex has not', async () => {
    const trx = await at.harness.knex.transaction()
    await trx.raw('COMMIT')
    expect(trx.isCompleted()).toBe(false)
    expect((await rejection(at.locks.acquire(trx, key))).code).toBe('TX_HANDLE_ENDED')
    await trx.rollback()
  })

  // Knex would take the transaction for over, and give its connection to whoever comes next.
  test.each(['commit', 'rollback'] as const)(
    'trx.%s() in the body is refused, and nothing is saved',
    async (end) => {
      const heard: (string | undefined)[] = []
      const running = createTransactions(at.harness.driver).run(async (trx) => {
        await trx.raw(insert(`by ${end}`))
        heard.push((await rejection(Promise.resolve(trx[end]()))).code)
        await trx.raw(insert(`after ${end}`))
      })
      expect((await rejection(running)).code).toBe('TX_ENDED_INSIDE')
      expect(heard).toEqual(['TX_ENDED_INSIDE'])
      expect([await at.balance(`by ${end}`), await at.balance(`after ${end}`)]).toEqual([
        undefined,
        undefined,
      ])
    },
  )

  test('a stream of what is refused fails, and does not wait for ever', async () => {
    let kept: Knex.Transaction | undefined
    const read = async (trx: Knex.Transaction, text: string): Promise<void> => {
      for await (const _ of trx.raw(text).stream());
    }
    const refused = createTransactions(at.harness.driver).run(async (trx) => {
      kept = trx
      await read(trx, 'COMMIT')
    })
    expect((await rejection(refused)).code).toBe('TX_ENDED_INSIDE')
    const late = read(kept as Knex.Transaction, 'SELECT 1')
    expect((await rejection(late)).code).toBe('TX_HANDLE_ENDED')
  })

  test('control: Knex alone says yes to a body that has rolled back', async () => {
    const outcome = await at.harness.knex.transaction(async (trx) => {
      await trx.raw(insert('rolled back'))
      await trx.rollback()
      return 'saved'
    })
    expect([outcome, await at.balance('rolled back')]).toEqual([undefined, undefined])
  })

  test('a nested transaction without a callback counts until it is over', async () => {
    const left = createTransactions(at.harness.driver).run(async (trx) => {
      await trx.transaction()
    })
    expect((await rejection(left)).code).toBe('TX_UNAWAITED')
    await createTransactions(at.harness.driver).run(async (trx) => {
      const inner = await trx.transaction()
      await inner.raw(insert('inner'))
      await inner.commit()
    })
    expect(await at.balance('inner')).toBe(1)
  })

  test('control: Knex runs the callback also where BEGIN has failed; we do not', async () => {
    let ran = 0
    const body = async (): Promise<void> => {
      ran += 1
      await Promise.resolve()
    }
    const broken = at.harness.knex.transaction(body, { connection: await endedConnection() })
    await rejection(Promise.resolve(broken))
    expect(ran).toBe(1)
    const knex = knexOf({ client: 'pg', connection: at.url, pool: { min: 0, max: 1 }, log: silent })
    const connection = await endedConnection()
    const root = knex.client as { acquireConnection(): Promise<unknown> }
    root.acquireConnection = async () => await Promise.resolve(connection)
    const driver = fromKnex(knex)
    expect((await rejection(driver.transaction(body, { scopes: [] }))).code).toMatch(/^CONNECTION_/)
    expect(ran).toBe(1)
    await knex.destroy()
  })

  /** One that cannot send BEGIN any more. */
  async function endedConnection(): Promise<unknown> {
    const { knex } = await at.another()
    const client = knex.client as { acquireRawConnection(): Promise<pg.Client> }
    const connection = await client.acquireRawConnection()
    await connection.end()
    return connection
  }

  test('a pool without a free connection: POOL_STARVED', async () => {
    const pool = { min: 0, max: 1, acquireTimeoutMillis: 100 }
    const knex = knexOf({ client: 'pg', connection: at.url, pool, log: silent })
    const { transaction } = fromKnex(knex)
    const starved = transaction(
      async () => await rejection(transaction(async () => undefined, { scopes: [] })),
      { scopes: [] },
    )
    expect((await starved).code).toBe('POOL_STARVED')
    await knex.destroy()
  })

  test('a body that uses the root instance is told', async () => {
    const { knex } = await at.another()
    const hf = createHoldfast(fromKnex(knex), { tx: { rootClient: 'throw' } })
    const used = hf.transaction(async () => await knex.raw('SELECT 1'))
    expect((await rejection(used)).code).toBe('TX_ROOT_CLIENT')
  })

  test.each(['mysql2', 'better-sqlite3'])('refuses %s', (client) => {
    const dialect = { client: { dialect: client, acquireConnection() {} }, raw() {} }
    expect(() => fromKnex(dialect as never)).toThrow("Knex with client 'pg' expected")
  })
})
