import { waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { SqliteDriver } from '../../../../src/engines/sqlite/driver.ts'
import { createHoldfast, type Holdfast, migrate } from '../../../../src/sqlite.ts'
import { holdfastError } from '../../../../src/core/errors.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { crewOf, told } from '../support/crew.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

const tables = [
  'CREATE TABLE counter (v INTEGER NOT NULL)',
  'INSERT INTO counter VALUES (0)',
  'CREATE TABLE written (seq INTEGER PRIMARY KEY, lease TEXT, token INTEGER)',
]

eachSqlite(tables, (place) => {
  const crew = crewOf(place)
  const start = async (): Promise<Holdfast<Handle>> => {
    const driver = place.driver()
    await migrate(driver)
    return createHoldfast(driver)
  }
  const run = (text: string, ...values: unknown[]): void => {
    place
      .open()
      .prepare(text)
      .run(...values)
  }
  /** As if so much time had passed since its holder was heard of. */
  const age = (name: string, ms: number): void =>
    run(
      'UPDATE holdfast_lease SET expires = expires - ?, acquired = acquired - ? WHERE name = ?',
      ms * 1_000,
      ms * 1_000,
      name,
    )

  describe('acquiring', () => {
    test('one holds it, others do not, and after a release the next does with a higher token', async () => {
      const hf = await start()
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

    test('many at once, on several connections, of a new name and of a known one: one', async () => {
      const all = await Promise.all(Array.from({ length: 4 }, start))
      const name = fresh()
      for (const time of [1, 2, 3]) {
        const leases = await Promise.all(
          [...all, ...all].map(async (hf) => await hf.leases.tryAcquire(name)),
        )
        const winners = leases.filter((lease) => lease !== undefined)
        expect([time, winners.length]).toEqual([time, 1])
        await winners[0]?.release()
      }
    })

    test('names are told apart exactly as they are written', async () => {
      const hf = await start()
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
      const hf = await start()
      const name = fresh()
      const first = await hf.leases.acquire(name)
      age(name, 30_000)
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
      const hf = await start()
      const name = fresh()
      const options = { delayAfterLoss: '1 h' } as const
      const first = await hf.leases.acquire(name, options)
      await first.release()
      await (await hf.leases.tryAcquire(name, options))?.renew()
      age(name, 40_000)
      expect(await hf.leases.read(name)).toMatchObject({ state: 'delayed' })
      expect(await hf.leases.tryAcquire(name)).toBeUndefined()
      age(name, 3_600_000)
      await using third = await hf.leases.tryAcquire(name)
      expect(third).toBeDefined()
    })

    test('inside a transaction of ours it is refused: it would wait for itself', async () => {
      const hf = await start()
      const lease = await hf.leases.acquire(fresh())
      const nested = { code: 'TX_NESTED' }
      for (const call of [
        () => hf.leases.tryAcquire(fresh()),
        () => lease.renew(),
        () => lease.release(),
        () => hf.leases.forget({ idleFor: '1 h' }),
      ])
        await expect(hf.transaction(async () => await call())).rejects.toMatchObject(nested)
      expect(await hf.transaction(async (tx) => await lease.release(tx))).toBe(true)
      expect(await hf.leases.read(lease.name)).toMatchObject({ state: 'free' })
    })

    test('while somebody writes it waits, and says who that was; a look does not wait', async () => {
      const hf = await start()
      const tx = callerTransaction(place, 'BEGIN IMMEDIATE')
      await expect(hf.leases.acquire(fresh(), { wait: 50 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
        blockers: [],
      })
      expect(await hf.leases.read(fresh())).toBeUndefined()
      const waiting = hf.leases.acquire(fresh())
      tx.exec('ROLLBACK')
      await (await waiting).release()
    })

    test('without the tables it says so', async () => {
      const hf = createHoldfast(place.driver())
      const missing = { code: 'SCHEMA_MISSING' }
      await expect(hf.leases.tryAcquire('a')).rejects.toMatchObject(missing)
      await expect(hf.leases.forget({ idleFor: 1 })).rejects.toMatchObject(missing)
      const guarded = hf.transaction((tx) => hf.leases.guard(tx, { name: 'a', token: 1n }))
      await expect(guarded).rejects.toMatchObject(missing)
    })
  })

  describe('processes', () => {
    test('exclude each other for longer than a transaction, and tokens only grow', async () => {
      const hf = await start()
      const all = (await crew.race('lease', 4, '8')).map((tokens) => tokens.map(BigInt))
      expect(value(place.open(), 'SELECT v FROM counter')).toBe(32)
      for (const tokens of all) expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
      expect(new Set(all.flat()).size).toBe(32)
      await using next = await hf.leases.acquire('counter')
      for (const token of all.flat()) expect(next.token).toBeGreaterThan(token)
    })

    test('control: without the lease updates are lost', async () => {
      await start()
      await crew.collide('no lease', 3)
      expect(value(place.open(), 'SELECT v FROM counter')).toBe(1)
    })

    test('of one that is killed, it is free when its time is up, and not before', async () => {
      const hf = await start()
      const name = fresh()
      const child = await crew.start('lease and hold', name)
      child.send('go')
      const token = BigInt((await told(child)) as string)
      await crew.kill(child)
      expect(await hf.leases.tryAcquire(name)).toBeUndefined()
      age(name, 40_000)
      await using next = await hf.leases.acquire(name, { retryEvery: 10 })
      expect(next.token).toBeGreaterThan(token)
    })

    test('of one that is killed in a guarded transaction, nothing of it is kept', async () => {
      const hf = await start()
      const name = fresh()
      const child = await crew.start('guard and hold', name)
      child.send('go')
      expect(await told(child)).toBe('holding')
      await crew.kill(child)
      age(name, 40_000)
      await using next = await hf.leases.acquire(name, { retryEvery: 10 })
      expect(next.token).toBeGreaterThan(0n)
      expect(value(place.open(), 'SELECT COUNT(*) FROM written')).toBe(0)
    })
  })

  /** A driver that loses the answer to what it commits, so many times. */
  const losing = (driver: SqliteDriver<Handle>, times: number): SqliteDriver<Handle> => {
    let left = times
    return {
      ...driver,
      async transaction(body, settings) {
        const result = await driver.transaction(body, settings)
        left -= 1
        if (left >= 0) throw holdfastError('COMMIT_UNKNOWN')
        return result
      },
    }
  }

  test('answers that are lost are asked for again, and are one', async () => {
    const hf = await start()
    const driver = place.driver()
    const name = fresh()
    await (await hf.leases.acquire(name)).release()
    const lease = await createHoldfast(losing(driver, 1)).leases.acquire(name)
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held', token: lease.token })
    expect(await lease.renew()).toBe(true)
    await lease.release()
    const again = await hf.leases.acquire(name)
    expect(again.token).toBeGreaterThan(lease.token)
    await again.release()
    const last = await createHoldfast(losing(driver, 4)).leases.acquire(name)
    expect(await last.renew()).toBe(true)
    expect(await last.release()).toBe(true)
  })

  describe('tokens', () => {
    test('never go back: after a delete, and where the clock does', async () => {
      const hf = await start()
      const name = fresh()
      const first = await hf.leases.acquire(name)
      await first.release()
      run('DELETE FROM holdfast_lease WHERE name = ?', name)
      const second = await hf.leases.acquire(name)
      expect(second.token).toBeGreaterThan(first.token)
      await second.release()
      // As if the machine's clock had been an hour ahead until now.
      run('UPDATE holdfast_lease_counter SET token = token + 3600000000')
      const third = await hf.leases.acquire(name)
      expect(third.token).toBeGreaterThan(second.token + 3_600_000_000n)
      await third.release()
      run('DELETE FROM holdfast_lease_counter')
      await using fourth = await hf.leases.acquire(name)
      expect(fourth.token).toBeGreaterThan(third.token)
    })

    test('control: with the counter and the row gone, a clock that went back gives lower ones', async () => {
      const hf = await start()
      const name = fresh()
      await (await hf.leases.acquire(name)).release()
      run('UPDATE holdfast_lease_counter SET token = token + 3600000000')
      const first = await hf.leases.acquire(name)
      await first.release()
      run('DELETE FROM holdfast_lease WHERE name = ?', name)
      run('DELETE FROM holdfast_lease_counter')
      await using second = await hf.leases.acquire(name)
      expect(second.token).toBeLessThan(first.token)
    })

    test('forgetting deletes what nobody held for so long, and no token', async () => {
      const hf = await start()
      const [kept, gone] = [fresh(), fresh()]
      await using _ = await hf.leases.acquire(kept)
      const forgotten = await hf.leases.acquire(gone)
      await forgotten.release()
      await hf.leases.forget({ idleFor: '1 h' })
      expect(await hf.leases.read(gone)).toMatchObject({ state: 'free' })
      age(gone, 7_200_000)
      expect(await hf.leases.forget({ idleFor: '1 h' })).toBe(1)
      expect(await hf.leases.read(gone)).toBeUndefined()
      expect(await hf.leases.read(kept)).toMatchObject({ state: 'held' })
      await using next = await hf.leases.acquire(gone)
      expect(next.token).toBeGreaterThan(forgotten.token)
    })
  })

  test('release in a transaction: free when it commits, and not if it rolls back', async () => {
    const hf = await start()
    const name = fresh()
    const lease = await hf.leases.acquire(name)
    const undone = callerTransaction(place)
    expect(await lease.release(undone)).toBe(true)
    await expect(lease.guard(undone)).rejects.toMatchObject({ details: { reason: 'released' } })
    undone.exec('ROLLBACK')
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held' })
    const tx = callerTransaction(place)
    expect(await lease.release(tx)).toBe(true)
    tx.exec('COMMIT')
    await using next = await hf.leases.tryAcquire(name)
    expect(next).toBeDefined()
  })

  test('it is renewed in the background; nobody else has it before its holder was told to stop', async () => {
    const hf = await start()
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

  test('a body that writes for longer than its lease lasts has lost it afterwards, and nobody else had it', async () => {
    const hf = await start()
    const lease = await hf.leases.acquire(fresh(), { ttl: 300 })
    await hf.transaction(async (tx) => {
      await lease.guard(tx)
      // Renewals wait for this transaction.
      await waitUntil('its holder was told to stop', () => lease.signal.aborted || undefined)
      tx.prepare('INSERT INTO written (lease, token) VALUES (?, ?)').run(lease.name, 1)
    })
    expect(lease.signal.reason).toMatchObject({ details: { reason: 'deadline' } })
    await using next = await hf.leases.acquire(lease.name, { retryEvery: 5 })
    expect(next.token).toBeGreaterThan(lease.token)
    expect(value(place.open(), 'SELECT COUNT(*) FROM written')).toBe(1)
  })
})
