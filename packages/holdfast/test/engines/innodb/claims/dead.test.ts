import { expect, test } from 'vitest'
import type { Claims } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'
import { type JobRow, JobTable, startOn, usual } from './job-table.ts'

eachInnodb((place) => {
  const withDead = async (
    rows: number,
  ): Promise<{ jobs: JobTable; claims: Claims<Handle, JobRow> }> => {
    const jobs = await JobTable.make(place, rows)
    const claims = startOn(place).hf.claims<JobRow>({ ...jobs.options, maxAttempts: 1 })
    await claims.fail(await claims.claim(rows), { error: new Error('mine') })
    return { jobs, claims }
  }

  test('dead rows are listed by pages, and one is found by its key', async () => {
    const { claims } = await withDead(5)
    const seen: number[] = []
    let after: string | undefined
    do {
      const page = await claims.dead.list({ limit: 2, ...(after === undefined ? {} : { after }) })
      seen.push(...page.rows.map(({ row }) => row.id))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual([1, 2, 3, 4, 5])
    expect(await claims.dead.get('3')).toMatchObject({
      key: ['3'],
      attempts: 1,
      error: 'mine',
      row: { id: 3, status: 'dead' },
    })
    expect(await claims.dead.get('6')).toBeUndefined()
    for (const wrong of ['3x', '']) {
      await expect(claims.dead.get(wrong)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    await expect(claims.dead.list({ after: '[0,"1"]' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('they are tried again with all their attempts, or deleted', async () => {
    const { jobs, claims } = await withDead(4)
    expect(await claims.dead.retry(['1', '3', '9'])).toEqual({
      done: [['1'], ['3']],
      taken: [],
      missing: [['9']],
    })
    expect(await claims.dead.delete('2')).toMatchObject({ done: [['2']] })
    expect(await claims.dead.retry('1')).toMatchObject({ missing: [['1']] })
    expect(await jobs.states()).toBe('pending,pending,dead')
    expect((await claims.claim(9)).map(({ key, attempt }) => [key[0], attempt])).toEqual([
      ['1', 1],
      ['3', 1],
    ])
  })

  test('one whose unique key another row has stays dead', async () => {
    const jobs = await JobTable.make(place, 0, {
      ...usual,
      name: 'VARCHAR(9)',
      live: "VARCHAR(9) AS (IF(status IN ('pending', 'claimed'), name, NULL)) STORED UNIQUE",
    })
    const claims = startOn(place).hf.claims<JobRow>({ ...jobs.options, maxAttempts: 1 })
    await jobs.run(`INSERT INTO ${jobs.name} (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')`)
    await claims.fail(await claims.claim(9))
    await jobs.run(`INSERT INTO ${jobs.name} (id, name) VALUES (4, 'b')`)
    expect(await claims.dead.retry(['1', '2', '3'])).toEqual({
      done: [['1'], ['3']],
      taken: [['2']],
      missing: [],
    })
    expect(await jobs.states()).toBe('pending,dead,pending,pending')
  })
}, 'the server')
