import { type InnodbServer, innodbBinaries, startInnodb } from '@holdfast/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { createTransactions } from '../../../../src/tx/index.ts'
import { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { type Handle, openClient } from '../support/innodb-clients.ts'

/** A server that takes the whole transaction with a wait that it ends; it can be set at its start alone. */
describe.skipIf(innodbBinaries('mariadb-10') === undefined)('innodb_rollback_on_timeout', () => {
  let server: InnodbServer | undefined
  let url = ''
  beforeAll(async () => {
    server = await startInnodb('mariadb-10', { 'innodb-rollback-on-timeout': 'ON' })
    url = await server.createDatabase()
    await using session = await InnodbSession.open(url)
    await session.all(
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 10)',
      'CREATE TABLE log (id INT PRIMARY KEY) ENGINE=InnoDB',
    )
  })
  afterAll(async () => {
    await server?.stop()
  })
  beforeEach(async () => {
    await using session = await InnodbSession.open(url)
    await session.rows('DELETE FROM log')
  })

  const logged = async (): Promise<unknown[]> => {
    await using session = await InnodbSession.open(url)
    return (await session.rows('SELECT id FROM log ORDER BY id')).map(({ id }) => id)
  }

  /** Writes, has a wait ended, and writes again; what fails is passed over but for the wait. */
  const body = async (tx: Handle, other: InnodbSession): Promise<unknown> => {
    await other.all('BEGIN', 'UPDATE t SET v = 11 WHERE id = 1')
    await tx.query('INSERT INTO log VALUES (1)')
    const waited: unknown = await tx
      .query('SELECT v FROM t WHERE id = 1 FOR UPDATE NOWAIT')
      .catch((error: unknown) => error)
    await other.rows('ROLLBACK')
    await tx.query('INSERT INTO log VALUES (2)').catch(() => undefined)
    return waited
  }

  test('a wait that a body swallows: TX_ROLLED_BACK, and nothing is saved', async () => {
    await using pool = openClient('mysql2', url)
    await using other = await InnodbSession.open(url)
    const told = createTransactions(pool.driver).run((tx) => body(tx, other))
    await expect(told).rejects.toMatchObject({ code: 'TX_ROLLED_BACK' })
    expect(await logged()).toEqual([])
  })

  test('one that it lets out is told as it is', async () => {
    await using pool = openClient('mysql2', url)
    await using other = await InnodbSession.open(url)
    const told = createTransactions(pool.driver).run(async (tx) => {
      throw (await body(tx, other)) as Error
    })
    await expect(told).rejects.toMatchObject({ errno: 1205 })
    expect(await logged()).toEqual([])
  })

  test('control: by hand, what follows is saved, and the client says that it has committed', async () => {
    await using pool = openClient('mysql2', url)
    await using other = await InnodbSession.open(url)
    const tx = await pool.connect()
    await tx.beginTransaction()
    await body(tx, other)
    await tx.commit()
    await tx.release()
    expect(await logged()).toEqual([2])
  })

  /** What a call says in a transaction of the caller's behind somebody who has everything, and what is saved if it goes on. */
  const behind = async (
    held: string,
    call: (hf: Holdfast<Handle>, tx: Handle) => Promise<unknown>,
  ): Promise<unknown> => {
    await using pool = openClient('mysql2', url)
    await using other = await InnodbSession.open(url)
    await migrate(pool.driver)
    const hf = createHoldfast(pool.driver)
    await hf.guard(lockKey('seat', 1), async () => undefined)
    await hf.once('order', async () => undefined, { keep: 1 })
    await other.all('BEGIN', held)
    const tx = await pool.connect()
    await tx.beginTransaction()
    await tx.query('INSERT INTO log VALUES (1)')
    const told = await call(hf, tx).catch((error: unknown) => error)
    await other.rows('ROLLBACK')
    // As a caller does who was told.
    if (told instanceof Error) await tx.rollback()
    else {
      await tx.query('INSERT INTO log VALUES (2)')
      await tx.commit()
    }
    await tx.release()
    return told
  }

  test.each<readonly [name: string, held: string, call: Parameters<typeof behind>[1]]>([
    [
      'tryAcquire',
      'SELECT 1 FROM holdfast_lock FOR UPDATE',
      async (hf, tx) => await hf.locks.tryAcquire(tx, lockKey('seat', 1)),
    ],
    [
      'once that does not wait',
      'SELECT 1 FROM holdfast_once FOR UPDATE',
      async (hf, tx) => await hf.once(tx, 'order', async () => undefined, { wait: 'nowait' }),
    ],
    [
      'rows.lock that does not wait',
      'SELECT 1 FROM t FOR UPDATE',
      async (hf, tx) => await hf.rows.lock(tx, 't', [1], { wait: 'nowait' }),
    ],
  ])(
    '%s in a transaction of the caller: the error of the server, and nothing saved',
    async (_, held, call) => {
      expect(await behind(held, call)).toMatchObject({ errno: 1205 })
      expect(await logged()).toEqual([])
    },
  )
})
