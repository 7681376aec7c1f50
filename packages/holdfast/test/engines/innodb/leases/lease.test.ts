import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { lockLease } from '../../../../src/engines/innodb/leases/leases.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { createHoldfast, type Holdfast, migrate } from '../../../../src/mysql.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await migrate(pool.driver)
  })
  const start = (): { pool: InnodbClient; hf: Holdfast<Handle> } => {
    const pool = place.pool()
    // After the connections of the test were given back.
    onTestFinished(async () => await pool[Symbol.asyncDispose]())
    return { pool, hf: createHoldfast(pool.driver) }
  }
  const run = async (text: string, ...values: unknown[]): Promise<void> => {
    await using session = await place.session()
    await session.rows(text, values)
  }
  /** As if so much time had passed since its holder was heard of. */
  const age = async (name: string, ms: number): Promise<void> =>
    await run(
      `UPDATE holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
       SET h.expires = h.expires - ?, h.acquired = h.acquired - ? WHERE l.name = ?`,
      ms * 1_000,
      ms * 1_000,
      name,
    )

  describe('acquiring', () => {
    test('one holds it, others do not, and after a release the next does with a higher token', async () => {
      const { hf } = start()
      const name = fresh()
      const first = await hf.leases.acquire(name, { note: 'der erste · 一' })
      expect(await hf.leases.tryAcquire(name)).toBeUndefined()
      expect(await hf.leases.read(name)).toMatchObject({
        state: 'held',
        token: first.token,
        note: 'der erste · 一',
      })
      expect(await first.release()).toBe(true)
      expect(await hf.leases.read(name)).toMatchObject({ state: 'free' })
      const second = await hf.leases.tryAcquire(name)
      expect(second?.token).toBeGreaterThan(first.token)
      expect(await first.release()).toBe(true)
      expect(await first.renew()).toBe(false)
      expect(await hf.leases.read(name)).toMatchObject({ state: 'held', token: second?.token })
      await second?.release()
      expect(await hf.leases.read(fresh())).toBeUndefined()
    })

    test('many at once, of a new name and of a known one: one', async () => {
      const { hf } = start()
      const name = fresh()
      for (const time of [1, 2, 3]) {
        const all = await Promise.all(
          Array.from({ length: 8 }, async () => await hf.leases.tryAcquire(name)),
        )
        const winners = all.filter((lease) => lease !== undefined)
        expect([time, winners.length]).toEqual([time, 1])
        await winners[0]?.release()
      }
    })

    test('names that a collation makes one are two, and long ones are told apart', async () => {
      const { hf } = start()
      const base = fresh().toUpperCase()
      const long = 'ä'.repeat(255)
      const names = [base, base.toLowerCase(), `${base} `, `${long}1`, `${long}2`]
      const leases = await Promise.all(names.map(async (name) => await hf.leases.tryAcquire(name)))
      expect(leases.filter((lease) => lease === undefined)).toEqual([])
      const scoped = await hf.leases.tryAcquire(base, { scope: 'other' })
      expect(scoped).toBeDefined()
      await Promise.all([...leases, scoped].map(async (lease) => await lease?.release()))
    })

    test('an expired one is free for others, and stays lost for its holder', async () => {
      const { hf } = start()
      const name = fresh()
      const first = await hf.leases.acquire(name)
      await age(name, 30_000)
      expect(await hf.leases.read(name)).toMatchObject({ state: 'free' })
      expect(await first.renew()).toBe(false)
      expect(first.signal.reason).toMatchObject({
        code: 'LEASE_LOST',
        details: { reason: 'expired' },
      })
      await using second = await hf.leases.tryAcquire(name)
      expect(second?.token).toBeGreaterThan(first.token)
    })

    test('after a loss others wait for the delay; after a release they do not', async () => {
      const { hf } = start()
      const name = fresh()
      const options = { delayAfterLoss: '1 h' } as const
      const first = await hf.leases.acquire(name, options)
      await first.release()
      await (await hf.leases.tryAcquire(name, options))?.renew()
      await age(name, 40_000)
      expect(await hf.leases.read(name)).toMatchObject({ state: 'delayed' })
      expect(await hf.leases.tryAcquire(name)).toBeUndefined()
      await age(name, 3_600_000)
      await using third = await hf.leases.tryAcquire(name)
      expect(third).toBeDefined()
    })

    test('inside a transaction of ours it is refused, and without the tables it says so', async () => {
      const { pool, hf } = start()
      await expect(
        hf.transaction(async () => await hf.leases.tryAcquire(fresh())),
      ).rejects.toMatchObject({ code: 'TX_NESTED' })
      const elsewhere = createHoldfast(pool.driver, { database: 'mysql' })
      await expect(elsewhere.leases.tryAcquire('a')).rejects.toMatchObject({
        code: 'SCHEMA_MISSING',
      })
    })
  })

  /** A driver that loses the answer to what it commits, so many times. */
  const losing = (driver: InnodbDriver<Handle>, times: number): InnodbDriver<Handle> => {
    let left = times
    const lose = (): void => {
      left -= 1
      if (left >= 0) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    }
    const lossy: InnodbDriver<Handle> = {
      ...driver,
      alone: {
        async query(statement) {
          const rows = await driver.alone.query(statement)
          if (!/^(?:SELECT|SHOW)/.test(statement.text)) lose()
          return rows
        },
      },
      async transaction(body, settings) {
        const result = await driver.transaction(body, settings)
        lose()
        return result
      },
    }
    return lossy
  }

  test('answers that are lost are asked for again, and are one', async () => {
    const { pool, hf } = start()
    const name = fresh()
    await (await hf.leases.acquire(name)).release()
    const lossy = createHoldfast(losing(pool.driver, 1))
    const lease = await lossy.leases.acquire(name)
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held', token: lease.token })
    expect(await lease.renew()).toBe(true)
    await lease.release()
    const again = await hf.leases.acquire(name)
    expect(again.token).toBeGreaterThan(lease.token)
    await again.release()
    const releasing = createHoldfast(losing(pool.driver, 4))
    const last = await releasing.leases.acquire(name)
    expect(await last.renew()).toBe(true)
    expect(await last.release()).toBe(true)
  })

  describe('tokens', () => {
    test('never go back: after a delete, and where the clock does', async () => {
      const { hf } = start()
      const name = fresh()
      const first = await hf.leases.acquire(name)
      await first.release()
      await run('DELETE FROM holdfast_lease WHERE name = ?', name)
      const second = await hf.leases.acquire(name)
      expect(second.token).toBeGreaterThan(first.token)
      await second.release()
      // As if the server's clock had been an hour ahead until now.
      await run('UPDATE holdfast_lease_counter SET token = token + 3600000000')
      const third = await hf.leases.acquire(name)
      expect(third.token).toBeGreaterThan(second.token + 3_600_000_000n)
      await third.release()
      await run('DELETE FROM holdfast_lease_counter')
      await using fourth = await hf.leases.acquire(name)
      expect(fourth.token).toBeGreaterThan(third.token)
    })

    test('control: with the counter and the row gone, a clock that went back gives lower ones', async () => {
      const { hf } = start()
      const name = fresh()
      await (await hf.leases.acquire(name)).release()
      await run('UPDATE holdfast_lease_counter SET token = token + 3600000000')
      const first = await hf.leases.acquire(name)
      await first.release()
      await run('DELETE FROM holdfast_lease WHERE name = ?', name)
      await run('DELETE FROM holdfast_lease_counter')
      await using second = await hf.leases.acquire(name)
      expect(second.token).toBeLessThan(first.token)
    })

    test('forgetting deletes what nobody held for so long, and no token', async () => {
      const { hf } = start()
      const [kept, gone] = [fresh(), fresh()]
      await using _ = await hf.leases.acquire(kept)
      const forgotten = await hf.leases.acquire(gone)
      await forgotten.release()
      await hf.leases.forget({ idleFor: '1 h' })
      expect(await hf.leases.read(gone)).toMatchObject({ state: 'free' })
      await age(gone, 7_200_000)
      expect(await hf.leases.forget({ idleFor: '1 h' })).toBeGreaterThan(0)
      expect(await hf.leases.read(gone)).toBeUndefined()
      expect(await hf.leases.read(kept)).toMatchObject({ state: 'held' })
      await using next = await hf.leases.acquire(gone)
      expect(next.token).toBeGreaterThan(forgotten.token)
    })
  })

  test('release in a transaction: free when it commits, and not if it rolls back', async () => {
    const { pool, hf } = start()
    const name = fresh()
    const lease = await hf.leases.acquire(name)
    const undone = await callerTransaction(pool)
    expect(await lease.release(undone)).toBe(true)
    await expect(lease.guard(undone)).rejects.toMatchObject({ details: { reason: 'released' } })
    expect(await hf.leases.tryAcquire(name)).toBeUndefined()
    await undone.rollback()
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held' })
    const client = await callerTransaction(pool)
    expect(await lease.release(client)).toBe(true)
    await client.commit()
    await using next = await hf.leases.tryAcquire(name)
    expect(next).toBeDefined()
  })

  test('it is renewed in the background; nobody else has it before its holder was told to stop', async () => {
    const { hf } = start()
    const name = fresh()
    const ttl = 1_500
    const lease = await hf.leases.acquire(name, { ttl })
    await waitUntil('it was renewed beyond its first expiry', async () => {
      const { acquiredAt, expiresAt } = (await hf.leases.read(name)) ?? {}
      return Number(expiresAt) - Number(acquiredAt) > 2 * ttl || undefined
    })
    expect(lease.signal.aborted).toBe(false)
    await lease.release()
    const silent = await hf.leases.acquire(name, { ttl: 800, renew: false })
    await using other = await hf.leases.acquire(name, { retryEvery: 5 })
    expect(other.token).toBeGreaterThan(silent.token)
    expect(silent.signal.aborted).toBe(true)
  })

  test('moments do not depend on the zone of a session', async () => {
    const { pool, hf } = start()
    await using travelling = place.pool(1)
    const inZone = async (zone: string): Promise<void> => {
      const handle = await travelling.connect()
      await handle.query(`SET time_zone = '${zone}'`)
      await handle.release()
    }
    await inZone('+13:00')
    const name = fresh()
    const far = createHoldfast(travelling.driver)
    await using lease = await far.leases.acquire(name)
    const { expiresAt } = (await hf.leases.read(name)) ?? {}
    expect(Math.abs(Number(expiresAt) - Date.now() - 30_000)).toBeLessThan(15_000)
    expect(await createHoldfast(pool.driver).leases.tryAcquire(name)).toBeUndefined()
    await inZone('-08:00')
    await far.transaction(async (tx) => await lease.guard(tx))
  })

  test('a row that somebody has locked is not waited for', async () => {
    const { pool, hf } = start()
    const name = fresh()
    await (await hf.leases.acquire(name)).release()
    const tx = await callerTransaction(pool)
    const { text, values } = lockLease({ lease: 'holdfast_lease', holder: '', counter: '' }, name)
    await tx.query(text.replace('WHERE id = ?', `WHERE name = '${String(values[0])}'`))
    expect(await hf.leases.tryAcquire(name)).toBeUndefined()
    await tx.rollback()
    await using lease = await hf.leases.tryAcquire(name)
    expect(lease).toBeDefined()
  })
}, 'the server')
