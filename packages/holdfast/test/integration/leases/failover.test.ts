import { type PostgresServer, startPostgres, waitUntil, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'

function holdfastOn(server: PostgresServer): Holdfast<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: server.url(), max: 4, connectionTimeoutMillis: 500 })
  pool.on('error', () => undefined)
  onTestFinished(async () => await pool.end())
  return createHoldfast(fromPg(pool))
}

async function primaryAndStandby(): Promise<{ primary: PostgresServer; standby: PostgresServer }> {
  const primary = await startPostgres()
  onTestFinished(async () => await primary.stop('immediate'))
  const pool = new pg.Pool({ connectionString: primary.url(), max: 1 })
  await migrate(fromPg(pool))
  await pool.end()
  const standby = await primary.standby()
  onTestFinished(async () => await standby.stop('immediate'))
  return { primary, standby }
}

const run = async (server: PostgresServer, text: string): Promise<void> => {
  await withClient(server.url(), async (client) => await client.query(text))
}

test('synchronous replication: no acknowledged token comes again, and the fence still stands', async () => {
  const { primary, standby } = await primaryAndStandby()
  await run(primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
  await run(primary, 'SELECT pg_reload_conf()')
  const before = holdfastOn(primary)
  const held = await before.leases.acquire('held', { ttl: '1 h' })
  let highest = held.token
  let acquired = 0
  // Ends with the primary, wherever it happens to be.
  const storm = Promise.allSettled(
    Array.from({ length: 4 }, async (_, worker) => {
      for (;;) {
        const lease = await before.leases.acquire(`storm-${worker}`, { renew: false })
        highest = lease.token > highest ? lease.token : highest
        acquired += 1
        await lease.release()
      }
    }),
  )
  await waitUntil('many were acquired', () => acquired > 200 || undefined)
  await primary.stop('immediate')
  await storm
  await standby.promote()

  const after = holdfastOn(standby)
  await after.transaction(async (tx) => await after.leases.guard(tx, held))
  expect(await after.leases.tryAcquire('held')).toBeUndefined()
  // The counter alone says so; the clock need not help.
  const { rows } = await withClient(standby.url(), async (client) =>
    client.query<{ token: string }>('SELECT max(token) AS token FROM holdfast.lease_counter'),
  )
  expect(BigInt(rows[0]?.token as string)).toBeGreaterThanOrEqual(highest)
  await run(standby, `UPDATE holdfast.lease SET expires_at = now() WHERE name = 'held'`)
  const next = await after.leases.acquire('held')
  expect(next.token).toBeGreaterThan(held.token)
  await expect(
    after.transaction(async (tx) => await after.leases.guard(tx, held)),
  ).rejects.toMatchObject({ code: 'LEASE_LOST', details: { reason: 'taken' } })
})

/** Faster than any client: how many leases the server itself can hand out in one bucket. */
const burst = 3_000
const acquireMany = (scope: string): string => `DO $$ BEGIN
  FOR n IN 1..${burst} LOOP
    PERFORM holdfast.acquire_lease('${scope}', 'burst-' || n, gen_random_uuid(), 3600000, 0, NULL, NULL);
    COMMIT;
  END LOOP;
END $$`

test('S20: asynchronous, the standby lost thousands of leases; the clock keeps their tokens from coming again', async () => {
  const { primary, standby } = await primaryAndStandby()
  const before = holdfastOn(primary)
  const name = fresh()
  const first = await before.leases.acquire(name)
  await first.release()
  await withClient(primary.url(), async (client) => {
    await waitUntil('the standby has it', async () => {
      const { rows } = await client.query<{ behind: string }>(
        'SELECT pg_current_wal_lsn() - replay_lsn AS behind FROM pg_stat_replication',
      )
      return Number(rows[0]?.behind) === 0 || undefined
    })
  })
  const { rows: receivers } = await withClient(standby.url(), async (client) =>
    client.query<{ pid: number }>('SELECT pid FROM pg_stat_wal_receiver'),
  )
  const receiver = receivers[0]?.pid as number
  process.kill(receiver, 'SIGSTOP')
  await run(primary, acquireMany(name))
  const lost = await before.leases.acquire(name, { ttl: '1 h', renew: false })
  await primary.stop('immediate')
  // What it had not read dies with it; the standby recovers and has nobody to ask.
  process.kill(receiver, 'SIGKILL')
  await waitUntil('the standby has recovered', async () => {
    return await standby.promote().then(
      () => true,
      () => undefined,
    )
  })

  const after = holdfastOn(standby)
  // Red: what was acknowledged is gone, and a counter alone would give the token again.
  const { rows } = await withClient(standby.url(), async (client) =>
    client.query<{ token: string }>('SELECT max(token) AS token FROM holdfast.lease_counter'),
  )
  expect(BigInt(rows[0]?.token as string)).toBe(first.token)
  await expect(
    after.transaction(async (tx) => await after.leases.guard(tx, lost)),
  ).rejects.toMatchObject({ code: 'LEASE_LOST' })
  expect((await after.leases.acquire(name)).token).toBeGreaterThan(lost.token)
})
