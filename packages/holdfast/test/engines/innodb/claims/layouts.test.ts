import { expect, test } from 'vitest'
import type { ClaimsOptions, Holdfast } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'
import { type JobRow, JobTable, startOn, usual } from './job-table.ts'

eachInnodb((place) => {
  const keys = async (
    hf: Holdfast<Handle>,
    options: ClaimsOptions,
    limit = 9,
  ): Promise<readonly string[]> =>
    (await hf.claims(options).claim(limit)).map(({ key }) => key.join('/'))

  test('what failed waits longer each time, is dead after its last attempt, and says why', async () => {
    const jobs = await JobTable.make(place, 1)
    const { hf } = startOn(place)
    const claims = hf.claims<JobRow>({ ...jobs.options, maxAttempts: 2 })
    const first = await claims.claim(1)
    expect(await claims.fail(first, { error: new Error('mine'), retryInMs: 60_000 })).toEqual({
      kept: first,
      lost: [],
      dead: [],
    })
    expect(await claims.claim(1)).toEqual([])
    const [row] = await jobs.run(
      `SELECT last_error, TIMESTAMPDIFF(SECOND, NOW(6), run_at) AS inS, claim_token, lease_until FROM ${jobs.name}`,
    )
    expect(row).toMatchObject({ last_error: 'mine', claim_token: null, lease_until: null })
    expect(Number(row?.['inS'])).toBeGreaterThan(50)
    await jobs.run(`UPDATE ${jobs.name} SET run_at = NOW(6)`)
    const second = await claims.claim(1)
    expect(second[0]?.attempt).toBe(2)
    expect(await claims.fail(second)).toMatchObject({ kept: second, dead: second })
    expect(await jobs.states()).toBe('dead')
  })

  test('several fail at once, each with its own reason', async () => {
    const jobs = await JobTable.make(place, 3)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const got = await claims.claim(3)
    await Promise.all(got.map((claim, at) => claims.fail(claim, { error: `no ${at}` })))
    const rows = await jobs.run(`SELECT last_error FROM ${jobs.name} ORDER BY id`)
    expect(rows.map(({ last_error: why }) => why)).toEqual(['no 0', 'no 1', 'no 2'])
  })

  test.each([
    ['longer than the column', 'VARCHAR(5)', 'äöü too long', 'äöü t'],
    ['with characters that the column has not', 'VARCHAR(9) CHARACTER SET latin1', 'a😀b', 'a?b'],
    ['in a text', 'TEXT', 'a😀b', 'a😀b'],
  ])('a reason %s keeps no claim from being given back', async (_, type, error, kept) => {
    const jobs = await JobTable.make(place, 1, { ...usual, last_error: `${type}` })
    await jobs.run(`ALTER TABLE ${jobs.name} CONVERT TO CHARACTER SET utf8mb4`)
    await jobs.run(`ALTER TABLE ${jobs.name} MODIFY last_error ${type}`)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    await claims.fail(await claims.claim(1), { error })
    expect(await jobs.run(`SELECT status, last_error FROM ${jobs.name}`)).toEqual([
      { status: 'pending', last_error: kept },
    ])
  })

  test('what is released has lost no attempt', async () => {
    const jobs = await JobTable.make(place, 1)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const got = await claims.claim(1)
    expect(await claims.release(got)).toMatchObject({ kept: got })
    await jobs.run(`UPDATE ${jobs.name} SET attempts = 0`)
    expect((await claims.claim(1))[0]?.attempt).toBe(1)
  })

  test('rows whose lease is over are given back in their place, or are dead; others are not', async () => {
    const jobs = await JobTable.make(place, 4)
    const claims = startOn(place).hf.claims<JobRow>({ ...jobs.options, maxAttempts: 2 })
    await jobs.run(`UPDATE ${jobs.name} SET attempts = 1 WHERE id = 2`)
    await claims.claim(3)
    await jobs.expireLeases()
    await jobs.run(`UPDATE ${jobs.name} SET lease_until = NOW(6) + INTERVAL 1 HOUR WHERE id = 3`)
    expect(await claims.recover({ limit: 1 })).toMatchObject({ freed: 1 })
    expect(await claims.recover()).toMatchObject({ freed: 1 })
    expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
    expect(await jobs.states()).toBe('pending,dead,claimed,pending')
    expect((await claims.claim(9)).map(({ key }) => key[0])).toEqual(['1', '4'])
  })

  test('a priority comes first, and rows of the future are passed over', async () => {
    const jobs = await JobTable.make(place, 0, { ...usual, priority: 'INT NOT NULL' }, [
      'KEY due (status, priority, run_at, id)',
      'KEY leases (status, lease_until)',
    ])
    await jobs.run(
      `INSERT INTO ${jobs.name} (id, priority, run_at) VALUES
       (1, 5, NOW(6)), (2, -1, NOW(6)), (3, 5, NOW(6) - INTERVAL 1 HOUR), (4, -1, NOW(6) + INTERVAL 1 HOUR), (5, 7, NOW(6))`,
    )
    const { hf } = startOn(place)
    const options = (first: 'smallest' | 'largest'): ClaimsOptions => ({
      ...jobs.options,
      columns: { ...jobs.options.columns, priority: { column: 'priority', first } },
    })
    expect(await hf.claims(options('smallest')).check()).toEqual([])
    expect(await keys(hf, options('smallest'), 2)).toEqual(['2', '3'])
    expect(await keys(hf, options('largest'))).toEqual(['5', '1'])
  })

  test('more priorities than are looked at in one go', async () => {
    const jobs = await JobTable.make(place, 0, { ...usual, priority: 'INT NOT NULL' }, [
      'KEY due (status, priority, run_at, id)',
      'KEY leases (status, lease_until)',
    ])
    const future = Array.from(
      { length: 230 },
      (_, at) => `(${at}, ${at}, NOW(6) + INTERVAL 1 HOUR)`,
    )
    await jobs.run(`INSERT INTO ${jobs.name} (id, priority, run_at) VALUES ${future.join()}`)
    await jobs.run(`UPDATE ${jobs.name} SET run_at = NOW(6) WHERE id IN (150, 229)`)
    const { columns } = jobs.options
    const options = { ...jobs.options, columns: { ...columns, priority: 'priority' } }
    expect(await keys(startOn(place).hf, options)).toEqual(['150', '229'])
  })

  test('keys of several columns, binary ones, and others that are no numbers', async () => {
    const { hf } = startOn(place)
    const made = async (types: readonly string[], values: string): Promise<JobTable> => {
      const columns = Object.fromEntries(types.map((type, at) => [`k${at}`, `${type} NOT NULL`]))
      const { id: _, ...others } = usual
      const key = Object.keys(columns)
      const jobs = await JobTable.make(place, 0, { ...columns, ...others }, [
        `PRIMARY KEY (${key.join()})`,
        'KEY due (status, run_at)',
        'KEY leases (status, lease_until)',
      ])
      await jobs.run(`INSERT INTO ${jobs.name} (${key.join()}) VALUES ${values}`)
      return jobs
    }
    const each: readonly [types: string[], values: string, told: string[]][] = [
      [['BINARY(4)'], `(UNHEX('00ff0027')), (UNHEX('0aff0027'))`, ['00FF0027', '0AFF0027']],
      [
        ["ENUM('b','a')", 'BIGINT UNSIGNED'],
        `('a', 18446744073709551615)`,
        ['a/18446744073709551615'],
      ],
      [['VARCHAR(20)', 'DATE'], `('it''s \`', '2026-01-31')`, ["it's `/2026-01-31"]],
      [
        ['DECIMAL(6,2)', 'DATETIME(3)'],
        `(1.5, '2026-01-31 10:00:00.25')`,
        ['1.50/2026-01-31 10:00:00.250'],
      ],
    ]
    for (const [types, values, told] of each) {
      const jobs = await made(types, values)
      const key = types.map((_, at) => `k${at}`)
      const { table, columns } = jobs.options
      const claims = hf.claims({ table, columns, key, lease: '1 min' })
      expect(await claims.check()).toEqual([])
      const got = await claims.claim(9)
      expect(got.map((claim) => claim.key.join('/'))).toEqual(told)
      expect(await claims.heartbeat(got)).toMatchObject({ lost: [] })
      expect(await claims.complete(got)).toMatchObject({ kept: got })
      expect(await jobs.run(`SELECT status FROM ${jobs.name} WHERE status <> 'done'`)).toEqual([])
    }
  })

  test('only rows with the values that are asked for, whatever the types of their columns', async () => {
    const jobs = await JobTable.make(
      place,
      0,
      {
        ...usual,
        status: 'TINYINT',
        kind: "VARCHAR(9) NOT NULL DEFAULT 'a'",
        flag: 'BOOLEAN NOT NULL DEFAULT FALSE',
      },
      ['KEY due (status, kind, flag, run_at, id)', 'KEY leases (status, kind, flag, lease_until)'],
    )
    await jobs.run(
      `INSERT INTO ${jobs.name} (id, status, kind, flag) VALUES
       (1, NULL, 'a', TRUE), (2, NULL, 'b', TRUE), (3, NULL, 'a', FALSE), (4, 2, 'a', TRUE)`,
    )
    const { hf } = startOn(place)
    const options: ClaimsOptions = {
      ...jobs.options,
      values: { pending: null, claimed: 1, done: 2, dead: 3 },
      where: { kind: 'a', flag: true },
    }
    const claims = hf.claims(options)
    expect(await claims.check()).toEqual([])
    const got = await claims.claim(9)
    expect(got.map(({ key }) => key[0])).toEqual(['1'])
    await claims.fail(got, { retryInMs: 0 })
    expect(await keys(hf, options)).toEqual(['1'])
  })

  test('a number is not compared with a text, and no two states are one', async () => {
    const jobs = await JobTable.make(place, 1)
    const { hf } = startOn(place)
    // To the server every text without a number is 0.
    expect(await keys(hf, { ...jobs.options, values: { pending: 0 } })).toEqual([])
    const one = { ...jobs.options, values: { pending: 'pending', done: 'PENDING ' } }
    await expect(hf.claims(one).claim()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    const numbers = await JobTable.make(place, 0, { ...usual, status: 'INT NOT NULL DEFAULT 0' })
    await expect(hf.claims(numbers.options).claim()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test.each(['TIMESTAMP(6) NULL', 'DATETIME(6)', 'TIMESTAMP NULL', 'DATETIME'])(
    'a lease in a %s is as long as it should be, in any zone',
    async (type) => {
      const jobs = await JobTable.make(place, 2, { ...usual, lease_until: type })
      const { pool, hf } = startOn(place)
      const claims = hf.claims<JobRow>({ ...jobs.options, lease: '20 s' })
      const left = type.startsWith('TIMESTAMP')
        ? 'TIMESTAMPDIFF(MICROSECOND, NOW(6), lease_until)'
        : 'TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until)'
      const leftMs = async (id: string): Promise<number> => {
        const [row] = await jobs.run(`SELECT ${left} AS us FROM ${jobs.name} WHERE id = ?`, id)
        return Number(row?.['us']) / 1_000
      }
      const zoned = await pool.connect()
      await zoned.query(`SET time_zone = '+11:00'`)
      const beganMs = performance.now()
      await zoned.beginTransaction()
      const [far] = await claims.claim(zoned, 1)
      await zoned.commit()
      const [near] = await claims.claim(1)
      await zoned.query(`SET time_zone = 'SYSTEM'`)
      await zoned.release()
      expect([far?.key, near?.key]).toEqual([['1'], ['2']])
      for (const id of ['1', '2']) {
        const ms = await leftMs(id)
        expect(ms).toBeGreaterThan(20_000 - (performance.now() - beganMs))
        // A column without fractions may round up.
        expect(ms).toBeLessThanOrEqual(21_501)
      }
      expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
    },
  )

  test('done rows are deleted if that is asked for', async () => {
    const jobs = await JobTable.make(place, 3)
    const claims = startOn(place).hf.claims<JobRow>({ ...jobs.options, deleteDone: true })
    const got = await claims.claim(2)
    expect(await claims.complete(got)).toMatchObject({ kept: got })
    expect(await claims.complete(got)).toMatchObject({ lost: got })
    expect(await jobs.states()).toBe('pending')
  })

  test('more rows at once than stand in one statement', async () => {
    const jobs = await JobTable.make(place, 700)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const got = await claims.claim(1_000)
    expect(got.map(({ row }) => row.id)).toEqual(Array.from({ length: 700 }, (_, at) => at + 1))
    expect((await claims.complete(got)).kept).toHaveLength(700)
  })

  test('a key that may be NULL is refused: NULL looks like a text, and is found by nobody', async () => {
    const { hf } = startOn(place)
    await using session = await place.session()
    await session.rows(`CREATE TABLE words (n INT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(20) UNIQUE,
      status VARCHAR(10) NOT NULL DEFAULT 'pending', claim_token CHAR(36), lease_until TIMESTAMP(6) NULL,
      KEY due (status, id), KEY held (status, lease_until)) ENGINE=InnoDB`)
    await session.rows(`INSERT INTO words (id) VALUES (NULL), ('null')`)
    const claims = hf.claims<{ n: number }>({ table: 'words' })
    const told = { code: 'column-nullable', object: 'column words.id' }
    expect(await claims.check()).toMatchObject([told])
    await expect(claims.claim(1)).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [told] },
    })
    await session.rows('DELETE FROM words WHERE id IS NULL')
    await session.rows('ALTER TABLE words MODIFY id VARCHAR(20) NOT NULL')
    expect((await claims.claim(2)).map(({ row }) => row.n)).toEqual([2])
  })

  test('an index that goes away is done without', async () => {
    const jobs = await JobTable.make(place, 2)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    expect(await claims.claim(1)).toHaveLength(1)
    await jobs.run(`ALTER TABLE ${jobs.name} DROP INDEX due`)
    expect(await claims.claim(1)).toHaveLength(1)
  })

  test('what these servers cannot do is refused', async () => {
    const jobs = await JobTable.make(place, 1)
    const { hf } = startOn(place)
    const refused = (subject: string): unknown =>
      expect.objectContaining({
        code: 'ENGINE_NOT_OFFERED',
        details: expect.objectContaining({ subject }) as unknown,
      })
    const wrong = { perKey: { column: 'tenant' }, bucket: 'id' }
    for (const [name, value] of Object.entries(wrong)) {
      const options = { ...jobs.options, [name]: value }
      expect(() => hf.claims(options)).toThrow(refused(name))
    }
    const listening = { listen: 'news', handler: async () => 1 }
    await expect(hf.claims(jobs.options).run(listening)).rejects.toEqual(refused('listen'))
  })
}, 'the server')
