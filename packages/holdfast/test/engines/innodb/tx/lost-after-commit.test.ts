import { beforeAll, expect, test } from 'vitest'
import { lockKey } from '../../../../src/core/locks/lock-key.ts'
import { createHoldfast, migrate } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

/**
 * A body has run what may have committed where nobody saw it, and then nobody can be asked any more. It must not be told
 * that nothing is saved, nor be run again.
 */
eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await migrate(pool.driver)
    await using session = await place.session()
    await session.all(
      'CREATE TABLE log (test VARCHAR(40) NOT NULL) ENGINE=InnoDB',
      'CREATE PROCEDURE ends() COMMIT',
      `CREATE PROCEDURE ends_late() BEGIN DO GET_LOCK(CONCAT('late', DATABASE()), 20); COMMIT; END`,
    )
  })

  const idOf = async (pool: InnodbClient, tx: Handle): Promise<number> => {
    const [row] = await pool.rows(tx, 'SELECT CONNECTION_ID() AS id')
    return Number(row?.['id'])
  }

  const unknown = expect.objectContaining({
    code: 'TX_ENDED_INSIDE',
    details: expect.objectContaining({ ended: 'unknown' }),
  })

  const savedBy = async (name: string): Promise<number> => {
    await using session = await place.session()
    return (await session.rows('SELECT test FROM log WHERE test = ?', [name])).length
  }

  test.each(['swallows that', 'fails with that', 'fails otherwise'])(
    'a body that called a procedure, lost its connection and %s',
    async (then) => {
      await using pool = place.pool(3)
      await using session = await place.session()
      const hf = createHoldfast(pool.driver)
      let bodies = 0
      const told = hf.guard(lockKey('lost', then), async (tx) => {
        bodies += 1
        const id = await idOf(pool, tx)
        await tx.query(`INSERT INTO log VALUES ('${then}')`)
        await tx.query('CALL ends()')
        await session.rows(`KILL ${id}`)
        const sent = tx.query(`INSERT INTO log VALUES ('${then}')`)
        if (then === 'fails with that') await sent
        await expect(sent).rejects.toBeInstanceOf(Error)
        if (then === 'fails otherwise') throw new Error('mine')
      })
      await expect(told).rejects.toEqual(unknown)
      expect([bodies, await savedBy(then)]).toEqual([1, 1])
    },
  )

  test('a body that fails while a procedure is under way', async () => {
    await using pool = place.pool(3)
    await using session = await place.session()
    const hf = createHoldfast(pool.driver)
    await session.rows(`DO GET_LOCK(CONCAT('late', DATABASE()), 1)`)
    let late: Promise<unknown> | undefined
    const told = hf.guard(lockKey('late', 1), async (tx) => {
      await tx.query(`INSERT INTO log VALUES ('late')`)
      late = tx.query('CALL ends_late()').catch(() => undefined)
      throw new Error('mine')
    })
    await expect(told).rejects.toEqual(unknown)
    await session.rows(`DO RELEASE_LOCK(CONCAT('late', DATABASE()))`)
    await late
  })

  test('control: one that called nothing is told that nothing is saved', async () => {
    await using pool = place.pool(3)
    await using session = await place.session()
    const hf = createHoldfast(pool.driver)
    const told = hf.guard(
      lockKey('lost', 'plain'),
      async (tx) => {
        const id = await idOf(pool, tx)
        await tx.query(`INSERT INTO log VALUES ('plain')`)
        await session.rows(`KILL ${id}`)
        await tx.query('SELECT 1')
      },
      { retry: false },
    )
    await expect(told).rejects.toMatchObject({ code: 'CONNECTION_LOST' })
    expect(await savedBy('plain')).toBe(0)
  })
})
