/** What only `pg` has: its wire, its clients and their events, and clients that show less of themselves. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Row, Statement, Transaction } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createHoldfast, type LockKey, lockKey } from '../../../src/index.ts'
import { callerTransaction, pgFixture, pidOf } from '../../support/pg-fixture.ts'
import type { PgPool } from '../../../src/drivers/pg/pg-pool.ts'

const fixture = pgFixture('CREATE TABLE kept (id text PRIMARY KEY)')

const statement = (text: string, ...values: (string | null)[]): Statement => ({ text, values })

async function rejected(call: PromiseLike<unknown>): Promise<HoldfastError> {
  return await call.then(
    () => expect.unreachable('it was expected to fail'),
    (error: unknown) => error as HoldfastError,
  )
}

async function isKept(id: string): Promise<boolean> {
  const { rows } = await fixture.observer.query('SELECT FROM kept WHERE id = $1', [id])
  return rows.length === 1
}

let count = 0
function fresh(): string {
  count += 1
  return `id-${count}`
}

/** A pool whose clients do not show these properties, as other versions and look-alikes do not. */
function hiding(...hidden: readonly string[]): { pool: PgPool; last: () => pg.PoolClient } {
  let last: pg.PoolClient
  const pool = {
    async connect() {
      last = await fixture.pool.connect()
      return new Proxy(last, {
        get(target, property) {
          if (hidden.includes(String(property))) return undefined
          const value: unknown = Reflect.get(target, property)
          return typeof value === 'function' ? (value.bind(target) as unknown) : value
        },
      })
    },
  }
  return { pool: pool as PgPool, last: () => last }
}

test('a statement that nobody waits for keeps the call no longer than a second', async () => {
  const rival = await callerTransaction(fixture)
  await rival.query('SELECT pg_advisory_xact_lock(4711)')
  const id = fresh()
  const error = await rejected(
    fixture.hf.transaction(async (tx) => {
      await tx.query('INSERT INTO kept VALUES ($1)', [id])
      // Without a handler: that it fails when the connection is ended must not end the process.
      void tx.query('SELECT pg_advisory_xact_lock(4711)')
    }),
  )
  expect(error.code).toBe('TX_UNAWAITED')
  await rival.query('ROLLBACK')
  expect(await isKept(id)).toBe(false)
})

