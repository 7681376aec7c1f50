import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHoldfast, lockKey, migrate } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { InnodbClient } from '../support/innodb-clients.ts'

/** A pool may set its sessions up without autocommit: what is a transaction there must stay one. */
eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await migrate(pool.driver)
    await using session = await place.session()
    await session.rows('CREATE TABLE pay (id INT PRIMARY KEY) ENGINE=InnoDB')
  })
  beforeEach(async () => {
    await using session = await place.session()
    await session.rows('DELETE FROM pay')
  })

  const key = lockKey('pay', 1)
  const uses: Readonly<Record<string, (pool: InnodbClient) => Promise<unknown>>> = {
    'a guard': async ({ driver }) =>
      createHoldfast(driver).guard(key, async (tx) => await tx.query('INSERT INTO pay VALUES (1)')),
    'a guard before the server is known': async ({ weakened }) =>
      createHoldfast(weakened((handle) => handle)).guard(
        key,
        async (tx) => await tx.query('INSERT INTO pay VALUES (1)'),
      ),
    'a transaction': async ({ driver }) =>
      createHoldfast(driver).transaction(
        async (tx) => await tx.query('INSERT INTO pay VALUES (1)'),
      ),
    tryGuard: async ({ driver }) =>
      createHoldfast(driver).tryGuard(
        key,
        async (tx) => await tx.query('INSERT INTO pay VALUES (1)'),
      ),
    'a body that fails': async ({ driver }) =>
      createHoldfast(driver)
        .transaction(async (tx) => {
          await tx.query('INSERT INTO pay VALUES (1)')
          throw new Error('mine')
        })
        .catch(() => undefined),
  }

  describe.each([0, 1])('autocommit %s', (autocommit) => {
    test.each(Object.keys(uses))('after %s it is what it was', async (name) => {
      await using pool = place.pool(1)
      await using session = await place.session()
      const set = await pool.connect()
      await set.query(`SET autocommit = ${autocommit}`)
      await set.release()
      for (let time = 0; time < 2; time += 1) {
        await uses[name]?.(pool)
        const saved = await session.rows('SELECT id FROM pay')
        expect(saved).toEqual(name === 'a body that fails' ? [] : [{ id: 1 }])
        await session.rows('DELETE FROM pay')
        const mine = await pool.connect()
        const [row] = await pool.rows(mine, 'SELECT @@autocommit AS autocommit')
        expect(Number(row?.['autocommit'])).toBe(autocommit)
        await mine.query('INSERT INTO pay VALUES (7)')
        await mine.rollback()
        await mine.release()
        expect(await session.rows('SELECT id FROM pay')).toEqual(
          autocommit === 0 ? [] : [{ id: 7 }],
        )
        await session.rows('DELETE FROM pay')
      }
    })

    test('a lease is renewed and released, and not in words alone', async () => {
      await using pool = place.pool(1)
      await using other = place.pool()
      const set = await pool.connect()
      await set.query(`SET autocommit = ${autocommit}`)
      await set.release()
      const [leases, theirs] = [
        createHoldfast(pool.driver).leases,
        createHoldfast(other.driver).leases,
      ]
      const name = `job ${autocommit}`
      // Nobody has had it: its row is made by this.
      const lease = await leases.acquire(name, { ttl: '60 s' })
      expect(await theirs.read(name)).toMatchObject({ state: 'held' })
      const before = await theirs.read(name)
      expect(await lease.renew()).toBe(true)
      const after = await theirs.read(name)
      expect(after).not.toEqual(before)
      expect(await lease.release()).toBe(true)
      expect(await theirs.read(name)).toMatchObject({ state: 'free' })
    })

    test('what somebody has left open is neither saved nor joined', async () => {
      await using pool = place.pool(1)
      await using session = await place.session()
      const left = await pool.connect()
      await left.query(`SET autocommit = ${autocommit}`)
      if (autocommit === 1) await left.query('BEGIN')
      await left.query('INSERT INTO pay VALUES (3)')
      await left.release()
      const write = { text: 'INSERT INTO pay VALUES (4)', values: [] }
      // The pool of mariadb rolls back what it is given back.
      await pool.driver.alone.query(write).catch(async (error: unknown) => {
        expect(error).toMatchObject({ code: 'TX_SESSION_SHARED' })
        await pool.driver.alone.query(write)
      })
      expect(await session.rows('SELECT id FROM pay')).toEqual([{ id: 4 }])
    })

    test('a look at who has a lock leaves no snapshot on a connection', async () => {
      await using pool = place.pool(1)
      await using holder = place.pool(1)
      await using session = await place.session()
      const set = await pool.connect()
      await set.query(`SET SESSION autocommit = ${autocommit}`)
      await set.release()
      const hf = createHoldfast(holder.driver)
      await hf.guard(key, async () => {
        const table = { text: 'SELECT COUNT(*) AS n FROM pay', values: [] }
        for (const uncommitted of [false, true]) {
          await pool.driver.alone.query({ ...table, uncommitted })
          await session.rows(`INSERT INTO pay VALUES (${uncommitted ? 9 : 8})`)
          const [row] = await pool.driver.alone.query(table)
          expect(Number(row?.['n'])).toBe(uncommitted ? 2 : 1)
        }
      })
    })
  })

  test('a transaction that was left open on a connection is told as such', async () => {
    // `mariadb` rolls back what it gets back.
    if (place.client === 'mariadb') return
    await using pool = place.pool(1)
    const handle = await pool.connect()
    await handle.beginTransaction()
    await handle.query('INSERT INTO pay VALUES (1)')
    await handle.release()
    const told = createHoldfast(pool.driver).transaction(async () => 1)
    await expect(told).rejects.toMatchObject({
      code: 'TX_SESSION_SHARED',
      details: { subject: expect.stringContaining('before you give a connection back') as unknown },
    })
  })
})
