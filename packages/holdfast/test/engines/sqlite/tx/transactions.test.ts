import { renameSync, rmSync } from 'node:fs'
import { deferred } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { createTransactions } from '../../../../src/tx/index.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, inTransaction, openHandle, value } from '../support/sqlite-clients.ts'

const tables = [
  'CREATE TABLE log (id INTEGER PRIMARY KEY)',
  'CREATE TABLE once (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)',
  'INSERT INTO once VALUES (1)',
  'CREATE TABLE guarded (id INTEGER)',
  `CREATE TRIGGER refuses BEFORE INSERT ON guarded BEGIN SELECT RAISE(ROLLBACK, 'no'); END`,
  'CREATE TABLE parent (id INTEGER PRIMARY KEY)',
  'CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)',
]

/** A body is never told "committed" for something that was not committed as a whole. */
eachSqlite(tables, (place) => {
  const logged = (handle: Handle): unknown[] =>
    handle
      .prepare('SELECT id FROM log ORDER BY id')
      .all()
      .map((row) => (row as { id: unknown }).id)

  test('what a body wrote is there when it is told so, and only then', async () => {
    const looking = place.open()
    const tx = createTransactions(place.driver())
    const gave = await tx.run(async (inner) => {
      inner.exec('INSERT INTO log VALUES (1)')
      expect(logged(looking)).toEqual([])
      return 'done'
    })
    expect(gave).toBe('done')
    expect(logged(looking)).toEqual([1])
    await expect(
      tx.run(async (inner) => {
        inner.exec('INSERT INTO log VALUES (2)')
        throw new Error('mine')
      }),
    ).rejects.toThrow('mine')
    expect(logged(looking)).toEqual([1])
    expect(await tx.run(async () => 'nothing')).toBe('nothing')
    expect(await tx.run(async (inner) => value(inner, 'SELECT COUNT(*) FROM log'))).toBe(1)
    expect(await tx.run(async () => 'level', { isolation: 'serializable' })).toBe('level')
  })

  describe('what would end the transaction is not sent', () => {
    test.each([
      'COMMIT',
      'END TRANSACTION',
      'ROLLBACK',
      'rollback transaction',
      'BEGIN',
      'BEGIN IMMEDIATE',
      '/* say */ -- it\n  commit',
      'INSERT INTO log VALUES (7); COMMIT',
      `CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT CASE WHEN 1 THEN 2 END; END; COMMIT`,
    ])('%s', async (text) => {
      const looking = place.open()
      const swallowed = createTransactions(place.driver()).run(async (tx) => {
        tx.exec('INSERT INTO log VALUES (1)')
        expect(() => tx.exec(text)).toThrow(
          expect.objectContaining({
            code: text.startsWith('BEGIN') ? 'TX_NESTED' : 'TX_ENDED_INSIDE',
          }),
        )
        expect(() => tx.prepare(text)).toThrow(/TX_/)
      })
      await expect(swallowed).rejects.toMatchObject({ details: { ended: 'refused' } })
      expect(logged(looking)).toEqual([])
    })

    test('nor is the connection closed', async () => {
      const looking = place.open()
      const told = createTransactions(place.driver()).run(async (tx) => {
        tx.exec('INSERT INTO log VALUES (1)')
        expect(() => tx.close()).toThrow(expect.objectContaining({ code: 'TX_ENDED_INSIDE' }))
      })
      await expect(told).rejects.toMatchObject({ code: 'TX_ENDED_INSIDE' })
      expect(logged(looking)).toEqual([])
    })

    test.each([
      'SAVEPOINT mine',
      'SAVEPOINT mine; ROLLBACK TO mine; RELEASE mine',
      'SAVEPOINT mine; ROLLBACK TRANSACTION TO SAVEPOINT mine',
      "SELECT 'COMMIT; BEGIN' AS text",
      'SELECT 1 AS "commit", 2 AS [end] -- ; COMMIT',
      'CREATE TABLE made (id INTEGER); DROP TABLE made',
      'CREATE TRIGGER t AFTER INSERT ON log BEGIN UPDATE log SET id = id WHERE 0; END',
      'PRAGMA user_version = 3',
    ])('but this is: %s', async (text) => {
      const looking = place.open()
      await createTransactions(place.driver()).run(async (tx) => {
        tx.exec('INSERT INTO log VALUES (1)')
        tx.exec(text)
      })
      expect(logged(looking)).toEqual([1])
    })
  })

  describe('what SQLite rolls back by itself', () => {
    test.each([
      'INSERT OR ROLLBACK INTO log VALUES (1)',
      'INSERT INTO once VALUES (1)',
      'INSERT INTO guarded VALUES (1)',
    ])('%s: swallowed it is TX_ROLLED_BACK, and nothing is sent after it', async (text) => {
      const looking = place.open()
      const tx = createTransactions(place.driver())
      const told = tx.run(async (inner) => {
        const kept = inner.prepare('INSERT INTO log VALUES (?)')
        kept.run(1)
        expect(() => inner.exec(text)).toThrow(/constraint|no/i)
        for (const send of [
          () => inner.exec('INSERT INTO log VALUES (2)'),
          () => kept.run(3),
          () => inner.prepare('SELECT 1').all(),
        ])
          expect(send).toThrow(expect.objectContaining({ code: 'TX_ROLLED_BACK' }))
      })
      await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
      expect(logged(looking)).toEqual([])
      // Let out it is told as the client said it.
      const out = tx.run(async (inner) => {
        inner.exec('INSERT INTO log VALUES (1)')
        inner.exec(text)
      })
      await expect(out).rejects.toThrow(/constraint|no/i)
      expect(logged(looking)).toEqual([])
      expect(await tx.run(async () => 'next')).toBe('next')
    })

    test('control: by hand, what follows is saved, and nobody says that the rest is not', () => {
      const db = place.open()
      db.exec('BEGIN IMMEDIATE')
      db.exec('INSERT INTO log VALUES (1)')
      expect(() => db.exec('INSERT OR ROLLBACK INTO log VALUES (1)')).toThrow(/UNIQUE/)
      db.exec('INSERT INTO log VALUES (2)')
      expect(logged(place.open())).toEqual([2])
    })
  })

  test('a constraint that is checked at COMMIT: told as it is, and nothing is saved', async () => {
    const looking = place.open()
    const tx = createTransactions(
      place.driver(() => {
        const db = place.open()
        db.exec('PRAGMA foreign_keys = ON')
        return db
      }),
    )
    const told = tx.run(async (inner) => {
      inner.exec('INSERT INTO log VALUES (1)')
      inner.exec('INSERT INTO child VALUES (9)')
    })
    await expect(told).rejects.toThrow(/FOREIGN KEY/)
    expect(logged(looking)).toEqual([])
    expect(await tx.run(async () => 'next')).toBe('next')
  })

  test('a handle, and what was made of it, is of no use when its body has returned', async () => {
    const tx = createTransactions(place.driver())
    let kept: Handle | undefined
    let statement: ReturnType<Handle['prepare']> | undefined
    await tx.run(async (inner) => {
      kept = inner
      statement = inner.prepare('INSERT INTO log VALUES (1)')
    })
    const over = expect.objectContaining({ code: 'TX_HANDLE_ENDED' }) as unknown
    // Also while another body has the connection.
    await tx.run(async () => {
      expect(() => kept?.exec('INSERT INTO log VALUES (1)')).toThrow(over as Error)
      expect(() => statement?.run()).toThrow(over as Error)
    })
    expect(logged(place.open())).toEqual([])
  })

  test('a result that was not read to its end does not keep the next one from writing', async () => {
    const other = place.open()
    const tx = createTransactions(place.driver())
    await tx.run(async (inner) => {
      inner.exec('INSERT INTO log VALUES (1), (2), (3)')
      inner.prepare('SELECT id FROM log').iterate().next()
    })
    other.exec('INSERT INTO log VALUES (4)')
    await tx.run(async (inner) => inner.exec('INSERT INTO log VALUES (5)'))
    expect(logged(other)).toEqual([1, 2, 3, 4, 5])
  })

  test('control: by hand it does', () => {
    const [db, other] = [place.open(), place.open()]
    db.exec('INSERT INTO log VALUES (1), (2), (3)')
    const rows = db.prepare('SELECT id FROM log').iterate()
    rows.next()
    other.exec('INSERT INTO log VALUES (4)')
    expect(() => {
      db.exec('PRAGMA busy_timeout = 0')
      db.exec('BEGIN IMMEDIATE')
    }).toThrow(/locked|busy/i)
    rows.return?.()
  })

  test('what others send at the same time is no part of the transaction', async () => {
    const plain = place.open()
    plain.exec('PRAGMA busy_timeout = 0')
    const inside = deferred()
    const over = deferred()
    const driver = place.driver()
    const told = createTransactions(driver).run(async (tx) => {
      tx.exec('INSERT INTO log VALUES (1)')
      inside.resolve()
      await over.promise
      throw new Error('mine')
    })
    await inside.promise
    // On a connection of its own it is refused; on its own through the driver it waits.
    expect(() => plain.exec('INSERT INTO log VALUES (2)')).toThrow(/locked|busy/i)
    const alone = driver.alone.query({ text: 'INSERT INTO log VALUES (3)', values: [] })
    over.resolve()
    await expect(told).rejects.toThrow('mine')
    await alone
    expect(logged(plain)).toEqual([3])
  })

  test('control: on one connection, a write of another request is rolled back with the first', () => {
    const db = place.open()
    db.exec('BEGIN IMMEDIATE')
    db.exec('INSERT INTO log VALUES (1)')
    db.exec('INSERT INTO log VALUES (2)')
    db.exec('ROLLBACK')
    expect(logged(db)).toEqual([])
  })

  test('a function that gives a connection twice, or one in a transaction, is refused', async () => {
    const db = place.open()
    const shared = createTransactions(place.driver(() => db))
    await expect(shared.run(async () => 1)).rejects.toMatchObject({ code: 'TX_SESSION_SHARED' })
    const begun = createTransactions(
      place.driver(() => {
        const handle = place.open()
        handle.exec('BEGIN')
        return handle
      }),
    )
    await expect(begun.run(async () => 1)).rejects.toMatchObject({ code: 'TX_SESSION_SHARED' })
  })

  test('while one waits for somebody else, timers go on; the deadline and a signal end it', async () => {
    const other = place.open()
    other.exec('BEGIN IMMEDIATE')
    const tx = createTransactions(place.driver())
    let ticks = 0
    const timer = setInterval(() => (ticks += 1), 5)
    const began = performance.now()
    await expect(tx.run(async () => 1, { deadline: 300 })).rejects.toMatchObject({
      code: 'TX_DEADLINE',
    })
    expect(performance.now() - began).toBeLessThan(2_000)
    expect(ticks).toBeGreaterThan(3)
    const stop = new AbortController()
    const told = tx.run(async () => 1, { signal: stop.signal })
    const why = new Error('enough')
    stop.abort(why)
    await expect(told).rejects.toBe(why)
    clearInterval(timer)
    const limited = tx.run(async () => 1, { retry: { budget: 100 } })
    await expect(limited).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      details: { endedBy: 'wait' },
    })
    other.exec('COMMIT')
    expect(await tx.run(async () => 'free')).toBe('free')
  })

  test('control: a wait inside of SQLite stops them', async () => {
    const [other, db] = [place.open(), place.open()]
    other.exec('BEGIN IMMEDIATE')
    db.exec('PRAGMA busy_timeout = 300')
    let ticks = 0
    const timer = setInterval(() => (ticks += 1), 5)
    expect(() => db.exec('BEGIN IMMEDIATE')).toThrow(/locked|busy/i)
    expect(ticks).toBe(0)
    clearInterval(timer)
  })

  test('the connection is as it was after a body that has set it to wait', async () => {
    const tx = createTransactions(place.driver())
    await tx.run(async (inner) => void inner.exec('PRAGMA busy_timeout = 5000'))
    const seen = await tx.run(async (inner) => [
      value(inner, 'PRAGMA busy_timeout'),
      inTransaction(inner),
    ])
    expect(seen).toEqual([0, true])
  })

  test('a durable read is refused: there is no standby', async () => {
    const told = createTransactions(place.driver()).run(async () => 1, { durable: true })
    await expect(told).rejects.toMatchObject({ code: 'ENGINE_NOT_OFFERED' })
  })

  test.each([
    'CREATE TEMP TABLE log (id INTEGER)',
    'PRAGMA query_only = 1',
    'PRAGMA locking_mode = EXCLUSIVE',
    "ATTACH ':memory:' AS more",
  ])('what a body leaves on its connection is not for the next one: %s', async (text) => {
    const tx = createTransactions(place.driver())
    await tx.run(async (inner) => void inner.exec(text))
    await tx.run(async (inner) => {
      expect(inner.prepare('PRAGMA database_list').all()).toHaveLength(1)
      inner.exec('INSERT INTO log VALUES (1)')
    })
    expect(logged(place.open())).toEqual([1])
  })

  test('a file that another one has taken the place of: what is told to be saved is in the new one', async () => {
    const driver = place.driver()
    const tx = createTransactions(driver)
    const replace = (): void => {
      const copy = openHandle(place.client, `${place.file()}.new`)
      copy.exec('PRAGMA journal_mode = WAL; CREATE TABLE log (id INTEGER PRIMARY KEY)')
      copy.close()
      for (const end of ['-wal', '-shm']) rmSync(place.file() + end, { force: true })
      renameSync(`${place.file()}.new`, place.file())
    }
    await tx.run(async (inner) => void inner.exec('INSERT INTO log VALUES (1)'))
    replace()
    await tx.run(async (inner) => void inner.exec('INSERT INTO log VALUES (2)'))
    expect(logged(place.open())).toEqual([2])
    expect(await driver.alone.query({ text: 'SELECT id FROM log', values: [] })).toEqual([
      { id: 2 },
    ])
    const under = tx.run(async (inner) => {
      inner.exec('INSERT INTO log VALUES (3)')
      replace()
    })
    await expect(under).rejects.toMatchObject({ code: 'ENGINE_FILE_UNFIT' })
    expect(logged(place.open())).toEqual([])
  })
})
