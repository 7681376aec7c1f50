import { expect, test } from 'vitest'
import { callerTransaction } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import { JobTable, startOn } from './job-table.ts'

eachInnodb((place) => {
  const options = (jobs: JobTable) =>
    ({ mode: 'transaction', table: jobs.name, columns: { runAt: 'run_at' } }) as const

  test('the lock on the row is the claim, and a rollback frees it', async () => {
    const jobs = await JobTable.make(place, 3)
    const { pool, hf } = startOn(place)
    const jobsOf = hf.claims<{ id: number; status: string }>(options(jobs))
    const [one, two] = [await callerTransaction(pool), await callerTransaction(pool)]
    const first = await jobsOf.take(one, 2)
    expect(first.map(({ row }) => [row.id, row.status])).toEqual([
      [1, 'pending'],
      [2, 'pending'],
    ])
    const second = await jobsOf.take(two, 2)
    expect(second.map(({ key }) => key)).toEqual([['3']])
    await jobsOf.finish(one, first)
    await one.rollback()
    await jobsOf.finish(two, second)
    await two.commit()
    expect(await jobs.states()).toBe('pending,pending,done')
    const third = await callerTransaction(pool)
    expect(await jobsOf.take(third, 5)).toHaveLength(2)
    await third.rollback()
  })

  test('at REPEATABLE READ what others have finished since the snapshot is not taken', async () => {
    const jobs = await JobTable.make(place, 2)
    const { pool, hf } = startOn(place)
    const jobsOf = hf.claims<{ id: number }>(options(jobs))
    const tx = await callerTransaction(pool, 'REPEATABLE READ')
    await tx.query(`SELECT * FROM ${jobs.name}`)
    await hf.transaction(async (other) => {
      await jobsOf.finish(other, await jobsOf.take(other, 1))
    })
    // MariaDB from 11.6 on says by itself that the snapshot is older (1020).
    const told: unknown = await jobsOf
      .take(tx, 2)
      .then((taken) => taken.map(({ row }) => row.id))
      .catch((error: { errno?: unknown }) => error.errno)
    expect([1020, '[2]']).toContain(typeof told === 'number' ? told : JSON.stringify(told))
  })

  test('what is not pending any more is no longer ours, and outside of a transaction nothing is taken', async () => {
    const jobs = await JobTable.make(place, 1)
    const { pool, hf } = startOn(place)
    const jobsOf = hf.claims(options(jobs))
    const failing = hf.transaction(async (tx) => {
      const taken = await jobsOf.take(tx, 1)
      await jobsOf.finish(tx, taken)
      await jobsOf.finish(tx, taken)
    })
    await expect(failing).rejects.toMatchObject({ code: 'CLAIM_LOST' })
    const outside = await pool.connect()
    await expect(jobsOf.take(outside, 1)).rejects.toMatchObject({
      code: 'CLAIM_OUTSIDE_TRANSACTION',
    })
    await outside.release()
    expect(await jobs.states()).toBe('pending')
  })
}, 'the server')
