import { describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast, type Lease, migrate } from '../../../../src/sqlite.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

const tables = ['CREATE TABLE written (seq INTEGER PRIMARY KEY, lease TEXT, token INTEGER)']

/** What the fence is worth: the write and the check stand or fall together. */
eachSqlite(tables, (place) => {
  const start = async (): Promise<Holdfast<Handle>> => {
    const driver = place.driver()
    await migrate(driver)
    return createHoldfast(driver)
  }
  const run = (text: string, name: string): void => void place.open().prepare(text).run(name)
  const expireText = 'UPDATE holdfast_lease SET expires = expires - ttl WHERE name = ?'
  const write = (tx: Handle, { name, token }: Lease<Handle>): void =>
    void tx.prepare('INSERT INTO written (lease, token) VALUES (?, ?)').run(name, token)
  const written = (name: string): bigint[] => {
    const rows = place
      .open()
      .prepare('SELECT CAST(token AS TEXT) AS token FROM written WHERE lease = ? ORDER BY seq')
      .all(name) as { readonly token: string }[]
    return rows.map(({ token }) => BigInt(token))
  }

  test('the holder writes', async () => {
    const hf = await start()
    await using lease = await hf.leases.acquire(fresh())
    await hf.transaction(async (tx) => {
      await lease.guard(tx)
      write(tx, lease)
      await lease.guard(tx)
    })
    expect(written(lease.name)).toEqual([lease.token])
  })

  test('whoever has lost it writes nothing, and is told why', async () => {
    const hf = await start()
    const ways: readonly (readonly [string, (lease: Lease<Handle>) => Promise<unknown>])[] = [
      ['taken', async ({ name }) => (run(expireText, name), await hf.leases.acquire(name))],
      ['expired', async ({ name }) => run(expireText, name)],
      ['released', async (lease) => await lease.release()],
      ['unknown', async ({ name }) => run('DELETE FROM holdfast_lease WHERE name = ?', name)],
    ]
    for (const [reason, lose] of ways) {
      for (const first of ['guard', 'write']) {
        const lease = await hf.leases.acquire(fresh())
        await lose(lease)
        const writing = hf.transaction(async (tx) => {
          if (first === 'write') write(tx, lease)
          await lease.guard(tx)
          if (first === 'guard') write(tx, lease)
        })
        await expect(writing).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason } })
        expect(lease.signal.aborted).toBe(true)
        expect(written(lease.name)).toEqual([])
      }
    }
  })

  test('with the token alone, as another process would; outside a transaction it is refused', async () => {
    const hf = await start()
    await using lease = await hf.leases.acquire(fresh())
    const { name, token } = lease
    await hf.transaction(async (tx) => await hf.leases.guard(tx, { name, token }))
    await expect(
      hf.transaction(async (tx) => await hf.leases.guard(tx, { name, token: token - 1n })),
    ).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason: 'taken' } })
    const outside = place.open()
    const refused = { code: 'LEASE_OUTSIDE_TRANSACTION' }
    await expect(lease.guard(outside)).rejects.toMatchObject(refused)
    await expect(lease.release(outside)).rejects.toMatchObject(refused)
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held' })
  })

  describe("in a caller's transaction", () => {
    test('nobody takes the lease over while it is open, expired or not', async () => {
      const hf = await start()
      const lease = await hf.leases.acquire(fresh(), { renew: false })
      const tx = callerTransaction(place)
      await lease.guard(tx)
      tx.prepare(expireText).run(lease.name)
      let isTaken = false
      const taking = hf.leases.acquire(lease.name, { retryEvery: 5 }).then((next) => {
        isTaken = true
        return next
      })
      write(tx, lease)
      await new Promise(setImmediate)
      expect(isTaken).toBe(false)
      tx.exec('COMMIT')
      await using next = await taking
      expect(next.token).toBeGreaterThan(lease.token)
      expect(written(lease.name)).toEqual([lease.token])
    })

    test('one that has read what was changed since is refused: what it read may be older than the lease', async () => {
      const hf = await start()
      const lease = await hf.leases.acquire(fresh())
      const tx = callerTransaction(place)
      value(tx, 'SELECT COUNT(*) FROM written')
      await lease.release()
      await using next = await hf.leases.acquire(lease.name)
      for (const each of [lease, next])
        await expect(each.guard(tx)).rejects.toMatchObject({ code: 'LOCK_STALE_SNAPSHOT' })
      tx.exec('ROLLBACK')
      expect(written(lease.name)).toEqual([])
    })

    test('control: a check without the right to write lets a stale write through', async () => {
      const hf = await start()
      const lease = await hf.leases.acquire(fresh(), { renew: false })
      const db = place.open()
      // Every rule of the guard but its lock, and the write in a transaction of its own.
      expect(
        value(
          db,
          'SELECT 1 FROM holdfast_lease WHERE name = ? AND token = ?',
          lease.name,
          lease.token,
        ),
      ).toBe(1)
      run(expireText, lease.name)
      await using next = await hf.leases.acquire(lease.name)
      await hf.transaction(async (tx) => {
        await next.guard(tx)
        write(tx, next)
      })
      write(db, lease)
      // The old holder's write came after the new one's.
      expect(written(lease.name)).toEqual([next.token, lease.token])
    })
  })
})
