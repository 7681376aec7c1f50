import { deferred, type PostgresServer, startPostgres, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { withCircuit } from '../../../src/drivers/circuit.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { eventsOn } from '../../support/pg-fixture.ts'

/** A server of our own, which is killed and comes back; and pools that are too small. */
let server: PostgresServer
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>

beforeAll(async () => {
  server = await startPostgres()
  pool = poolOf(4)
  await migrate(fromPg(pool))
  hf = createHoldfast(fromPg(pool))
})
afterAll(async () => {
  await pool.end()
  await server.stop('immediate')
})

function poolOf(max: number, settings: pg.PoolConfig = {}): pg.Pool {
  const made = new pg.Pool({ connectionString: server.url(), max, ...settings })
  made.on('error', () => undefined)
  return made
}

const quota = (of: Holdfast<pg.PoolClient>) =>
  of.quota({ name: 'calls', limit: 100, per: 'lifetime' })

async function down(): Promise<void> {
  await server.kill()
  await waitUntil('the pool has noticed', () => pool.totalCount === 0 || undefined)
}

describe('a server that is killed and comes back', () => {
  test('is waited for by everything', async () => {
    await down()
    const retries = eventsOn('holdfast:tx.retry')
    const working = Promise.all([
      quota(hf).consume('a', 1, { operationId: 'one' }),
      hf.once('hook', () => 'done'),
      hf.leases.acquire('lease').then(async (lease) => await lease.release()),
      hf.guard(lockKey('outage', 1), async () => 'guarded'),
      hf.leases.read('another'),
    ])
    await waitUntil('all have tried in vain', () => retries.length >= 10 || undefined)
    await server.startAgain()
    expect(await working).toMatchObject([
      { ok: true },
      { ok: true, result: 'done' },
      true,
      'guarded',
      undefined,
    ])
  })

  test('that does not come back in time: everything is refused, nothing is let through', async () => {
    const hasty = createHoldfast(fromPg(pool), { resolveFor: '200 ms' })
    await down()
    let ran = 0
    const body = async (): Promise<void> => {
      ran += 1
    }
    const retry = { budgetMs: 200 }
    const attempts = [
      quota(hasty).consume('a', 1, { operationId: 'two' }),
      quota(hasty).withHold('a', { estimate: 1, ttl: '1 min', operationId: 'three' }, body),
      hasty.once('other', body, { retry }),
      hasty.guard(lockKey('outage', 2), body, { retry }),
      hasty.transaction(body, { retry }),
      hasty.leases.acquire('lease', { wait: '200 ms' }),
      hasty.leases.tryAcquire('lease'),
    ]
    for (const outcome of await Promise.allSettled(attempts)) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { code: 'CONNECTION_UNAVAILABLE', name: 'DriverError', retryable: true },
      })
    }
    expect(ran).toBe(0)
    await server.startAgain()
  })
})

describe('a circuit', () => {
  test('opens after failures in a row, refuses at once, and closes when one call succeeds', async () => {
    const guarded = createHoldfast(withCircuit(fromPg(pool), { failures: 3, openFor: '300 ms' }))
    const once = { retry: false } as const
    const attempt = (): Promise<unknown> =>
      guarded.transaction(async () => 'ran', once).catch((error: unknown) => error)
    await down()
    for (let failures = 0; failures < 3; failures += 1) {
      expect(await attempt()).toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    }
    const refused = (await attempt()) as { code: string; details: { retryInMs: number } }
    expect(refused).toMatchObject({ code: 'CIRCUIT_OPEN', retryable: true })
    expect(refused.details.retryInMs).toBeGreaterThan(0)
    // An operation that could be asked for again is refused as well, without waiting.
    await expect(quota(guarded).consume('a', 1, { operationId: 'four' })).rejects.toMatchObject({
      code: 'CIRCUIT_OPEN',
    })

    // The one that tries finds nobody: open for as long again, for everybody else at the same time too.
    await waitUntil('one call is let through', async () => {
      const tried = (await attempt()) as { code: string }
      return tried.code === 'CONNECTION_UNAVAILABLE' || undefined
    })
    expect(await attempt()).toMatchObject({ code: 'CIRCUIT_OPEN' })

    await server.startAgain()
    await waitUntil('it is closed', async () => (await attempt()) === 'ran' || undefined)
    expect(await Promise.all([attempt(), attempt(), attempt()])).toEqual(['ran', 'ran', 'ran'])
  })

  test('T2: the call that tries is done as soon as the database has answered', async () => {
    const once = { retry: false } as const
    type Body = () => Promise<void>
    /** One for each way to open a transaction: a guard sends its lock together with BEGIN. */
    const ways = [
      (each: typeof hf, body: Body) => each.transaction(body, once),
      (each: typeof hf, body: Body) => each.guard(lockKey('circuit', 1), body, once),
    ].map((open) => ({
      open,
      guarded: createHoldfast(withCircuit(fromPg(pool), { failures: 1, openFor: '300 ms' })),
    }))
    await down()
    for (const { guarded } of ways) {
      await expect(guarded.transaction(async () => 'ran', once)).rejects.toMatchObject({
        code: 'CONNECTION_UNAVAILABLE',
      })
    }
    await server.startAgain()
    for (const { open, guarded } of ways) {
      const [entered, leave] = [deferred(), deferred()]
      onTestFinished(() => leave.resolve())
      const trying = waitUntil('one call is let through', async () => {
        const tried = open(guarded, async () => {
          entered.resolve()
          await leave.promise
        })
        return (await tried.catch((error: unknown) => error)) === undefined || undefined
      })
      await entered.promise
      // Its body is still running.
      await expect(guarded.transaction(async () => 'ran', once)).resolves.toBe('ran')
      leave.resolve()
      await trying
    }
  })

  test('an error of the work is no failure of the database', async () => {
    const guarded = createHoldfast(withCircuit(fromPg(pool), { failures: 1 }))
    const own = new Error('mine')
    await expect(guarded.transaction(() => Promise.reject(own))).rejects.toBe(own)
    await expect(guarded.transaction(async () => 'ran')).resolves.toBe('ran')
  })

  test('refuses options that cannot work', () => {
    expect(() => withCircuit(fromPg(pool), { failures: 0 })).toThrow(/OPTION_INVALID/)
  })
})