test('a connection that comes to rest after its body failed is kept', async () => {
  const { pool, last } = hiding()
  const own = new Error('of the body')
  const driver = fromPg(pool)
  const failing = driver.transaction(
    async ({ native }) => {
      void (native as pg.PoolClient).query('SELECT pg_sleep(0.05)').catch(() => undefined)
      throw own
    },
    { scopes: [] },
  )
  expect(await rejected(failing)).toBe(own)
  // It went back to the pool, and is as before.
  expect((await last().query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
})

describe('two statements at once', () => {
  type Both = NonNullable<Transaction<unknown>['both']>
  /** As the client is, and without what is needed to write to its connection, or to read its types. */
  const clients: Readonly<Record<string, readonly string[]>> = {
    'in one pipeline': [],
    'in turn, without a connection': ['connection'],
    'in turn, without types': ['getTypeParser'],
  }

  async function bothOn(hidden: readonly string[]): Promise<{ both: Both; client: pg.PoolClient }> {
    const { pool, last } = hiding(...hidden)
    const client = (await pool.connect()) as pg.PoolClient
    await client.query('BEGIN')
    onTestFinished(async () => {
      await last().query('ROLLBACK')
      last().release()
    })
    return { both: fromPg(pool).join(client as never).both as Both, client }
  }

  test.each(Object.entries(clients))(
    '%s: each has its own rows, read as the client reads them',
    async (_, hidden) => {
      const { both } = await bothOn(hidden)
      const [first, second] = both(
        statement(
          'SELECT i AS "a#", NULL AS none, $1::text AS said FROM generate_series(1, 2) AS i',
          'x',
        ),
        statement(`SELECT true AS yes, '2026-01-01T00:00:00Z'::timestamptz AS at`),
      )
      expect(await first).toEqual([
        { 'a#': 1, none: null, said: 'x' },
        { 'a#': 2, none: null, said: 'x' },
      ])
      expect(await second).toEqual([{ yes: true, at: new Date('2026-01-01T00:00:00Z') }])
    },
  )

  test.each(Object.entries(clients))(
    '%s: where the second fails, the first is known',
    async (_, hidden) => {
      const { both } = await bothOn(hidden)
      const [first, second] = both(statement('SELECT 1 AS one'), statement('SELECT 1 / 0'))
      expect((await rejected(second)).code).toBe('22012')
      expect(await first).toEqual([{ one: 1 }])
    },
  )

  test.each(Object.entries(clients))('%s: where the first fails, both have', async (_, hidden) => {
    const { both } = await bothOn(hidden)
    const [first, second] = both(
      statement('SELECT 1 / 0'),
      statement(`INSERT INTO kept VALUES ('never')`),
    )
    expect((await rejected(first)).code).toBe('22012')
    expect((await rejected(second)).code).toBe('22012')
  })

  test('rows without a column, and none at all', async () => {
    const { both } = await bothOn([])
    const [first, second] = both(
      statement('SELECT WHERE false'),
      statement('SELECT 1 AS one WHERE false'),
    )
    expect([await first, await second]).toEqual([[], []])
  })

  test('types that the user reads otherwise are read so', async () => {
    const { both, client } = await bothOn([])
    const types = client as unknown as { setTypeParser: (oid: number, parse: unknown) => void }
    types.setTypeParser(20, (text: string) => `int8 ${text}`)
    onTestFinished(() => types.setTypeParser(20, String))
    const [first, second] = both(statement('SELECT 1::int8 AS n'), statement('SELECT 2::int8 AS n'))
    expect([await first, await second]).toEqual([[{ n: 'int8 1' }], [{ n: 'int8 2' }]])
  })

  test('a pipelining client is not written past', async () => {
    const { pool, last } = hiding()
    const client = (await pool.connect()) as pg.PoolClient
    onTestFinished(() => last().release())
    const queries: unknown[] = []
    const watched = new Proxy(client, {
      get(target, property) {
        if (property === 'pipeline') return true
        if (property !== 'query') return Reflect.get(target, property) as unknown
        return async (...args: unknown[]) => {
          queries.push(args[0])
          return await (target.query as (...given: unknown[]) => Promise<unknown>)(...args)
        }
      },
    })
    const { both } = fromPg(pool).join(watched as never)
    const [first, second] = (both as Both)(statement('SELECT 1 AS n'), statement('SELECT 2 AS n'))
    expect([await first, await second]).toEqual([[{ n: 1 }], [{ n: 2 }]])
    expect(queries).toEqual(['SELECT 1 AS n', 'SELECT 2 AS n'])
  })
})

describe('a body may not', () => {
  test.each(['release', 'end'] as const)('%s the client', async (method) => {
    const id = fresh()
    let heard: HoldfastError | undefined
    const running = fixture.hf.transaction(async (tx) => {
      await tx.query('INSERT INTO kept VALUES ($1)', [id])
      try {
        ;(tx[method as 'release'] as () => void)()
      } catch (error) {
        heard = error as HoldfastError
      }
      await tx.query('SELECT 1')
    })
    expect(await rejected(running)).toBe(heard)
    expect(heard).toMatchObject({
      code: 'TX_ENDED_INSIDE',
      details: { ended: 'refused', subject: expect.stringContaining('not released') },
    })
    expect(await isKept(id)).toBe(false)
  })

  test('nor when it is over', async () => {
    let kept: pg.PoolClient | undefined
    await fixture.hf.transaction(async (tx) => {
      kept = tx
      await tx.query('SELECT 1')
    })
    expect(() => kept?.release()).toThrow(expect.objectContaining({ code: 'TX_HANDLE_ENDED' }))
  })

  test('hear of a refusal otherwise than by the callback it gave', async () => {
    const heard = deferred<HoldfastError>()
    const listens = (error: unknown): void => heard.resolve(error as HoldfastError)
    const running = fixture.hf.transaction(async (tx) => {
      expect(tx.query('COMMIT', listens)).toBeUndefined()
      return await heard.promise
    })
    expect((await rejected(running)).code).toBe('TX_ENDED_INSIDE')
    expect((await heard.promise).code).toBe('TX_ENDED_INSIDE')
  })

  test('nor by the callback in its configuration', async () => {
    const heard = deferred<HoldfastError>()
    const running = fixture.hf.transaction(async (tx) => {
      const callback = (error: unknown): void => heard.resolve(error as HoldfastError)
      ;(tx.query as (config: unknown) => unknown)({ text: 'COMMIT', callback })
      await heard.promise
    })
    expect((await rejected(running)).code).toBe('TX_ENDED_INSIDE')
  })

  test.each([true, false])('nor by what sends itself: it can hear (%s)', async (hears) => {
    const heard = deferred<HoldfastError>()
    const submit = (): void => expect.unreachable()
    const handleError = (error: unknown, connection: unknown): void => {
      expect(connection).toBeDefined()
      heard.resolve(error as HoldfastError)
    }
    const running = fixture.hf.transaction(async (tx) => {
      const sends = { text: 'COMMIT', submit, ...(hears ? { handleError } : {}) }
      expect((tx.query as (config: unknown) => unknown)(sends)).toBe(sends)
      if (hears) await heard.promise
      else await new Promise(setImmediate)
    })
    expect((await rejected(running)).code).toBe('TX_ENDED_INSIDE')
  })

  test('notice that its client is another one', async () => {
    const events: string[] = []
    const seen = await fixture.hf.transaction(async (tx) => {
      tx.once('notice', ({ message }) => events.push(String(message)))
      await tx.query(`DO $$ BEGIN RAISE NOTICE 'heard'; END $$`)
      Object.assign(tx, { own: 7 })
      const named = await tx.query({ text: 'SELECT $1::int AS n', values: [3] })
      return { constructor: tx.constructor, own: (tx as { own?: number }).own, rows: named.rows }
    })
    const raw = await fixture.pool.connect()
    raw.release()
    expect(seen).toEqual({ constructor: raw.constructor, own: 7, rows: [{ n: 3 }] })
    expect(events).toEqual(['heard'])
  })
})

describe('a transaction that is ended past the handle', () => {
  /** The client itself, as a helper of the body may have got hold of it. */
  async function raw(
    texts: readonly string[],
    id: string,
    hidden: readonly string[] = [],
  ): Promise<HoldfastError | 'done'> {
    const { pool, last } = hiding(...hidden)
    return await createHoldfast(fromPg(pool))
      .transaction(async (tx) => {
        await tx.query('INSERT INTO kept VALUES ($1)', [id])
        for (const text of texts) await last().query(text)
      })
      .then(
        () => 'done' as const,
        (error: unknown) => error as HoldfastError,
      )
  }

  test.each([
    [['COMMIT'], 'committed', true],
    [['ROLLBACK'], 'rolled back', false],
    [['ROLLBACK', 'BEGIN'], 'rolled back', false],
    [['COMMIT; BEGIN'], 'committed', true],
    [['COMMIT', 'START TRANSACTION'], 'committed', true],
    [['SAVEPOINT a; ROLLBACK TO a; ROLLBACK; BEGIN'], 'rolled back', false],
    // Only a WARNING: it was begun already, by whoever.
    [['BEGIN'], 'unknown', false],
    [['START TRANSACTION'], 'unknown', false],
  ] as const)('%j is told, and what became of the work', async (texts, ended, kept) => {
    const id = fresh()
    expect(await raw(texts, id)).toMatchObject({ code: 'TX_ENDED_INSIDE', details: { ended } })
    expect(await isKept(id)).toBe(kept)
  })

  test.each([
    [['SAVEPOINT a', 'ROLLBACK TO a', 'ROLLBACK TO a']],
    [['SAVEPOINT a; ROLLBACK TO a; ROLLBACK TO SAVEPOINT a']],
    [['SAVEPOINT a', 'ROLLBACK TO a; SELECT 1', 'ROLLBACK TO a; SELECT 1']],
  ])('%j keeps it', async (texts) => {
    const id = fresh()
    expect(await raw(texts, id)).toBe('done')
    expect(await isKept(id)).toBe(true)
  })

  test('is noticed by its state where no tags are seen', async () => {
    const id = fresh()
    expect(await raw(['COMMIT'], id, ['connection'])).toMatchObject({
      code: 'TX_ENDED_INSIDE',
      details: { ended: 'unknown' },
    })
    expect(await isKept(id)).toBe(true)
  })

  test('and by the answer to COMMIT where the state is not seen either', async () => {
    const id = fresh()
    expect(await raw(['COMMIT'], id, ['connection', 'getTransactionStatus'])).toMatchObject({
      code: 'TX_ENDED_INSIDE',
      details: { ended: 'unknown' },
    })
    expect(await isKept(id)).toBe(true)
  })

  test('a WARNING of the body is not the answer to COMMIT', async () => {
    const id = fresh()
    const { pool } = hiding('getTransactionStatus')
    await createHoldfast(fromPg(pool)).transaction(async (tx) => {
      await tx.query('INSERT INTO kept VALUES ($1)', [id])
      await tx.query(
        `DO $$ BEGIN RAISE WARNING 'there is no transaction' USING ERRCODE = '25P01'; END $$`,
      )
    })
    expect(await isKept(id)).toBe(true)
  })

  test('a client that shows nothing works as well', async () => {
    const id = fresh()
    expect(await raw([], id, ['connection', 'getTransactionStatus', 'getTypeParser'])).toBe('done')
    expect(await isKept(id)).toBe(true)
  })

  test('a connection that is lost while the body does something else is told', async () => {
    const id = fresh()
    const error = await rejected(
      fixture.hf.transaction(
        async (tx) => {
          await tx.query('INSERT INTO kept VALUES ($1)', [id])
          const gone = deferred()
          tx.once('end', () => gone.resolve())
          await fixture.observer.query('SELECT pg_terminate_backend($1)', [await pidOf(tx)])
          await gone.promise
        },
        { retry: false },
      ),
    )
    expect(error.code).toBe('CONNECTION_LOST')
    expect(await isKept(id)).toBe(false)
  })

  test('and if the body fails then, that is its cause', async () => {
    const own = new Error('of the body')
    const error = await rejected(
      fixture.hf.transaction(
        async (tx) => {
          const gone = deferred()
          tx.once('end', () => gone.resolve())
          await fixture.observer.query('SELECT pg_terminate_backend($1)', [await pidOf(tx)])
          await gone.promise
          throw own
        },
        { retry: false },
      ),
    )
    expect(error).toMatchObject({ code: 'CONNECTION_LOST', cause: own })
  })
})

/** Accepts connections, and says nothing or hangs up. */
async function mute(hear: (socket: Socket) => void = () => undefined): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    hear(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`
}

describe('connections of the pool', () => {
  function small(
    max: number,
    connectWithin: number,
  ): ReturnType<typeof fromPg<pg.Pool>> & { own: pg.Pool } {
    const own = new pg.Pool({ connectionString: fixture.database.url, max })
    own.on('error', () => undefined)
    onTestFinished(async () => await own.end())
    return Object.assign(fromPg(own, { connectWithin }), { own })
  }

  test('are counted by what they are used for, when there is none', async () => {
    const began = performance.now()
    const driver = small(5, 100)
    const [inside, done] = [deferred(), deferred()]
    const session = await driver.session()
    const listening = await driver.listen?.('counted', () => undefined)
    const other = await driver.own.connect()
    const transacting = driver.transaction(
      async () => {
        inside.resolve()
        await done.promise
      },
      { scopes: [] },
    )
    await inside.promise
    const holder = await callerTransaction(fixture)
    await holder.query(`LOCK TABLE kept IN ACCESS EXCLUSIVE MODE`)
    const reading = driver.alone.query(statement('SELECT FROM kept'))
    await waitUntil('all five are taken', () => (driver.own.totalCount === 5 ? true : undefined))
    const error = await rejected(driver.alone.query(statement('SELECT 1')))
    expect(error).toMatchObject({
      code: 'POOL_STARVED',
      details: {
        subject: '5 connections, 1 in transactions of Holdfast, 1 taken by others',
        held: { size: 5, transactions: 1, statements: 1, sessions: 2, others: 1, waiting: 1 },
      },
    })
    const { oldestMs } = error.details['held'] as { oldestMs: number }
    expect(oldestMs).toBeGreaterThan(90)
    expect(oldestMs).toBeLessThan(performance.now() - began + 1)
    done.resolve()
    await transacting
    await holder.query('ROLLBACK')
    await reading
    await session.end()
    await listening?.end()
    other.release()
    // Who is gone is not counted any more, and who waited in vain has taken nothing.
    await waitUntil('all are idle', () =>
      driver.own.totalCount === driver.own.idleCount ? true : undefined,
    )
    expect(driver.own.waitingCount).toBe(0)
  })

  test('a connection that comes too late goes back', async () => {
    const driver = small(1, 100)
    const other = await driver.own.connect()
    expect((await rejected(driver.alone.query(statement('SELECT 1')))).code).toBe('POOL_STARVED')
    other.release()
    expect(await driver.alone.query(statement('SELECT 1 AS one'))).toEqual([{ one: 1 }])
    expect(driver.own.idleCount).toBe(1)
  })

  test('the shorter limit counts, and none where one is idle', async () => {
    const driver = small(1, 60_000)
    await driver.alone.query(statement('SELECT 1'))
    expect(
      await driver.alone.query({ ...statement('SELECT 1 AS one'), connectWithinMs: 1 }),
    ).toEqual([{ one: 1 }])
    const other = await driver.own.connect()
    const began = performance.now()
    const failing = driver.alone.query({ ...statement('SELECT 1'), connectWithinMs: 50 })
    expect((await rejected(failing)).code).toBe('POOL_STARVED')
    expect(performance.now() - began).toBeLessThan(20_000)
    other.release()
  })

  /** A pool on a server that does not answer. */
  function unanswered(connectionString: string, settings: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString, max: 2, ...settings })
    pool.on('error', () => undefined)
    onTestFinished(() => void pool.end())
    return pool
  }

  test('that are only being opened are not taken', async () => {
    const pool = unanswered(await mute())
    const driver = fromPg(pool, { connectWithin: 50 })
    const ask = (): Promise<HoldfastError> => rejected(driver.alone.query(statement('SELECT 1')))
    const early = await Promise.all([ask(), ask(), ask(), ask()])
    // Who gave up is still connecting.
    const late = await ask()
    expect([...early, late].map(({ code }) => code)).toEqual(
      Array(5).fill('CONNECTION_UNAVAILABLE'),
    )
    expect([pool.totalCount, pool.waitingCount]).toEqual([2, 3])
  })

  test('that are only being opened are not counted as those of others', async () => {
    const url = new URL(await mute())
    const pool = unanswered(fixture.database.url)
    const driver = fromPg(pool, { connectWithin: 50 })
    const other = await pool.connect()
    Object.assign(pool.options, { connectionString: url.href })
    const ask = (): Promise<HoldfastError> => rejected(driver.alone.query(statement('SELECT 1')))
    const told = await Promise.all([ask(), ask()])
    for (const error of told) {
      expect(error).toMatchObject({
        code: 'POOL_STARVED',
        details: { held: { size: 2, others: 1, waiting: 1 } },
      })
    }
    other.release()
  })

  test.each([
    ['a server that says nothing', undefined],
    ['a server that hangs up', (socket: Socket) => void socket.end()],
  ])("the pool's own limit, and %s", async (_, hear) => {
    const pool = unanswered(await mute(hear), { connectionTimeoutMillis: 100 })
    const hf = createHoldfast(fromPg(pool))
    const ask = async (): Promise<readonly string[]> => {
      const reasons: string[] = []
      await rejected(
        hf.transaction(async () => expect.unreachable(), {
          // Tried again all the same: it has not run.
          retry: { attempts: 1, budget: '60 s' },
          onRetry({ reason, error }) {
            reasons.push(reason)
            if (reasons.length === 3) throw error
          },
        }),
      )
      return reasons
    }
    for (const reasons of await Promise.all([ask(), ask(), ask(), ask()])) {
      expect(reasons).toEqual(Array(3).fill('CONNECTION_UNAVAILABLE'))
    }
  })

  test('taken by others only are not said to be ours', async () => {
    const driver = small(1, 50)
    const other = await driver.own.connect()
    const error = await rejected(driver.alone.query(statement('SELECT 1')))
    expect(error).toMatchObject({
      code: 'POOL_STARVED',
      details: { held: { others: 1, oldestMs: 0 } },
    })
    other.release()
  })

  test('that the server refuses for good are not said to be late', async () => {
    const url = new URL(fixture.database.url)
    url.pathname = '/no_such_database'
    const pool = new pg.Pool({ connectionString: url.href, max: 1 })
    onTestFinished(async () => await pool.end())
    const refused = await rejected(fromPg(pool).alone.query(statement('SELECT 1')))
    expect(refused.code).toBe('3D000')
  })

  test('of a pool that does not count are late by its own word', async () => {
    const late = new Error('timeout exceeded when trying to connect')
    const pool: PgPool = { connect: async () => await Promise.reject(late) }
    const error = await rejected(fromPg(pool).alone.query(statement('SELECT 1')))
    expect(error).toMatchObject({ code: 'POOL_STARVED', cause: late })
    expect(error.details['held']).toBeUndefined()
  })

  test('a connection whose statement failed is kept, and one that leads to a standby is not', async () => {
    const driver = small(1, 1_000)
    const pid = async (): Promise<unknown> =>
      (await driver.alone.query(statement('SELECT pg_backend_pid() AS pid')))[0]?.['pid']
    const first = await pid()
    await rejected(driver.alone.query(statement('SELECT 1 / 0')))
    expect(await pid()).toBe(first)
    await rejected(
      driver.alone.query(
        statement(`DO $$ BEGIN RAISE EXCEPTION 'read only' USING ERRCODE = '25006'; END $$`),
      ),
    )
    expect(await pid()).not.toBe(first)
  })
})

describe('what opens a guard', () => {
  const key = (): LockKey => lockKey('opening', fresh())

  async function openings(client: pg.PoolClient): Promise<readonly string[]> {
    const { rows } = await client.query<{ name: string }>(
      `SELECT name FROM pg_prepared_statements WHERE name LIKE 'holdfast_open_%' ORDER BY name`,
    )
    return rows.map(({ name }) => name)
  }

  test('is prepared from the second time on, and again when the server has forgotten it', async () => {
    const own = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    onTestFinished(async () => await own.end())
    const hf = createHoldfast(fromPg(own))
    const prepared: (readonly string[])[] = []
    for (const forgets of [false, false, false, true, false, false]) {
      prepared.push(
        await hf.guard(key(), async (tx) => {
          const names = await openings(tx)
          if (forgets) await tx.query('DEALLOCATE ALL')
          return names
        }),
      )
    }
    const [first, second, third, fourth, after, again] = prepared
    expect(first).toEqual([])
    expect(second).toHaveLength(2)
    expect([third, fourth]).toEqual([second, second])
    // Sent again without names, and then as in the beginning.
    expect([after, again]).toEqual([[], []])
    expect(await hf.guard(key(), openings)).toEqual(second)
  })

  test('is sent once, whatever it fails with', async () => {
    const own = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    onTestFinished(async () => await own.end())
    const hf = createHoldfast(fromPg(own))
    const held = key()
    const holder = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(holder, held)
    let sent = 0
    own.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      client.query = ((...args: unknown[]) => {
        sent += 1
        return query(...args)
      }) as never
    })
    // What opens it, ROLLBACK, and the query for who has it. Through a pooler it does not wait, and what does follows.
    for (const most of [3, fixture.database.throughPooler ? 4 : 3]) {
      sent = 0
      const error = await rejected(hf.guard(held, async () => expect.unreachable(), { wait: 200 }))
      expect(error.code).toBe('LOCK_TIMEOUT')
      const once = sent
      for (let n = 0; n < 3; n += 1) await hf.guard(key(), async () => undefined)
      expect(once).toBeLessThanOrEqual(most)
    }
  })
})

describe('statements with a name', () => {
  const named = (n: number, text = `SELECT ${n}::int4 AS n`): Statement => ({
    ...statement(text),
    name: 'some',
  })

  /** One connection, so that every statement meets what the ones before have left. */
  function single(): { pool: pg.Pool; prepared: () => Promise<number> } {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    onTestFinished(async () => await pool.end())
    const prepared = async (): Promise<number> => {
      const { rows } = await pool.query<{ count: number }>(
        `SELECT count(*)::int4 FROM pg_prepared_statements WHERE name LIKE 'holdfast\\_some%'`,
      )
      return rows[0]?.count as number
    }
    return { pool, prepared }
  }

  test('are prepared from the second use of a connection on, up to a hundred, and any number is answered', async () => {
    const { pool, prepared } = single()
    const { alone } = fromPg(pool)
    await alone.query(named(0))
    expect(await prepared()).toBe(0)
    await alone.query(named(1))
    await alone.query(named(1))
    expect(await prepared()).toBe(1)
    for (let n = 2; n <= 1_005; n += 1) expect(await alone.query(named(n))).toEqual([{ n }])
    expect(await prepared()).toBe(100)
    // What is prepared is still found, after names were forgotten.
    expect(await alone.query(named(1))).toEqual([{ n: 1 }])
    expect(await prepared()).toBe(100)
  }, 120_000)

  test('are not prepared where that is turned off, nor without a name', async () => {
    const { pool, prepared } = single()
    const never = fromPg(pool, { prepare: 'never' }).alone
    for (let n = 0; n < 3; n += 1) await never.query(named(1))
    const auto = fromPg(pool).alone
    for (let n = 0; n < 3; n += 1) await auto.query(statement('SELECT 1'))
    expect(await prepared()).toBe(0)
  })

  test('nor where the connection is not the one that the client thinks it is', async () => {
    const { pool, prepared } = single()
    pool.on('connect', (client) => {
      Object.defineProperty(client, 'processID', { value: 1, writable: true })
    })
    const { alone } = fromPg(pool)
    for (let n = 0; n < 4; n += 1) expect(await alone.query(named(7))).toEqual([{ n: 7 }])
    expect(await prepared()).toBe(0)
  })

  test.each(['processID', 'getTypeParser', 'connection'])('nor without %s', async (hidden) => {
    const { pool, last } = hiding(hidden)
    const { alone } = fromPg(pool)
    const queries: Row[][] = []
    for (let n = 0; n < 4; n += 1) queries.push([...(await alone.query(named(7)))])
    expect(queries).toEqual(Array.from({ length: 4 }, () => [{ n: 7 }]))
    const { rows } = await last().query(
      `SELECT FROM pg_prepared_statements WHERE statement LIKE 'SELECT 7%'`,
    )
    expect(rows).toEqual([])
  })

  test('that tell the process id themselves are prepared from the second time on', async () => {
    const { pool, prepared } = single()
    const { alone } = fromPg(pool)
    const telling: Statement = {
      ...named(1, 'SELECT pg_backend_pid() AS pid, 1::int4 AS n'),
      columns: ['pid', 'n'],
    }
    const [first] = await alone.query(telling)
    expect(await prepared()).toBe(0)
    expect(await alone.query(telling)).toEqual([first])
    expect(await prepared()).toBe(1)
    expect(first).toMatchObject({ n: '1' })
  })

  test('are sent again without it when the server has forgotten them, or their columns changed', async () => {
    const { pool, prepared } = single()
    const { alone } = fromPg(pool)
    await fixture.observer.query('CREATE TABLE shifting (n int4)')
    await fixture.observer.query('INSERT INTO shifting VALUES (1)')
    const all = named(0, 'SELECT * FROM shifting')
    for (let n = 0; n < 3; n += 1) expect(await alone.query(all)).toEqual([{ n: 1 }])
    expect(await prepared()).toBe(1)
    await fixture.observer.query('ALTER TABLE shifting ADD COLUMN more int4 DEFAULT 2')
    expect(await alone.query(all)).toEqual([{ n: 1, more: 2 }])
    expect(await alone.query(all)).toEqual([{ n: 1, more: 2 }])
    expect(await alone.query(all)).toEqual([{ n: 1, more: 2 }])
    await pool.query('DEALLOCATE ALL')
    expect(await alone.query(all)).toEqual([{ n: 1, more: 2 }])
    // Another failure is the caller's.
    expect((await rejected(alone.query(named(0, 'SELECT 1 / 0')))).code).toBe('22012')
    await fixture.observer.query('DROP TABLE shifting')
    expect((await rejected(alone.query(all))).code).toBe('42P01')
  })

  test('mean what their text says, whatever else has the same name', async () => {
    const { pool } = single()
    const { alone } = fromPg(pool)
    for (let n = 0; n < 3; n += 1) {
      expect(await alone.query(named(1))).toEqual([{ n: 1 }])
      expect(await alone.query(named(2))).toEqual([{ n: 2 }])
    }
  })
})

describe('a session', () => {
  test('hears its own channel, with and without a payload', async () => {
    const { pool, last } = hiding()
    const heard: string[] = []
    const listening = await fromPg(pool).listen?.('Some Channel', (payload) => heard.push(payload))
    await last().query('LISTEN other')
    for (const text of [
      `NOTIFY other, 'no'`,
      `NOTIFY "Some Channel"`,
      `NOTIFY "Some Channel", 'yes'`,
    ]) {
      await fixture.observer.query(text)
    }
    await waitUntil('both are heard', () => (heard.length === 2 ? true : undefined))
    expect(heard).toEqual(['', 'yes'])
    await listening?.end()
  })

  test('that cannot listen gives its connection up', async () => {
    const { pool, last } = hiding()
    const refusing: PgPool = {
      async connect() {
        const client = await pool.connect()
        const query = client.query.bind(client)
        client.query = (text, ...rest) =>
          query(text.startsWith('LISTEN') ? 'LISTEN' : text, ...rest)
        return client
      },
    }
    const before = fixture.pool.totalCount
    const failing = fromPg(refusing).listen?.('c', () => undefined) as Promise<unknown>
    expect((await rejected(failing)).code).toBe('42601')
    expect(last().listenerCount('notification')).toBe(1)
    expect(fixture.pool.totalCount).toBeLessThan(before + 1)
    expect((await rejected(last().query('SELECT 1'))).message).toMatch(/closed|not queryable/)
  })

  test('says when it is lost, to what is under way too, and ends all the same', async () => {
    const driver = fromPg(fixture.pool)
    const session = await driver.session()
    const [row] = await session.query(statement('SELECT pg_backend_pid() AS pid'))
    expect(session.claimedPid).toBe(row?.['pid'])
    const sleeping = rejected(session.query(statement('SELECT pg_sleep(60)')))
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [row?.['pid']])
    await sleeping
    await waitUntil('it is told', () => (session.lost.aborted ? true : undefined))
    expect(session.lost.reason).toMatchObject({ code: 'CONNECTION_LOST' })
    expect(await rejected(session.query(statement('SELECT 1')))).toBe(session.lost.reason)
    const before = fixture.pool.totalCount
    await session.end()
    await session.end()
    // Its place in the pool is free again.
    expect(fixture.pool.totalCount).toBeLessThan(before)
  })

  test('that has ended is no loss, and of no use', async () => {
    const session = await fromPg(fixture.pool).session()
    const [row] = await session.query(statement('SELECT pg_backend_pid() AS pid'))
    await session.end()
    expect(session.lost.aborted).toBe(false)
    expect(await rejected(session.query(statement('SELECT 1')))).toMatchObject({
      code: 'DRIVER_HANDLE_INVALID',
      details: { subject: 'the session has ended' },
    })
    const { rows } = await fixture.observer.query('SELECT FROM pg_stat_activity WHERE pid = $1', [
      row?.['pid'],
    ])
    expect(rows).toEqual([])
  })
})
