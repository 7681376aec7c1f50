import { waitUntilBlocked } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { Lease } from '../../../src/entries/leases.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

/** What the fence is worth: the write and the check stand or fall together. */
const fixture = ledgerFixture('CREATE TABLE written (lease text, token bigint)')
const leases = () => fixture.hf.leases
type Tx = pg.PoolClient

const expire = async (name: string): Promise<void> => {
  await fixture.observer.query(
    `UPDATE holdfast.lease SET expires_at = clock_timestamp() - interval '1 ms' WHERE name = $1`,
    [name],
  )
}
const write = async (tx: Tx, lease: Lease<Tx>): Promise<void> => {
  await tx.query('INSERT INTO written VALUES ($1, $2)', [lease.name, lease.token])
}
const written = async (name: string): Promise<bigint[]> =>
  (
    await fixture.observer.query<{ token: string }>(
      'SELECT token FROM written WHERE lease = $1 ORDER BY ctid',
      [name],
    )
  ).rows.map(({ token }) => BigInt(token))

test('the holder writes', async () => {
  await using lease = await leases().acquire(fresh())
  await fixture.hf.transaction(async (tx) => {
    await lease.guard(tx)
    await write(tx, lease)
    await lease.guard(tx)
  })
  expect(await written(lease.name)).toEqual([lease.token])
})

test('whether it was held until its release is told the same however often one asks', async () => {
  const held = await leases().acquire(fresh())
  const expired = await leases().acquire(fresh())
  await expire(expired.name)
  for (const time of [1, 2, 3]) {
    expect([time, await held.release(), await expired.release()]).toEqual([time, true, false])
  }
})

test.each([
  [
    'taken',
    async (lease: Lease<Tx>) => (await expire(lease.name), await leases().acquire(lease.name)),
  ],
  ['expired', async (lease: Lease<Tx>) => await expire(lease.name)],
  ['released', async (lease: Lease<Tx>) => await lease.release()],
  [
    'unknown',
    async (lease: Lease<Tx>) =>
      await fixture.observer.query('DELETE FROM holdfast.lease WHERE name = $1', [lease.name]),
  ],
])(
  '%s: the write is refused, before and after it, and the signal says so',
  async (reason, lose) => {
    for (const first of ['guard', 'write']) {
      const lease = await leases().acquire(fresh())
      await lose(lease)
      const writing = fixture.hf.transaction(async (tx) => {
        if (first === 'write') await write(tx, lease)
        await lease.guard(tx)
        if (first === 'guard') await write(tx, lease)
      })
      await expect(writing).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason } })
      expect(lease.signal.aborted).toBe(true)
      expect(await written(lease.name)).toEqual([])
    }
  },
)

test('with the token alone, as another process would', async () => {
  const lease = await leases().acquire(fresh())
  const { name, token } = lease
  await fixture.hf.transaction(async (tx) => await leases().guard(tx, { name, token }))
  await expect(
    fixture.hf.transaction(async (tx) => await leases().guard(tx, { name, token: token - 1n })),
  ).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason: 'taken' } })
  await lease.release()
})

test('outside a transaction it is refused', async () => {
  await using lease = await leases().acquire(fresh())
  const client = await fixture.pool.connect()
  try {
    await expect(lease.guard(client)).rejects.toMatchObject({ code: 'LEASE_OUTSIDE_TRANSACTION' })
  } finally {
    client.release()
  }
})

describe('while a guarded transaction is open', () => {
  test('nobody takes the lease over, expired or not; it is free when that ends', async () => {
    const lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture)
    await lease.guard(tx)
    await expire(lease.name)
    expect(await leases().tryAcquire(lease.name)).toBeUndefined()
    await write(tx, lease)
    await tx.query('COMMIT')
    await using next = await leases().tryAcquire(lease.name)
    expect(next?.token).toBeGreaterThan(lease.token)
    expect(await written(lease.name)).toEqual([lease.token])
  })

  test('it can be renewed, released, and guarded by others, without waiting', async () => {
    const lease = await leases().acquire(fresh())
    const [one, two] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await lease.guard(one)
    await lease.guard(two)
    expect(await lease.renew()).toBe(true)
    await lease.guard(two)
    expect(await lease.release()).toBe(true)
    // Free, but not before both have ended.
    expect(await leases().tryAcquire(lease.name)).toBeUndefined()
    await one.query('COMMIT')
    expect(await leases().tryAcquire(lease.name)).toBeUndefined()
    await two.query('COMMIT')
    await using next = await leases().tryAcquire(lease.name)
    expect(next).toBeDefined()
  })

  test('a savepoint that is rolled back takes its guard with it', async () => {
    const lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture)
    await tx.query('SAVEPOINT here')
    await lease.guard(tx)
    await tx.query('ROLLBACK TO SAVEPOINT here')
    await expire(lease.name)
    await using next = await leases().tryAcquire(lease.name)
    expect(next).toBeDefined()
  })
})