describe('a pool that is too small', () => {
  /** Holds all connections of a pool in transactions, until the test ends. */
  async function exhausted(small: pg.Pool, holder: Holdfast<pg.PoolClient>): Promise<void> {
    const end = deferred()
    const inside = Array.from({ length: small.options.max ?? 0 }, () => deferred())
    const holding = inside.map((entered) =>
      holder.transaction(async () => {
        entered.resolve()
        await end.promise
      }),
    )
    onTestFinished(async () => {
      end.resolve()
      await Promise.all(holding)
      await small.end()
    })
    await Promise.all(inside.map(({ promise }) => promise))
  }

  test('is named, with who has its connections', async () => {
    const small = poolOf(2)
    const mine = createHoldfast(fromPg(small, { connectWithin: '100 ms' }))
    await exhausted(small, mine)
    const held = { size: 2, transactions: 2, others: 0, statements: 0 }
    for (const attempt of [
      mine.transaction(async () => 'in'),
      mine.leases.tryAcquire('lease'),
      quota(mine).consume('a', 1, { operationId: 'five' }),
    ]) {
      await expect(attempt).rejects.toMatchObject({ code: 'POOL_STARVED', details: { held } })
    }
    // Control: without a limit it waits for as long as it is let.
    const patient = createHoldfast(fromPg(small, { connectWithin: '1 h' }))
    await expect(patient.transaction(async () => 'in', { deadlineMs: 300 })).rejects.toMatchObject({
      code: 'TX_DEADLINE',
    })
  })

  test('a transaction inside a transaction, by another Holdfast on the same pool', async () => {
    const small = poolOf(1)
    onTestFinished(() => small.end())
    const outer = createHoldfast(fromPg(small))
    const inner = createHoldfast(fromPg(small, { connectWithin: '100 ms' }))
    const nested = outer.transaction(async () => await inner.transaction(async () => 'never'))
    await expect(nested).rejects.toMatchObject({
      code: 'POOL_STARVED',
      message: expect.stringContaining(
        '1 connections, 0 in transactions of Holdfast, 1 taken by others',
      ),
    })
  })

  test('by the limit of the pool itself too', async () => {
    const small = poolOf(1, { connectionTimeoutMillis: 100 })
    await exhausted(small, createHoldfast(fromPg(small)))
    await expect(createHoldfast(fromPg(small)).transaction(async () => 'in')).rejects.toMatchObject(
      { code: 'POOL_STARVED' },
    )
  })

  test('gives connections back that come too late', async () => {
    const small = poolOf(1)
    const [inside, end] = [deferred(), deferred()]
    const mine = createHoldfast(fromPg(small, { connectWithin: '500 ms' }))
    const holding = mine.transaction(async () => {
      inside.resolve()
      await end.promise
    })
    await inside.promise
    await expect(mine.transaction(async () => 'in')).rejects.toMatchObject({ code: 'POOL_STARVED' })
    end.resolve()
    await holding
    await waitUntil('it is idle', () => small.idleCount === 1 || undefined)
    await expect(mine.transaction(async () => 'in')).resolves.toBe('in')
    await small.end()
  })
})
