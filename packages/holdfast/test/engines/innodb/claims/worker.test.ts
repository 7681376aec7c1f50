import { fork } from 'node:child_process'
import { once } from 'node:events'
import { deferred, waitUntil } from '@holdfast/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { eachInnodb } from '../support/each-innodb.ts'
import { type JobRow, JobTable, startOn } from './job-table.ts'

eachInnodb((place) => {
  const withEffects = async (rows: number): Promise<JobTable> => {
    const jobs = await JobTable.make(place, rows)
    await jobs.run(
      `CREATE TABLE effect_${jobs.name} (job INT NOT NULL, who VARCHAR(20)) ENGINE=InnoDB`,
    )
    return jobs
  }
  const effects = async (jobs: JobTable): Promise<number[]> =>
    (await jobs.run(`SELECT job FROM effect_${jobs.name} ORDER BY job`)).map(({ job }) =>
      Number(job),
    )

  test('two workers do all rows, each once, with the effect in the transaction of complete', async () => {
    const jobs = await withEffects(30)
    const all = Array.from({ length: 30 }, (_, at) => at + 1)
    const workers = await Promise.all(
      [1, 2].map(
        async () =>
          await startOn(place)
            .hf.claims<JobRow>(jobs.options)
            .run({
              concurrency: 4,
              transactionHandler: async (tx, { id }) => {
                await tx.query(`INSERT INTO effect_${jobs.name} VALUES (${id}, 'me')`)
              },
            }),
      ),
    )
    await Promise.all(workers.map(async (worker) => await worker.drain()))
    expect(await effects(jobs)).toEqual(all)
    expect(await jobs.states()).toBe(all.map(() => 'done').join())
  })

  test('what rejects is tried again, and is dead in the end', async () => {
    const jobs = await withEffects(2)
    const { hf } = startOn(place)
    const claims = hf.claims<JobRow>({
      ...jobs.options,
      maxAttempts: 2,
      backoff: { first: 1, most: 1 },
    })
    const seen: string[] = []
    const worker = await claims.run({
      poll: { min: 5, max: 20 },
      handler: async ({ id }, { attempt }) => {
        seen.push(`${id}/${attempt}`)
        if (id === 1) throw new Error('mine')
      },
    })
    await waitUntil(
      'both have ended',
      async () => (await jobs.states()) === 'dead,done' || undefined,
    )
    await worker.stop()
    expect(seen.toSorted()).toEqual(['1/1', '1/2', '2/1'])
  })

  test('heartbeats keep a row that is worked on for longer than its lease', async () => {
    const jobs = await withEffects(1)
    const { hf } = startOn(place)
    const claims = hf.claims<JobRow>({ ...jobs.options, lease: 1_500 })
    const go = deferred()
    const worker = await claims.run({
      recoverEvery: 50,
      handler: async (_row, { signal }) => {
        await go.promise
        signal.throwIfAborted()
      },
    })
    const leaseOf = async (): Promise<string> =>
      String(
        (await jobs.run(`SELECT CAST(lease_until AS CHAR) AS at FROM ${jobs.name}`))[0]?.['at'],
      )
    await waitUntil('it is claimed', async () => (await jobs.states()) === 'claimed' || undefined)
    const first = await leaseOf()
    await waitUntil('its first lease is over', async () => {
      const rows = await jobs.run('SELECT CAST(NOW(6) AS CHAR) AS now')
      return String(rows[0]?.['now']) > first || undefined
    })
    expect(await jobs.states()).toBe('claimed')
    go.resolve()
    await worker.drain()
    expect(await jobs.run(`SELECT status, attempts FROM ${jobs.name}`)).toEqual([
      { status: 'done', attempts: 1 },
    ])
  })

  test('rows of a process that was killed are found again, and done once', async () => {
    const jobs = await withEffects(3)
    const process = fork(
      new URL('./working-process.ts', import.meta.url),
      [place.url(), jobs.name, '400'],
      { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    )
    onTestFinished(() => void process.kill('SIGKILL'))
    await once(process, 'message')
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    expect(await claims.claim(9)).toEqual([])
    expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
    const gone = once(process, 'exit')
    process.kill('SIGKILL')
    await gone
    let freed = 0
    await waitUntil('their leases are over', async () => {
      freed += (await claims.recover()).freed
      return freed === 3 || undefined
    })
    const worker = await claims.run({
      transactionHandler: async (tx, { id }) => {
        await tx.query(`INSERT INTO effect_${jobs.name} VALUES (${id}, 'next')`)
      },
    })
    await worker.drain()
    expect(await effects(jobs)).toEqual([1, 2, 3])
    expect(await jobs.run(`SELECT DISTINCT status, attempts FROM ${jobs.name}`)).toEqual([
      { status: 'done', attempts: 2 },
    ])
  })
}, 'the server')
