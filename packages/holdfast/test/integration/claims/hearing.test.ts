/** Workers that are woken by NOTIFY: nothing is missed before they listen, nor after their connection is lost. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHoldfast } from '../../../src/index.ts'
import { on } from '../../../src/observe/on.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
/** No worker looks by itself in the time of a test. */
const poll = { min: '10 min', max: '10 min' } as const

/** Whoever listens to the channel of a queue. */
async function listeners(): Promise<number[]> {
  const { rows } = await fixture.observer.query(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN %'`,
  )
  return rows.map(({ pid }) => pid as number)
}

describe('woken by NOTIFY', () => {
  test('what was added between the first look and LISTEN is done', async ({ skip }) => {
    if (fixture.database.throughPooler) skip()
    const driver = fromPg(fixture.pool)
    const [looked, mayListen] = [deferred<void>(), deferred<void>()]
    const late: typeof driver = {
      ...driver,
      listen: async (channel, heard) => {
        await mayListen.promise
        return await driver.listen(channel, heard)
      },
    }
    const hf = createHoldfast(late)
    const work = hf.work<number>({ queue: 'early', notify: true })
    onTestFinished(on('claims.claimed', ({ count }) => void (count === 0 && looked.resolve())))
    const done = deferred<number>()
    const worker = await work.run({ poll, handler: async ({ payload }) => done.resolve(payload) })
    onTestFinished(async () => void (await worker.stop()))
    await looked.promise
    await work.enqueue({ payload: 7 })
    mayListen.resolve()
    expect(await done.promise).toBe(7)
  })

  test('a connection that is lost is replaced, and what came meanwhile is done', async ({
    skip,
  }) => {
    if (fixture.database.throughPooler) skip()
    const work = fixture.hf.work<number>({ queue: 'lost', notify: true })
    const seen: number[] = []
    const worker = await work.run({ poll, handler: async ({ payload }) => void seen.push(payload) })
    onTestFinished(async () => void (await worker.stop()))
    const [first] = await waitUntil('it listens', async () => {
      const pids = await listeners()
      return pids.length > 0 ? pids : undefined
    })
    await fixture.observer.query('SELECT pg_terminate_backend($1, 5000)', [first])
    await work.enqueue({ payload: 8 })
    await waitUntil('it is done', () => (seen.includes(8) ? true : undefined))
    await waitUntil('another one listens', async () => {
      const pids = await listeners()
      return pids.length > 0 && !pids.includes(first as number) ? true : undefined
    })
    await work.enqueue({ payload: 9 })
    await waitUntil('that is heard', () => (seen.includes(9) ? true : undefined))
    expect(seen).toEqual([8, 9])
  })
})
