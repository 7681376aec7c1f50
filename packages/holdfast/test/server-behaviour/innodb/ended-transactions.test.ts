import { beforeEach, describe, expect, test } from 'vitest'
import { errnoFrom, type InnodbSession } from './support/innodb-session.ts'
import { onEveryServer } from './support/on-every-server.ts'
import { openPreparing } from './support/preparing.ts'

/** A transaction that ends in the middle of its body, and how that is found out before COMMIT says yes. */
onEveryServer((place, { isMariadb, refusesOldSnapshots }) => {
  beforeEach(async () => {
    await using session = await place.open()
    await session.all(
      'DROP TABLE IF EXISTS t, log',
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'CREATE TABLE log (id INT PRIMARY KEY) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 10), (2, 20)',
    )
  })

  const tripwire = 'SAVEPOINT holdfast'
  const tripped = async (session: InnodbSession): Promise<boolean> =>
    (await errnoFrom(session.rows('RELEASE SAVEPOINT holdfast'))) === 1305

  /** Makes `victim` the one that dies: the other has changed more rows. */
  const deadlock = async (victim: InnodbSession, other: InnodbSession): Promise<void> => {
    await other.all('BEGIN', 'INSERT INTO log VALUES (101), (102), (103), (104)')
    await other.rows('UPDATE t SET v = v + 1 WHERE id = 1')
    await victim.rows('UPDATE t SET v = v + 1 WHERE id = 2')
    const waiting = other.rows('UPDATE t SET v = v + 1 WHERE id = 2')
    await victim.seesWaiting(other)
    expect(await errnoFrom(victim.rows('UPDATE t SET v = v + 1 WHERE id = 1'))).toBe(1213)
    await waiting
    await other.rows('ROLLBACK')
  }

  test('after a deadlock that was swallowed the rest is saved, the first part is not, and COMMIT says yes', async () => {
    await using victim = await place.open()
    await using other = await place.open()
    await victim.all('BEGIN', tripwire, 'INSERT INTO log VALUES (1)')
    await deadlock(victim, other)
    expect(await victim.isInTransaction()).toBe(false)
    await victim.rows('INSERT INTO log VALUES (2)')
    expect(await tripped(victim)).toBe(true)
    await victim.rows('COMMIT')
    expect(await other.rows('SELECT id FROM log')).toEqual([{ id: 2 }])
  })

  test('with autocommit off the rest is in another transaction, and can be undone', async () => {
    await using victim = await place.open()
    await using other = await place.open()
    await victim.all('SET autocommit = 0', tripwire, 'INSERT INTO log VALUES (1)')
    await deadlock(victim, other)
    await victim.rows('INSERT INTO log VALUES (2)')
    expect(await victim.isInTransaction()).toBe(true)
    expect(await tripped(victim)).toBe(true)
    await victim.rows('ROLLBACK')
    expect(await other.rows('SELECT id FROM log')).toEqual([])
    // To switch it on again is a COMMIT.
    await victim.rows('INSERT INTO log VALUES (3)')
    await victim.rows('SET autocommit = 1')
    expect(await other.rows('SELECT id FROM log')).toEqual([{ id: 3 }])
  })

  test('a change of what a snapshot has not seen: refused and over, or lost without a word', async () => {
    await using late = await place.open()
    await using other = await place.open()
    await late.all('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'BEGIN', tripwire)
    await late.rows('SELECT v FROM t WHERE id = 1')
    await other.rows('UPDATE t SET v = 1 WHERE id = 1')
    const changing = errnoFrom(late.rows('UPDATE t SET v = v - 5 WHERE id = 1'))
    expect(await changing).toBe(refusesOldSnapshots ? 1020 : undefined)
    expect(await tripped(late)).toBe(refusesOldSnapshots)
    await late.rows('COMMIT')
    expect(await other.value('SELECT v FROM t WHERE id = 1')).toBe(refusesOldSnapshots ? 1 : -4)
  })

  test('a wait that has lasted too long leaves the transaction open, with all its locks', async () => {
    await using waiter = await place.open()
    await using other = await place.open()
    await other.all('BEGIN', 'UPDATE t SET v = v + 1 WHERE id = 1')
    await waiter.all('SET innodb_lock_wait_timeout = 1', 'BEGIN', tripwire)
    await waiter.rows('UPDATE t SET v = v + 1 WHERE id = 2')
    expect(await errnoFrom(waiter.rows('UPDATE t SET v = v + 1 WHERE id = 1'))).toBe(1205)
    expect(await waiter.isInTransaction()).toBe(true)
    const kept = other.rows('SELECT v FROM t WHERE id = 2 FOR UPDATE NOWAIT')
    expect(await errnoFrom(kept)).toBe(isMariadb ? 1205 : 3572)
    expect(await tripped(waiter)).toBe(false)
  })

  describe('a statement that commits what is open', () => {
    test.each([
      'CREATE TABLE made (id INT)',
      'CREATE TABLE IF NOT EXISTS t (id INT)',
      'ALTER TABLE log ADD note INT',
      'TRUNCATE TABLE log',
      'CREATE INDEX by_v ON t (v)',
      'ANALYZE TABLE t',
      'FLUSH TABLES',
      'LOCK TABLES t READ',
      'BEGIN',
      'START TRANSACTION',
    ])('%s', async (text) => {
      await using session = await place.open()
      await using other = await place.open()
      await session.rows('DROP TABLE IF EXISTS made')
      await session.all('BEGIN', tripwire, 'UPDATE t SET v = 99 WHERE id = 1')
      await session.rows(text)
      expect(await other.value('SELECT v FROM t WHERE id = 1')).toBe(99)
      await session.rows('UNLOCK TABLES')
      expect(await tripped(session)).toBe(true)
    })

    test('one that fails', async () => {
      await using session = await place.open()
      await using other = await place.open()
      await session.all('BEGIN', tripwire, 'UPDATE t SET v = 99 WHERE id = 1')
      expect(await errnoFrom(session.rows('DROP TABLE nothing'))).toBe(1051)
      expect(await other.value('SELECT v FROM t WHERE id = 1')).toBe(99)
      expect(await tripped(session)).toBe(true)
    })

    test.each(['CREATE TEMPORARY TABLE mine (id INT)', 'SET autocommit = 1', 'SET @mine = 1'])(
      'not: %s',
      async (text) => {
        await using session = await place.open()
        await using other = await place.open()
        await session.all('BEGIN', tripwire, 'UPDATE t SET v = 99 WHERE id = 1')
        await session.rows(text)
        expect(await other.value('SELECT v FROM t WHERE id = 1')).toBe(10)
        expect(await tripped(session)).toBe(false)
        await session.rows('ROLLBACK')
      },
    )
  })

  test('a lock that was taken after a savepoint may be free after ROLLBACK TO it', async () => {
    await using session = await place.open()
    await using other = await place.open()
    const lock = 'SELECT v FROM t WHERE id = 1 FOR UPDATE'
    // The savepoint is the first thing in the transaction.
    await session.all('BEGIN', 'SAVEPOINT s', lock, 'ROLLBACK TO SAVEPOINT s')
    expect(await errnoFrom(other.rows(`${lock} NOWAIT`))).toBe(undefined)
    await session.rows('ROLLBACK')
    // InnoDB took part before it.
    await session.all('BEGIN', 'UPDATE t SET v = v + 1 WHERE id = 2')
    await session.all('SAVEPOINT s', lock, 'ROLLBACK TO SAVEPOINT s')
    expect(await errnoFrom(other.rows(`${lock} NOWAIT`))).toBe(isMariadb ? 1205 : 3572)
  })

  test('in a transaction or not: what tells', async () => {
    await using session = await place.open()
    const bySavepoint = async (): Promise<boolean> => {
      await session.rows('SAVEPOINT probe')
      return (await errnoFrom(session.rows('RELEASE SAVEPOINT probe'))) === undefined
    }
    const bySetting = async (): Promise<boolean> =>
      (await errnoFrom(session.rows('SET TRANSACTION READ WRITE'))) === 1568
    const ways = [bySavepoint, bySetting, async () => await session.isInTransaction()]
    for (const way of ways) expect(await way()).toBe(false)
    await session.rows('BEGIN')
    for (const way of ways) expect(await way()).toBe(true)
    const variable = errnoFrom(session.rows('SELECT @@in_transaction'))
    expect(await variable).toBe(isMariadb ? undefined : 1193)
  })

  test('a session that is reset forgets what was prepared, and gives no number twice', async () => {
    await using connection = await openPreparing(place.server().url())
    const { prepare, forget } = connection
    const before = [await prepare('SELECT 1'), await prepare('SELECT 2')]
    await forget()
    expect(await errnoFrom(connection.run(before[1]))).toBe(1243)
    const after = [await prepare('SELECT 3'), await prepare('SELECT 4')]
    expect(new Set([...before, ...after].map(({ id }) => id)).size).toBe(4)
  })
})
