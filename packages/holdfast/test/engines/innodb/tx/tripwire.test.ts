import { deferred } from '@holdfast/testkit'
import { beforeEach, describe, expect, test } from 'vitest'
import { isHoldfastError } from '../../../../src/core/errors.ts'
import { createHoldfast, migrate } from '../../../../src/mysql.ts'
import { createTransactions } from '../../../../src/tx/index.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import { habitsOf } from '../support/habits.ts'
import type { Handle } from '../support/innodb-clients.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'

/** A body is never told "committed" for something that was not committed as a whole. */
eachInnodb((place) => {
  beforeEach(async () => {
    await using session = await place.session()
    await session.all(
      'DROP TABLE IF EXISTS t, log',
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'CREATE TABLE log (id INT PRIMARY KEY) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 10), (2, 20)',
      'DROP PROCEDURE IF EXISTS ends',
      'CREATE PROCEDURE ends() COMMIT',
    )
  })

  const logged = async (session: InnodbSession): Promise<unknown[]> =>
    (await session.rows('SELECT id FROM log ORDER BY id')).map(({ id }) => id)

  /** The body becomes the victim: the other has changed more rows. */
  const loses = async (
    tx: Handle,
    other: InnodbSession,
    watcher: InnodbSession,
    last: (text: string) => Promise<unknown> = (text) => tx.query(text),
  ): Promise<void> => {
    await other.all('BEGIN', 'INSERT INTO log VALUES (101), (102), (103), (104), (105), (106)')
    await other.rows('UPDATE t SET v = v + 1 WHERE id = 1')
    await tx.query('UPDATE t SET v = v + 1 WHERE id = 2')
    const waiting = other.rows('UPDATE t SET v = v + 1 WHERE id = 2')
    await watcher.seesWaiting(other)
    try {
      await last('UPDATE t SET v = v + 1 WHERE id = 1')
    } finally {
      await waiting
      await other.rows('ROLLBACK')
    }
  }

  test('what a body wrote is there when it is told so, and only then', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    const tx = createTransactions(pool.driver)
    const gave = await tx.run(async (inner) => {
      await inner.query('INSERT INTO log VALUES (1)')
      expect(await logged(session)).toEqual([])
      return 'done'
    })
    expect(gave).toBe('done')
    expect(await logged(session)).toEqual([1])
    await expect(
      tx.run(async (inner) => {
        await inner.query('INSERT INTO log VALUES (2)')
        throw new Error('mine')
      }),
    ).rejects.toThrow('mine')
    expect(await logged(session)).toEqual([1])
    // One that does nothing, and one that only reads.
    expect(await tx.run(async () => 'nothing')).toBe('nothing')
    expect(await tx.run(async (inner) => await pool.rows(inner, 'SELECT 1 AS one'))).toHaveLength(1)
  })

  test.runIf(place.client === 'mariadb')(
    'a deadlock that a stream tells is one: the body runs again, and is saved once',
    async () => {
      await using pool = place.pool()
      await using session = await place.session()
      let attempts = 0
      await createTransactions(pool.driver).run(async (tx) => {
        attempts += 1
        await tx.query('INSERT INTO log VALUES (1)')
        if (attempts > 1) return
        await using other = await place.session()
        const { queryStream } = tx as unknown as {
          queryStream(text: string): AsyncIterable<unknown>
        }
        await loses(tx, other, session, async () => {
          const rows = queryStream('SELECT v FROM t WHERE id = 1 FOR UPDATE')
          for await (const row of rows) expect(row).toBeDefined()
        })
      })
      expect(attempts).toBe(2)
      expect(await logged(session)).toEqual([1])
    },
  )

  test('it is at READ COMMITTED unless it asks for another level', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    const tx = createTransactions(pool.driver)
    const seesChange = async (isolation?: 'repeatable read' | 'serializable'): Promise<boolean> =>
      await tx.run(
        async (inner) => {
          const value = async (): Promise<unknown> =>
            (await pool.rows(inner, 'SELECT v FROM t WHERE id = 1'))[0]?.['v']
          const before = await value()
          await session.rows('UPDATE t SET v = v + 1 WHERE id = 1')
          return (await value()) !== before
        },
        isolation === undefined ? {} : { isolation },
      )
    expect(await seesChange()).toBe(true)
    expect(await seesChange('repeatable read')).toBe(false)
    expect(await seesChange()).toBe(true)
  })

  test('a deadlock that gets out of the body starts the whole again', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await using watcher = await place.session()
    let attempts = 0
    await createTransactions(pool.driver).run(async (tx) => {
      attempts += 1
      await tx.query(`INSERT INTO log VALUES (${attempts})`)
      if (attempts === 1) await loses(tx, other, watcher)
    })
    expect(attempts).toBe(2)
    expect(await logged(watcher)).toEqual([2])
  })

  test('a deadlock that a body swallows: TX_ROLLED_BACK, and nothing is saved', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await using watcher = await place.session()
    const told = createTransactions(pool.driver).run(async (tx) => {
      await tx.query('INSERT INTO log VALUES (1)')
      await loses(tx, other, watcher).catch(() => undefined)
      await tx.query('INSERT INTO log VALUES (2)').catch(() => undefined)
    })
    await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(await logged(watcher)).toEqual([])
  })

  test('also of a body of once, whose key is not remembered', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await using watcher = await place.session()
    await migrate(pool.driver)
    const hf = createHoldfast(pool.driver)
    const told = hf.once('swallowed', async (tx) => {
      await tx.query('INSERT INTO log VALUES (1)')
      await loses(tx, other, watcher).catch(() => undefined)
    })
    await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(await logged(watcher)).toEqual([])
    const again = await hf.once('swallowed', async () => 'done')
    expect(again).toMatchObject({ result: 'done', replayed: false })
  })

  test('also what was sent behind it at once', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await using watcher = await place.session()
    const told = createTransactions(pool.driver).run(async (tx) => {
      await other.all('BEGIN', 'INSERT INTO log VALUES (101), (102), (103), (104), (105), (106)')
      await other.rows('UPDATE t SET v = v + 1 WHERE id = 1')
      await tx.query('UPDATE t SET v = v + 1 WHERE id = 2')
      const waiting = other.rows('UPDATE t SET v = v + 1 WHERE id = 2')
      await watcher.seesWaiting(other)
      await Promise.allSettled([
        tx.query('UPDATE t SET v = v + 1 WHERE id = 1'),
        tx.query('INSERT INTO log VALUES (2)'),
      ])
      await waiting
      await other.rows('ROLLBACK')
    })
    await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(await logged(watcher)).toEqual([])
  })

  test('control: by hand, what follows a deadlock is saved, and the client says that it has committed', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await using watcher = await place.session()
    const tx = await pool.connect()
    await tx.beginTransaction()
    await tx.query('INSERT INTO log VALUES (1)')
    await loses(tx, other, watcher).catch(() => undefined)
    await tx.query('INSERT INTO log VALUES (2)')
    await tx.commit()
    await tx.release()
    expect(await logged(watcher)).toEqual([2])
  })

  describe('what would end the transaction is not sent', () => {
    test.each([
      'COMMIT',
      'ROLLBACK',
      'BEGIN',
      'START TRANSACTION',
      'CREATE TABLE IF NOT EXISTS log (id INT)',
      'ALTER TABLE log ADD note INT',
      'TRUNCATE log',
      'DROP TABLE IF EXISTS nothing',
      'SET autocommit = 1',
      "SET @a = 'x;', @@session.autocommit = ON",
      '/*! COMMIT */',
      '/* say */ -- it\n # here\n commit',
      'LOCK TABLES t READ',
      'FLUSH TABLES',
      "XA START 'a'",
    ])('%s', async (text) => {
      await using pool = place.pool()
      await using session = await place.session()
      const swallowed = createTransactions(pool.driver).run(async (tx) => {
        await tx.query('INSERT INTO log VALUES (1)')
        await expect(tx.query(text)).rejects.toMatchObject({
          code: /begin|start/i.test(text) ? 'TX_NESTED' : 'TX_ENDED_INSIDE',
        })
      })
      await expect(swallowed).rejects.toMatchObject({ details: { ended: 'refused' } })
      expect(await logged(session)).toEqual([])
    })

    test.each(habitsOf[place.client].calls)('nor is %s() called', async (method) => {
      await using pool = place.pool()
      await using session = await place.session()
      const told = createTransactions(pool.driver).run(async (tx) => {
        await tx.query('INSERT INTO log VALUES (1)')
        await Promise.resolve()
          .then(async () => await tx[method]())
          .catch(() => undefined)
      })
      const code = method === 'beginTransaction' ? 'TX_NESTED' : 'TX_ENDED_INSIDE'
      await expect(told).rejects.toMatchObject({ code })
      expect(await logged(session)).toEqual([])
    })

    test.each([
      'SAVEPOINT mine',
      'CREATE TEMPORARY TABLE mine (id INT)',
      "SELECT 'COMMIT; BEGIN' AS text",
      'SET @mine = 1',
      'SELECT 1 AS commit_count',
      'DO 0',
    ])('but this is: %s', async (text) => {
      await using pool = place.pool()
      await using session = await place.session()
      await createTransactions(pool.driver).run(async (tx) => {
        await tx.query('INSERT INTO log VALUES (1)')
        await tx.query(text)
      })
      expect(await logged(session)).toEqual([1])
    })
  })

  test.each(['returns', 'fails'])(
    'a procedure that commits where nobody sees it: told when the body %s',
    async (how) => {
      await using pool = place.pool()
      await using session = await place.session()
      const told = createTransactions(pool.driver).run(async (tx) => {
        await tx.query('INSERT INTO log VALUES (1)')
        await tx.query('CALL ends()')
        await tx.query('INSERT INTO log VALUES (2)')
        if (how === 'fails') throw new Error('mine')
      })
      await expect(told).rejects.toMatchObject({
        code: 'TX_ENDED_INSIDE',
        details: { ended: 'unknown' },
      })
      // What came before it is saved, what came after it is not.
      expect(await logged(session)).toEqual([1])
    },
  )

  test('a statement that a body has left behind: TX_UNAWAITED, and nothing is saved', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    let left: Promise<unknown> | undefined
    const told = createTransactions(pool.driver).run(async (tx) => {
      left = tx.query('INSERT INTO log VALUES (1)')
      await Promise.resolve()
    })
    await expect(told).rejects.toMatchObject({ code: 'TX_UNAWAITED' })
    await left?.catch(() => undefined)
    expect(await logged(session)).toEqual([])
  })

  test('a handle is of no use when its body has returned', async () => {
    await using pool = place.pool()
    let kept: Handle | undefined
    await createTransactions(pool.driver).run(async (tx) => {
      kept = tx
    })
    await expect(kept?.query('SELECT 1')).rejects.toMatchObject(habitsOf[place.client].ended)
  })

  test('a connection goes back to the pool as it was', async () => {
    await using pool = place.pool(1)
    const tx = createTransactions(pool.driver)
    const look = async (): Promise<unknown> => {
      const handle = await pool.connect()
      const rows = await pool.rows(
        handle,
        'SELECT @@autocommit AS autocommit, CONNECTION_ID() AS id',
      )
      await handle.release()
      return rows
    }
    const before = await look()
    await tx.run(async (inner) => await inner.query('INSERT INTO log VALUES (1)'))
    expect(await look()).toEqual(before)
    await tx.run(async () => Promise.reject(new Error('mine'))).catch(() => undefined)
    expect(await look()).toEqual(before)
  })

  test('a transaction that somebody has left open on a connection is not joined', async () => {
    await using pool = place.pool(1)
    await using session = await place.session()
    // A read that has begun one is enough; `mariadb` rolls back what it gets back.
    const leftOpen = await pool.connect()
    await leftOpen.query('SET autocommit = 0')
    await leftOpen.query('INSERT INTO log VALUES (1)')
    if (place.client === 'mariadb') return
    await leftOpen.release()
    const tx = createTransactions(pool.driver)
    await expect(tx.run(async () => 'joined')).rejects.toMatchObject({ code: 'TX_SESSION_SHARED' })
    // That connection is gone, and the next one is clean.
    expect(await tx.run(async () => 'clean')).toBe('clean')
    expect(await logged(session)).toEqual([])
  })

  test('a deadline ends the statement that is waited for', async () => {
    await using pool = place.pool()
    await using other = await place.session()
    await other.all('BEGIN', 'UPDATE t SET v = 1 WHERE id = 1')
    const told = createTransactions(pool.driver).run(
      async (tx) => {
        await tx.query('INSERT INTO log VALUES (1)')
        await tx.query('UPDATE t SET v = 2 WHERE id = 1')
      },
      { deadline: 300 },
    )
    await expect(told).rejects.toMatchObject({ code: 'TX_DEADLINE' })
    expect(await logged(other)).toEqual([])
  })

  test('a deadline ends it also where the pool has no connection to ask with', async () => {
    await using pool = place.pool(1)
    await using other = await place.session()
    await other.all('BEGIN', 'UPDATE t SET v = 1 WHERE id = 1')
    const told = createTransactions(pool.driver).run(
      async (tx) => await tx.query('UPDATE t SET v = 2 WHERE id = 1'),
      { deadline: 200 },
    )
    await expect(told).rejects.toMatchObject({ code: 'TX_DEADLINE' })
    await other.rows('ROLLBACK')
  })

  test('a connection that is killed in the body: CONNECTION_LOST, and run again', async () => {
    await using pool = place.pool()
    await using session = await place.session()
    let attempts = 0
    const body = async (tx: Handle): Promise<void> => {
      attempts += 1
      const [row] = await pool.rows(tx, 'SELECT CONNECTION_ID() AS id')
      await tx.query(`INSERT INTO log VALUES (${attempts})`)
      if (attempts > 1) return
      await session.rows(`KILL ${String(row?.['id'])}`)
      await tx.query('SELECT 1')
    }
    await createTransactions(pool.driver).run(body)
    expect(attempts).toBe(2)
    expect(await logged(session)).toEqual([2])
    attempts = 0
    const once = createTransactions(pool.driver).run(body, { retry: false })
    await expect(once).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
  })

  test('two transactions at once are on two connections', async () => {
    await using pool = place.pool(2)
    const inside = deferred()
    const tx = createTransactions(pool.driver)
    const id = async (handle: Handle): Promise<unknown> =>
      (await pool.rows(handle, 'SELECT CONNECTION_ID() AS id'))[0]?.['id']
    const first = tx.run(async (handle) => {
      await inside.promise
      return await id(handle)
    })
    const second = await tx.run(id)
    inside.resolve()
    expect(await first).not.toBe(second)
  })

  test('a durable read is refused: no statement here waits for a standby', async () => {
    await using pool = place.pool()
    const told = createTransactions(pool.driver).run(async () => 1, { durable: true })
    await expect(told).rejects.toSatisfy((error) => isHoldfastError(error, 'ENGINE_NOT_OFFERED'))
  })
})
