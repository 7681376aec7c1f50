import { expect, onTestFinished, test } from 'vitest'
import { createHoldfast } from '../../../../src/mysql.ts'
import { openClient } from '../support/innodb-clients.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import { JobTable, startOn, usual } from './job-table.ts'

eachInnodb((place) => {
  const told = (findings: readonly { code: string; object: string }[], jobs: JobTable): string[] =>
    findings.map(({ code, object }) => `${code} ${object.replace(jobs.name, 'jobs')}`)

  test('a table that fits has nothing to be told, and one that is not there is told', async () => {
    const jobs = await JobTable.make(place)
    const { hf } = startOn(place)
    expect(await hf.claims(jobs.options).check()).toEqual([])
    await jobs.run(`DROP TABLE ${jobs.name}`)
    const claims = hf.claims(jobs.options)
    expect(told(await claims.check(), jobs)).toEqual(['table-missing table jobs'])
    for (const call of [() => claims.claim(), () => claims.run({ handler: async () => 1 })]) {
      await expect(call()).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
    }
    const elsewhere = hf.claims({ ...jobs.options, table: { schema: 'nowhere', table: 'jobs' } })
    expect((await elsewhere.check()).map(({ code }) => code)).toEqual(['table-missing'])
  })

  test.each([
    [{ claim_token: 'CHAR(20)' }, 'column-unfit column jobs.claim_token'],
    [{ lease_until: 'BIGINT' }, 'column-unfit column jobs.lease_until'],
    [{ run_at: 'TIMESTAMP(6) NULL' }, 'column-nullable column jobs.run_at'],
    [{ status: 'VARCHAR(6)' }, 'column-unfit column jobs.status'],
    [{ status: "ENUM('pending', 'done', 'dead')" }, 'column-unfit column jobs.status'],
    [{ id: 'DOUBLE PRIMARY KEY' }, 'key-type column jobs.id'],
    [{ id: 'INT NOT NULL' }, 'key-not-unique table jobs'],
    [{ '`#own`': 'INT' }, 'column-name column jobs.#own'],
  ])('columns that do not do: %s', async (columns, finding) => {
    const jobs = await JobTable.make(place, 0, { ...usual, ...columns } as Record<string, string>)
    const claims = startOn(place).hf.claims(jobs.options)
    expect(told(await claims.check(), jobs)).toEqual([finding])
    // Also where nobody asks beforehand.
    await expect(claims.claim()).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [{ code: finding.split(' ')[0] }] },
    })
  })

  test('columns that are not there, before and after they were', async () => {
    const jobs = await JobTable.make(place, 2)
    const claims = startOn(place).hf.claims(jobs.options)
    expect(await claims.claim()).toHaveLength(1)
    await jobs.run(`ALTER TABLE ${jobs.name} DROP COLUMN attempts`)
    await expect(claims.claim()).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [{ code: 'column-missing' }] },
    })
    expect(told(await claims.check(), jobs)).toEqual(['column-missing column jobs.attempts'])
    await jobs.run(`ALTER TABLE ${jobs.name} ADD COLUMN attempts INT`)
    expect(await claims.claim()).toMatchObject([{ key: ['2'], attempt: 1 }])
  })

  test('what is no table of InnoDB protects nothing, and is refused', async () => {
    const jobs = await JobTable.make(place, 1)
    const { hf } = startOn(place)
    await jobs.run(`CREATE VIEW ${jobs.name}_view AS SELECT * FROM ${jobs.name}`)
    const view = hf.claims({ ...jobs.options, table: `${jobs.name}_view` })
    expect((await view.check()).map(({ code }) => code)).toEqual(['table-type'])
    await jobs.run(`ALTER TABLE ${jobs.name} ENGINE=MyISAM`)
    const claims = hf.claims(jobs.options)
    expect(told(await claims.check(), jobs)).toEqual(['table-type table jobs'])
    await expect(claims.claim()).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
  })

  test('indexes that are missing are told with what makes them, and then they are there', async () => {
    const jobs = await JobTable.make(place, 1, { ...usual, priority: 'INT NOT NULL DEFAULT 0' }, [
      'KEY wrong (run_at, status)',
      'KEY begins (status(3), run_at)',
    ])
    const { columns } = jobs.options
    const options = {
      ...jobs.options,
      columns: { ...columns, priority: 'priority' },
      where: { tenant: 'one' },
    }
    const claims = startOn(place).hf.claims(options)
    const findings = await claims.check()
    expect(told(findings, jobs)).toEqual(['index-missing table jobs', 'index-missing table jobs'])
    // It is slow, and it is right.
    expect(await claims.claim()).toHaveLength(1)
    for (const { fix } of findings) await jobs.run(fix)
    expect(await claims.check()).toEqual([])
  })

  test('a DATETIME that others write is taken for UTC, which is told', async () => {
    const jobs = await JobTable.make(place, 0, { ...usual, run_at: 'DATETIME(6) NOT NULL' })
    const claims = startOn(place).hf.claims(jobs.options)
    expect(told(await claims.check(), jobs)).toEqual(['column-type column jobs.run_at'])
    await jobs.run(`INSERT INTO ${jobs.name} (id, run_at) VALUES (1, UTC_TIMESTAMP(6))`)
    expect(await claims.claim()).toHaveLength(1)
  })

  test('rights that a user has not are told with the GRANT', async () => {
    const jobs = await JobTable.make(place, 1)
    const user = jobs.name.slice(0, 20)
    await jobs.run(`CREATE USER ${user}@'127.0.0.1'`)
    onTestFinished(async () => void (await jobs.run(`DROP USER ${user}@'127.0.0.1'`)))
    await jobs.run(`GRANT SELECT ON ${jobs.name} TO ${user}@'127.0.0.1'`)
    const url = new URL(place.url())
    url.username = user
    await using pool = openClient(place.client, url.href, 4)
    const hf = createHoldfast(pool.driver)
    const [finding] = await hf.claims(jobs.options).check()
    expect(finding).toMatchObject({ code: 'privilege-missing' })
    await expect(hf.claims(jobs.options).claim()).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [{ code: 'privilege-missing' }] },
    })
    await jobs.run(finding?.fix ?? '')
    expect(await hf.claims(jobs.options).check()).toEqual([])
    expect(await hf.claims(jobs.options).claim()).toHaveLength(1)
    const deleting = hf.claims({ ...jobs.options, deleteDone: true })
    expect((await deleting.check()).map(({ code }) => code)).toEqual(['privilege-missing'])
  })
}, 'the server')
