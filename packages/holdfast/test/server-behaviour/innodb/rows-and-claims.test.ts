import { beforeEach, describe, expect, test } from 'vitest'
import { errnoFrom, waits } from './support/innodb-session.ts'
import { onEveryServer } from './support/on-every-server.ts'

const at = (level: string): string[] => [`SET TRANSACTION ISOLATION LEVEL ${level}`, 'BEGIN']

/** What row locks hold back, and what claims, leases and clocks can rely on. */
onEveryServer((place, { isMariadb, refusesOldSnapshots }) => {
  const refused = isMariadb ? 1205 : 3572

  beforeEach(async () => {
    await using session = await place.open()
    await session.all(
      'DROP TABLE IF EXISTS t, job, slow_job, lease, lease_until',
      'CREATE TABLE t (id INT PRIMARY KEY, code INT NOT NULL, v INT NOT NULL, KEY (code)) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 30, 10), (2, 20, 10), (3, 10, 10)',
      `CREATE TABLE job (id INT PRIMARY KEY, status VARCHAR(8) NOT NULL, due INT NOT NULL,
         KEY (status, due, id)) ENGINE=InnoDB`,
      `CREATE TABLE slow_job (id INT PRIMARY KEY, status VARCHAR(8) NOT NULL, due INT NOT NULL) ENGINE=InnoDB`,
    )
  })

  test.each(['READ COMMITTED', 'REPEATABLE READ'])(
    'single-row statements put together lock in their own order, and nothing else: %s',
    async (level) => {
      await using holder = await place.open()
      await using taker = await place.open()
      await using other = await place.open()
      await holder.all(...at(level), 'SELECT id FROM t WHERE id = 3 FOR UPDATE')
      await taker.all(...at(level))
      const taking = taker.rows(
        [1, 3].map((id) => `(SELECT id FROM t WHERE id = ${id} FOR UPDATE)`).join(' UNION ALL '),
      )
      await holder.seesWaiting(taker)
      const free = (id: number): Promise<number | undefined> =>
        errnoFrom(other.rows(`SELECT id FROM t WHERE id = ${id} FOR UPDATE NOWAIT`))
      expect([await free(1), await free(2)]).toEqual([refused, undefined])
      await holder.rows('COMMIT')
      expect(await taking).toEqual([{ id: 1 }, { id: 3 }])
    },
  )

  test('control: ORDER BY is not the order of locking', async () => {
    await using holder = await place.open()
    await using taker = await place.open()
    await using other = await place.open()
    await holder.all(...at('READ COMMITTED'), 'SELECT id FROM t WHERE id = 2 FOR UPDATE')
    await taker.all(...at('READ COMMITTED'))
    const taking = taker.rows(
      'SELECT id FROM t FORCE INDEX (code) WHERE code IN (10, 20, 30) ORDER BY id FOR UPDATE',
    )
    await holder.seesWaiting(taker)
    // By code: 10 is the row 3, and row 1 comes last.
    const free = (id: number): Promise<number | undefined> =>
      errnoFrom(other.rows(`SELECT id FROM t WHERE id = ${id} FOR UPDATE NOWAIT`))
    expect([await free(3), await free(1)]).toEqual([refused, undefined])
    await holder.rows('COMMIT')
    await taking
  })

  test.each([
    { level: 'READ COMMITTED', waiting: false },
    { level: 'REPEATABLE READ', waiting: true },
  ])(
    'a row that is not there: others’ inserts wait at $level: $waiting',
    async ({ level, waiting }) => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.all(...at(level), 'SELECT id FROM t WHERE id = 9 FOR UPDATE')
      const inserting = other.rows('INSERT INTO t VALUES (9, 1, 1)')
      expect(await waits(holder, other, inserting)).toBe(waiting)
      await holder.rows('ROLLBACK')
      await inserting
    },
  )

  test('an update by version, and why it is read again with a lock', async () => {
    await using late = await place.open()
    await using other = await place.open()
    await late.all(...at('REPEATABLE READ'))
    expect(await late.value('SELECT v FROM t WHERE id = 1')).toBe(10)
    await other.rows('UPDATE t SET v = 11 WHERE id = 1')
    const changing = late.told('UPDATE t SET code = 5, v = v + 1 WHERE id = 1 AND v = 10')
    if (refusesOldSnapshots) {
      expect(await errnoFrom(changing)).toBe(1020)
      return
    }
    expect((await changing).affectedRows).toBe(0)
    expect(await late.value('SELECT v FROM t WHERE id = 1')).toBe(10)
    expect(await late.value('SELECT v FROM t WHERE id = 1 FOR UPDATE')).toBe(11)
  })

  test('rows that were found are counted, also if nothing of them has changed', async () => {
    await using session = await place.open()
    expect((await session.told('UPDATE t SET v = 10 WHERE id = 1')).affectedRows).toBe(1)
    const upsert = (v: number): string =>
      `INSERT INTO t VALUES (1, 30, ${v}) ON DUPLICATE KEY UPDATE v = ${v}`
    expect((await session.told(upsert(12))).affectedRows).toBe(2)
  })

  describe('claims', () => {
    const claim = (table: string): string =>
      `SELECT id FROM ${table} WHERE status = 'pending' AND due <= 5 ORDER BY due, id
       LIMIT 1 FOR UPDATE SKIP LOCKED`

    test.each([
      { level: 'READ COMMITTED', waiting: false },
      { level: 'REPEATABLE READ', waiting: true },
    ])('an empty queue holds up what comes at $level: $waiting', async ({ level, waiting }) => {
      await using worker = await place.open()
      await using producer = await place.open()
      await worker.all(...at(level))
      expect(await worker.rows(claim('job'))).toEqual([])
      const inserting = producer.rows(`INSERT INTO job VALUES (1, 'pending', 1)`)
      expect(await waits(worker, producer, inserting)).toBe(waiting)
      await worker.rows('ROLLBACK')
      await inserting
    })

    test('with an index each worker gets a row; with a sort the second gets none', async () => {
      await using one = await place.open()
      await using two = await place.open()
      for (const table of ['job', 'slow_job']) {
        await one.rows(
          `INSERT INTO ${table} VALUES (1, 'pending', 3), (2, 'pending', 2), (3, 'pending', 1)`,
        )
        await one.all(...at('READ COMMITTED'))
        await two.all(...at('READ COMMITTED'))
        expect(await one.rows(claim(table))).toEqual([{ id: 3 }])
        expect(await two.rows(claim(table))).toEqual(table === 'job' ? [{ id: 2 }] : [])
        await one.rows('ROLLBACK')
        await two.rows('ROLLBACK')
      }
    })

    test('in one statement: MySQL skips, MariaDB waits', async () => {
      await using one = await place.open()
      await using two = await place.open()
      await one.rows(`INSERT INTO job VALUES (1, 'pending', 1), (2, 'pending', 2)`)
      await one.all(...at('READ COMMITTED'), claim('job'))
      await two.all(...at('READ COMMITTED'))
      const updating = two.rows(
        `UPDATE job JOIN (${claim('job')}) AS next ON next.id = job.id SET status = 'taken'`,
      )
      expect(await waits(one, two, updating)).toBe(isMariadb)
      await one.rows('ROLLBACK')
      await updating
    })
  })

  test('a lease whose renewals have a table of their own is not held up by its guard', async () => {
    await using guard = await place.open()
    await using holder = await place.open()
    await using next = await place.open()
    await guard.all(
      'CREATE TABLE lease (name VARCHAR(64) PRIMARY KEY, token BIGINT NOT NULL) ENGINE=InnoDB',
      'CREATE TABLE lease_until (name VARCHAR(64) PRIMARY KEY, until BIGINT NOT NULL) ENGINE=InnoDB',
      `INSERT INTO lease VALUES ('l', 1)`,
      `INSERT INTO lease_until VALUES ('l', 1)`,
    )
    await guard.all('BEGIN', `SELECT token FROM lease WHERE name = 'l' LOCK IN SHARE MODE`)
    await holder.rows(`UPDATE lease_until SET until = 2 WHERE name = 'l'`)
    await next.rows('BEGIN')
    const takeOver = `SELECT token FROM lease WHERE name = 'l' FOR UPDATE SKIP LOCKED`
    expect(await next.rows(takeOver)).toEqual([])
    await guard.rows('COMMIT')
    expect(await next.rows(takeOver)).toEqual([{ token: 1 }])
  })

  test('after a wait NOW is as old as the wait, SYSDATE is not', async () => {
    await using holder = await place.open()
    await using late = await place.open()
    await holder.all('BEGIN', 'SELECT id FROM t WHERE id = 1 FOR UPDATE')
    const waiting = late.rows(
      `SELECT CAST(NOW(6) AS CHAR) AS now, CAST(SYSDATE(6) AS CHAR) AS sysdate
       FROM t WHERE id = 1 FOR UPDATE`,
    )
    await holder.seesWaiting(late)
    const meanwhile = String(await holder.value('SELECT CAST(SYSDATE(6) AS CHAR)'))
    await holder.rows('COMMIT')
    const [row] = await waiting
    expect(String(row?.['now']) < meanwhile).toBe(true)
    expect(String(row?.['sysdate']) > meanwhile).toBe(true)
  })

  test('who waits for whom can be seen, with the name of the lock', async () => {
    await using holder = await place.open()
    await using late = await place.open()
    await holder.all(
      'DROP TABLE IF EXISTS named',
      `CREATE TABLE named (name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY) ENGINE=InnoDB`,
      `INSERT INTO named VALUES ('cart:7')`,
      'BEGIN',
      `SELECT name FROM named WHERE name = 'cart:7' FOR UPDATE`,
    )
    const waiting = late.rows(`SELECT name FROM named WHERE name = 'cart:7' FOR UPDATE`)
    await holder.seesWaiting(late)
    const names = isMariadb
      ? 'SELECT DISTINCT lock_data AS name FROM information_schema.INNODB_LOCKS'
      : `SELECT DISTINCT lock_data AS name FROM performance_schema.data_locks WHERE lock_type = 'RECORD'`
    expect(await holder.rows(names)).toEqual([{ name: `'cart:7'` }])
    await holder.rows('COMMIT')
    await waiting
  })
})