describe('a take-over is under way', () => {
  /** Takes the lease over in a transaction that is held open. */
  const takingOver = async (name: string): Promise<pg.PoolClient> => {
    const thief = await callerTransaction(fixture)
    await thief.query(
      `SELECT holdfast.acquire_lease($1, $1, gen_random_uuid(), 9000, 0, NULL, NULL)`,
      [name],
    )
    return thief
  }

  test.each(['COMMIT', 'ROLLBACK'])('the guard waits for it, then knows: %s', async (end) => {
    const lease = await leases().acquire(fresh(), { renew: false })
    await expire(lease.name)
    const thief = await takingOver(lease.name)
    const tx = await callerTransaction(fixture)
    const pid = await pidOf(tx)
    const guarding = lease.guard(tx).then(
      () => 'held',
      (error: { details: { reason: string } }) => error.details.reason,
    )
    await waitUntilBlocked(fixture.observer, pid)
    await thief.query(end)
    expect(await guarding).toBe(end === 'COMMIT' ? 'taken' : 'expired')
  })

  test('a renewal waits for it, then knows', async () => {
    const lease = await leases().acquire(fresh(), { renew: false })
    await expire(lease.name)
    const thief = await takingOver(lease.name)
    const renewing = lease.renew()
    await thief.query('COMMIT')
    expect(await renewing).toBe(false)
    expect(lease.signal.aborted).toBe(true)
  })
})

describe('at REPEATABLE READ', () => {
  test('a take-over after the snapshot is a conflict; run again, it is a loss', async () => {
    const lease = await leases().acquire(fresh())
    let attempts = 0
    const writing = fixture.hf.transaction(
      async (tx) => {
        attempts += 1
        await tx.query('SELECT FROM written')
        if (attempts === 1) {
          await expire(lease.name)
          // Another application, which is not inside this transaction.
          await fixture.create().leases.acquire(lease.name)
        }
        await lease.guard(tx)
        await write(tx, lease)
      },
      { isolation: 'repeatable read' },
    )
    await expect(writing).rejects.toMatchObject({ code: 'LEASE_LOST' })
    expect(attempts).toBe(2)
    expect(await written(lease.name)).toEqual([])
  })

  test('released and taken after the snapshot is a conflict as well', async () => {
    const lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await tx.query('SELECT FROM written')
    await lease.release()
    await using _ = await leases().acquire(lease.name)
    await expect(lease.guard(tx)).rejects.toMatchObject({ code: '40001' })
  })

  test('a renewal after the snapshot is none', async () => {
    await using lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await tx.query('SELECT FROM written')
    await lease.renew()
    await lease.guard(tx)
    await write(tx, lease)
    await tx.query('COMMIT')
    expect(await written(lease.name)).toEqual([lease.token])
  })
})

describe('controls', () => {
  test('a check without a lock lets a stale write through', async () => {
    const lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture)
    // Every rule of the guard but its lock.
    const { rows } = await tx.query<{ ok: boolean }>(
      `SELECT token = $2 AND expires_at > clock_timestamp() AS ok FROM holdfast.lease WHERE name = $1`,
      [lease.name, lease.token],
    )
    expect(rows).toEqual([{ ok: true }])
    await expire(lease.name)
    await using next = await leases().tryAcquire(lease.name)
    expect(next).toBeDefined()
    await fixture.hf.transaction(async (other) => {
      await next?.guard(other)
      await write(other, next as Lease<Tx>)
    })
    await write(tx, lease)
    await tx.query('COMMIT')
    // The old holder's write came after the new one's.
    expect(await written(lease.name)).toEqual([next?.token, lease.token])
  })

  test('a take-over that only updates passes by KEY SHARE: FOR UPDATE is what stops it', async () => {
    const lease = await leases().acquire(fresh())
    const tx = await callerTransaction(fixture)
    await lease.guard(tx)
    const thief = await callerTransaction(fixture)
    await thief.query(`SET LOCAL lock_timeout = '100ms'`)
    await thief.query('UPDATE holdfast.lease SET token = token + 1 WHERE name = $1', [lease.name])
    await thief.query('ROLLBACK')
    await thief.query('BEGIN')
    await thief.query(`SET LOCAL lock_timeout = '100ms'`)
    await expect(
      thief.query('SELECT FROM holdfast.lease WHERE name = $1 FOR UPDATE', [lease.name]),
    ).rejects.toMatchObject({ code: '55P03' })
  })
})
