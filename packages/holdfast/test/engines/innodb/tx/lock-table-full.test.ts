import { type InnodbServer, innodbBinaries, startInnodb } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTransactions } from '../../../../src/tx/index.ts'
import {
  errnoFrom,
  InnodbSession,
} from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { type Handle, openClient } from '../support/innodb-clients.ts'

const locksFull = 1206
/** Locks of so many sessions would need more memory than the server has in all. */
const mostSessions = 150
const scan = 'SELECT COUNT(filler) FROM wide LOCK IN SHARE MODE'
/** Needs new pages, for which the server looks whether there is memory left. */
const grow = `INSERT INTO fat (filler) VALUES ${Array.from({ length: 3 }, () => "(REPEAT('x', 7000))").join(', ')}`

/** A server with so little memory that locks fill it, which ends the whole transaction. */
describe.skipIf(innodbBinaries('mariadb-10') === undefined)('the lock table is full', () => {
  let server: InnodbServer | undefined
  let url = ''
  const holding: InnodbSession[] = []
  beforeAll(async () => {
    server = await startInnodb('mariadb-10', { 'innodb-buffer-pool-size': '6M' })
    url = await server.createDatabase()
    await using session = await InnodbSession.open(url)
    // Two rows to a page, each of which has locks of its own.
    await session.all(
      'CREATE TABLE wide (id INT PRIMARY KEY, filler VARBINARY(7000) NOT NULL) ENGINE=InnoDB',
      `INSERT INTO wide WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
         SELECT i, REPEAT('x', 7000) FROM n`,
      'CREATE TABLE fat (id INT AUTO_INCREMENT PRIMARY KEY, filler VARBINARY(7000) NOT NULL) ENGINE=InnoDB',
      'CREATE TABLE log (id INT PRIMARY KEY) ENGINE=InnoDB',
    )
    for (let errno: number | undefined; errno === undefined; ) {
      if (holding.length === mostSessions) throw new Error('there is memory left for more locks')
      const one = await InnodbSession.open(url)
      holding.push(one)
      await one.all('BEGIN', scan)
      errno = await errnoFrom(session.rows(grow))
    }
  }, 60_000)
  afterAll(async () => {
    for (const each of holding) await each[Symbol.asyncDispose]()
    await server?.stop()
  })

  const logged = async (): Promise<unknown[]> => {
    await using session = await InnodbSession.open(url)
    return (await session.rows('SELECT id FROM log ORDER BY id')).map(({ id }) => id)
  }

  const body = async (tx: Handle): Promise<unknown> => {
    await tx.query('INSERT INTO log VALUES (1)')
    const full: unknown = await tx.query(grow).catch((error: unknown) => error)
    await tx.query('INSERT INTO log VALUES (2)').catch(() => undefined)
    return full
  }

  test('a body that swallows it: TX_ROLLED_BACK, and nothing is saved', async () => {
    await using pool = openClient('mysql2', url)
    await expect(createTransactions(pool.driver).run(body)).rejects.toMatchObject({
      code: 'TX_ROLLED_BACK',
      cause: { errno: locksFull },
    })
    expect(await logged()).toEqual([])
  })

  test('control: by hand, what follows is saved, and the client says that it has committed', async () => {
    await using pool = openClient('mysql2', url)
    const tx = await pool.connect()
    await tx.beginTransaction()
    expect(await body(tx)).toMatchObject({ errno: locksFull })
    await tx.commit()
    await tx.release()
    expect(await logged()).toEqual([2])
  })
})
