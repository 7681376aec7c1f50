import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createHoldfast, type Holdfast, type Lease, migrate } from '../../../../src/mysql.ts'
import {
  callerTransaction,
  fresh,
  somebodyRuns,
  somebodyWaits,
} from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

/** What the fence is worth: the write and the check stand or fall together. */
eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await using session = await place.session()
    await migrate(pool.driver)
    await session.rows(
      'CREATE TABLE written (seq INT AUTO_INCREMENT PRIMARY KEY, lease VARCHAR(64), token BIGINT) ENGINE=InnoDB',
    )
  })
  const database = (): string => new URL(place.url()).pathname.slice(1)
  const run = async (text: string, name: string): Promise<void> => {
    await using session = await place.session()
    await session.rows(text, [name])
  }
  const expire = async (name: string): Promise<void> =>
    await run(
      `UPDATE holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
       SET h.expires = h.expires - h.ttl WHERE l.name = ?`,
      name,
    )
  const write = async (tx: Handle, { name, token }: Lease<Handle>): Promise<void> => {
    await tx.query(`INSERT INTO written (lease, token) VALUES ('${name}', ${token})`)
  }
  const written = async (name: string): Promise<bigint[]> => {
    await using session = await place.session()
    const rows = await session.rows('SELECT token FROM written WHERE lease = ? ORDER BY seq', [
      name,
    ])
    return rows.map(({ token }) => BigInt(token as number))
  }
  const start = (): { pool: InnodbClient; hf: Holdfast<Handle> } => {
    const pool = place.pool()
    // After the connections of the test were given back.
    onTestFinished(async () => await pool[Symbol.asyncDispose]())
    return { pool, hf: createHoldfast(pool.driver) }
  }

  test('the holder writes', async () => {
    const { hf } = start()
    await using lease = await hf.leases.acquire(fresh())
    await hf.transaction(async (tx) => {
      await lease.guard(tx)
      await write(tx, lease)
      await lease.guard(tx)
    })
    expect(await written(lease.name)).toEqual([lease.token])
  })

  test('whoever has lost it writes nothing, and is told why', async () => {
    const { hf } = start()
    const ways: readonly (readonly [string, (lease: Lease<Handle>) => Promise<unknown>])[] = [
      ['taken', async ({ name }) => (await expire(name), await hf.leases.acquire(name))],
      ['expired', async ({ name }) => await expire(name)],
      ['released', async (lease) => await lease.release()],
      ['unknown', async ({ name }) => await run('DELETE FROM holdfast_lease WHERE name = ?', name)],
    ]
    for (const [reason, lose] of ways) {
      for (const first of ['guard', 'write']) {
        const lease = await hf.leases.acquire(fresh())
        await lose(lease)
        const writing = hf.transaction(async (tx) => {
          if (first === 'write') await write(tx, lease)
          await lease.guard(tx)
          if (first === 'guard') await write(tx, lease)
        })
        await expect(writing).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason } })
        expect(lease.signal.aborted).toBe(true)
        expect(await written(lease.name)).toEqual([])
      }
    }
  })

  test('with the token alone, as another process would; outside a transaction it is refused', async () => {
    const { pool, hf } = start()
    await using lease = await hf.leases.acquire(fresh())
    const { name, token } = lease
    await hf.transaction(async (tx) => await hf.leases.guard(tx, { name, token }))
    await expect(
      hf.transaction(async (tx) => await hf.leases.guard(tx, { name, token: token - 1n })),
    ).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason: 'taken' } })
    const outside = await pool.connect()
    await expect(lease.guard(outside)).rejects.toMatchObject({ code: 'LEASE_OUTSIDE_TRANSACTION' })
    await expect(lease.release(outside)).rejects.toMatchObject({
      code: 'LEASE_OUTSIDE_TRANSACTION',
    })
    await outside.release()
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held' })
  })

  describe('while a guarded transaction is open', () => {
    test('nobody takes the lease over, expired or not; it is free when that ends', async () => {
      const { pool, hf } = start()
      const lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool)
      await lease.guard(tx)
      await expire(lease.name)
      expect(await hf.leases.tryAcquire(lease.name)).toBeUndefined()
      await write(tx, lease)
      await tx.commit()
      await using next = await hf.leases.tryAcquire(lease.name)
      expect(next?.token).toBeGreaterThan(lease.token)
      expect(await written(lease.name)).toEqual([lease.token])
    })

    test('it can be renewed, released, and guarded by others, without waiting', async () => {
      const { pool, hf } = start()
      const lease = await hf.leases.acquire(fresh())
      const [one, two] = [await callerTransaction(pool), await callerTransaction(pool)]
      // Whoever waits is told so by the server after a second.
      await using session = await place.session()
      await session.rows('SET GLOBAL innodb_lock_wait_timeout = 1')
      await using impatient = place.pool()
      await session.rows('SET GLOBAL innodb_lock_wait_timeout = 50')
      await lease.guard(one)
      await lease.guard(two)
      expect(await lease.renew()).toBe(true)
      await lease.guard(two)
      expect(await lease.release()).toBe(true)
      await hf.leases.forget({ idleFor: 1 })
      expect(await hf.leases.read(lease.name)).toMatchObject({ state: 'free' })
      // Free, but not before both have ended.
      const others = createHoldfast(impatient.driver)
      expect(await others.leases.tryAcquire(lease.name)).toBeUndefined()
      await one.commit()
      expect(await others.leases.tryAcquire(lease.name)).toBeUndefined()
      await two.commit()
      await using next = await others.leases.tryAcquire(lease.name)
      expect(next).toBeDefined()
    })
  })

  describe('a take-over is under way', () => {
    test.each(['commit', 'rollback'] as const)(
      'the guard waits for it, then knows: %s',
      async (end) => {
        const { pool, hf } = start()
        const lease = await hf.leases.acquire(fresh(), { renew: false })
        await expire(lease.name)
        const thief = await callerTransaction(pool)
        await thief.query(
          `SELECT token FROM holdfast_lease WHERE name = '${lease.name}' FOR UPDATE`,
        )
        await thief.query(
          `UPDATE holdfast_lease SET token = token + 1 WHERE name = '${lease.name}'`,
        )
        const tx = await callerTransaction(pool)
        const guarding = lease.guard(tx).then(
          () => 'held',
          (error: { details?: { reason: string } }) => error.details?.reason ?? error,
        )
        await using session = await place.session()
        await somebodyRuns(session, database(), 'LOCK IN SHARE MODE')
        await thief[end]()
        expect(await guarding).toBe(end === 'commit' ? 'taken' : 'expired')
      },
    )
  })

  describe('at REPEATABLE READ', () => {
    test('released and taken after the snapshot is lost, or a conflict', async () => {
      const { pool, hf } = start()
      const lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      await tx.query('SELECT * FROM written')
      await lease.release()
      await using next = await hf.leases.acquire(lease.name)
      // MariaDB from 11.6 on says by itself that the snapshot is older (1020).
      const lost: unknown = await lease.guard(tx).catch((error: unknown) => error)
      expect([(lost as { code?: unknown }).code, (lost as { errno?: unknown }).errno]).toSatisfy(
        ([code, errno]: readonly unknown[]) => code === 'LEASE_LOST' || errno === 1020,
      )
      await tx.rollback().catch(() => undefined)
      // And its new holder, who has read before it was: what it read may be older than the last write.
      const early = await callerTransaction(pool, 'REPEATABLE READ')
      await early.query('SELECT * FROM written')
      await next.release()
      await using later = await hf.leases.acquire(lease.name)
      const stale: unknown = await later.guard(early).catch((error: unknown) => error)
      expect([(stale as { code?: unknown }).code, (stale as { errno?: unknown }).errno]).toSatisfy(
        ([code, errno]: readonly unknown[]) => code === 'LOCK_STALE_SNAPSHOT' || errno === 1020,
      )
    })

    test('a transaction that is older than the ttl: a lease that was renewed is held', async () => {
      const { pool, hf } = start()
      await using lease = await hf.leases.acquire(fresh(), { renew: false })
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      // What the snapshot has of the lease is over; what there is by now is not.
      await expire(lease.name)
      await tx.query('SELECT * FROM written')
      await run(
        `UPDATE holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
         SET h.expires = h.expires + h.ttl WHERE l.name = ?`,
        lease.name,
      )
      await lease.guard(tx)
      await write(tx, lease)
      await tx.commit()
      expect(await written(lease.name)).toEqual([lease.token])
    })

    test.each(['released', 'expired'] as const)(
      '%s after the snapshot is lost, also by the token alone, and in one of ours',
      async (reason) => {
        const { pool, hf } = start()
        const { name, token } = await hf.leases.acquire(fresh(), { renew: false })
        const lose = async (): Promise<void> => {
          if (reason === 'expired') return await expire(name)
          await run(
            `UPDATE holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
             SET h.owner = NULL WHERE l.name = ?`,
            name,
          )
        }
        const tx = await callerTransaction(pool, 'REPEATABLE READ')
        await tx.query('SELECT * FROM written')
        const level = { isolation: 'repeatable read' } as const
        const ours = hf.transaction(async (own) => {
          await own.query('SELECT * FROM written')
          await lose()
          await hf.leases.guard(own, { name, token })
        }, level)
        const lost = { code: 'LEASE_LOST', details: { reason } }
        await expect(ours).rejects.toMatchObject(lost)
        await expect(hf.leases.guard(tx, { name, token })).rejects.toMatchObject(lost)
        await tx.rollback()
      },
    )

    test('what the transaction itself has released is released', async () => {
      const { pool, hf } = start()
      const lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      await tx.query('SELECT * FROM written')
      await lease.guard(tx)
      await lease.release(tx)
      await expect(
        hf.leases.guard(tx, { name: lease.name, token: lease.token }),
      ).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason: 'released' } })
      await tx.rollback()
    })

    test('without a connection to look by, the row of the holder is locked', async () => {
      await using other = place.pool()
      await using pool = place.pool(1)
      const [hf, alone] = [createHoldfast(other.driver), createHoldfast(pool.driver)]
      await using lease = await hf.leases.acquire(fresh(), { renew: false })
      const { name, token } = lease
      const level = { isolation: 'repeatable read' } as const
      await alone.transaction(async (tx) => {
        await tx.query('SELECT * FROM written')
        await alone.leases.guard(tx, { name, token })
      }, level)
      const lost = alone.transaction(async (tx) => {
        await tx.query('SELECT * FROM written')
        await lease.release()
        await alone.leases.guard(tx, { name, token })
      }, level)
      // MariaDB from 11.6 on says by itself that the snapshot is older (1020), and it is begun anew.
      await expect(lost).rejects.toMatchObject({ code: 'LEASE_LOST' })
    })

    test('a renewal after the snapshot is none', async () => {
      const { pool, hf } = start()
      await using lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      await tx.query('SELECT * FROM written')
      await lease.renew()
      await lease.guard(tx)
      await write(tx, lease)
      await tx.commit()
      expect(await written(lease.name)).toEqual([lease.token])
    })
  })

  describe('controls', () => {
    test('a check without a lock lets a stale write through', async () => {
      const { pool, hf } = start()
      const lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool)
      // Every rule of the guard but its lock.
      const rows = await pool.rows(
        tx,
        `SELECT token FROM holdfast_lease WHERE name = '${lease.name}' AND token = ${lease.token}`,
      )
      expect(rows).toHaveLength(1)
      await expire(lease.name)
      await using next = await hf.leases.tryAcquire(lease.name)
      await hf.transaction(async (other) => {
        await next?.guard(other)
        await write(other, next as Lease<Handle>)
      })
      await write(tx, lease)
      await tx.commit()
      // The old holder's write came after the new one's.
      expect(await written(lease.name)).toEqual([next?.token, lease.token])
    })

    test('with one row for token and expiry, a renewal waits for the guard', async () => {
      const { pool, hf } = start()
      await using lease = await hf.leases.acquire(fresh())
      const tx = await callerTransaction(pool)
      await tx.query(
        `SELECT h.token FROM holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
         WHERE l.name = '${lease.name}' LOCK IN SHARE MODE`,
      )
      const renewing = lease.renew()
      await using session = await place.session()
      await somebodyWaits(session, database())
      await tx.rollback()
      expect(await renewing).toBe(true)
    })
  })
}, 'the server')
