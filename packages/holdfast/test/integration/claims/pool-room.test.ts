/** R7: handlers that work in transactions leave a connection of the pool to heartbeats and renewals. */
import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimsLostEvent, ClaimsTroubleEvent, Worker } from '../../../src/entries/claims.ts'
import type { Driver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { claimsFixture, optionsFor, type Task } from '../../support/claims-fixture.ts'
import { eventsOn } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()
const size = 4
const lease = 1_200

function smallPool(max = size): pg.Pool {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max })
  onTestFinished(async () => await pool.end())
  return pool
}

/** Handlers that keep their transactions open until they are let go, or told to stop. */
async function longHandlers(driver: Driver<pg.PoolClient>, rows: number, workers = 1) {
  const goOn = deferred<void>()
  const tables: string[] = []
  const running: Worker[] = []
  for (let at = 0; at < workers; at += 1) {
    const { name } = await fixture.table(rows)
    tables.push(name)
    const claims = createHoldfast(driver).claims<Task>({ ...optionsFor(name), lease })
    running.push(
      await claims.run({
        concurrency: size,
        poll: { min: 5, max: 20 },
        transactionHandler: async (tx, _, { signal }) => {
          await tx.query('SELECT 1')
          await new Promise<void>((resolve, reject) => {
            void goOn.promise.then(resolve)
            signal.addEventListener('abort', () => reject(signal.reason as Error))
          })
        },
      }),
    )
  }
  onTestFinished(async () => {
    goOn.resolve()
    await Promise.all(running.map((worker) => worker.stop({ within: 1 })))
  })
  return { goOn, tables, running }
}

/** The earliest end of a lease, once every claimed row's has been moved three times. */
async function threeBeats(table: string): Promise<void> {
  const earliest = async (): Promise<number> => {
    const { rows } = await fixture.observer.query<{ until: Date | null }>(
      `SELECT min(until) AS until FROM ${table} WHERE state = 'busy'`,
    )
    return rows[0]?.until?.getTime() ?? 0
  }
  let last = await waitUntil('rows are claimed', async () => (await earliest()) || undefined)
  for (let beat = 0; beat < 3; beat += 1) {
    last = await waitUntil(
      'all leases are longer',
      async () => {
        const now = await earliest()
        return now > last ? now : undefined
      },
      { limitMs: 5_000 },
    )
  }
}

describe('R7: concurrency as high as the pool', () => {
  test('claims outlive their lease, and all rows are done', async () => {
    const [lost, trouble] = [
      eventsOn<ClaimsLostEvent>('holdfast:claims.lost'),
      eventsOn<ClaimsTroubleEvent>('holdfast:claims.trouble'),
    ]
    const { goOn, tables, running } = await longHandlers(fromPg(smallPool()), 6)
    const [name] = tables as [string]
    await threeBeats(name)
    expect(running[0]?.active).toBe(size - 1)
    expect(lost).toEqual([])
    expect(trouble.map(({ during }) => during)).toEqual(['pool'])
    goOn.resolve()
    await running[0]?.drain()
    expect((await fixture.rows(name)).every(({ state }) => state === 'ok')).toBe(true)
  })

  test.each([size, 100])(
    'without a concurrency it is what fits a pool of %i, and nothing is told',
    async (max) => {
      const trouble = eventsOn<ClaimsTroubleEvent>('holdfast:claims.trouble')
      const most = Math.min(10, max - 1)
      const { name } = await fixture.table(12)
      const [goOn, full] = [deferred<void>(), deferred<void>()]
      let active = 0
      const claims = createHoldfast(fromPg(smallPool(max))).claims<Task>(optionsFor(name))
      const worker = await claims.run({
        transactionHandler: async () => {
          active += 1
          if (active === most) full.resolve()
          await goOn.promise
        },
      })
      await full.promise
      expect(worker.active).toBe(most)
      goOn.resolve()
      await worker.drain()
      expect(trouble).toEqual([])
    },
  )

  test('two workers on one pool leave one connection together', async () => {
    const lost = eventsOn<ClaimsLostEvent>('holdfast:claims.lost')
    const pool = smallPool()
    // Two drivers over the same pool, as two parts of an application may have.
    const { tables } = await longHandlers(
      { ...fromPg(pool), transaction: fromPg(pool).transaction },
      size,
      2,
    )
    await Promise.all(tables.map(threeBeats))
    expect(lost).toEqual([])
  })

  test('renewals of a lease on the same pool get through', async () => {
    const driver = fromPg(smallPool())
    await migrate(driver)
    const held = await createHoldfast(driver).leases.acquire('nightly', { ttl: lease })
    await longHandlers(driver, size)
    let last = 0
    for (let renewal = 0; renewal < 4; renewal += 1) {
      last = await waitUntil('the lease is renewed', async () => {
        const { rows } = await fixture.observer.query<{ until: Date }>(
          'SELECT expires_at AS until FROM holdfast.lease',
        )
        const now = rows[0]?.until.getTime() ?? 0
        return now > last ? now : undefined
      })
    }
    expect(held.signal.aborted).toBe(false)
    await held.release()
  })

  test('control: without room for heartbeats every claim is lost', async () => {
    const lost = eventsOn<ClaimsLostEvent>('holdfast:claims.lost')
    const driver = fromPg(smallPool())
    await longHandlers({ ...driver, capabilities: {} }, size)
    await waitUntil(
      'all are lost',
      () => lost.reduce((sum, { count }) => sum + count, 0) >= size || undefined,
    )
    expect(lost[0]).toMatchObject({ verb: 'deadline' })
  })

  test('a pool of one connection is refused', async () => {
    await expect(longHandlers(fromPg(smallPool(1)), 1)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })
})
