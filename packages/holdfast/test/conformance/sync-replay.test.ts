import { type PostgresServer, startPostgres, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../src/index.ts'
import { migrate } from '../../src/schema/index.ts'

/**
 * What somebody has committed whose wait for the standby was cancelled can be seen, and is lost when the
 * standby takes over. So whoever answers "that was done before" waits for the standby first.
 */
let server: PostgresServer
let admin: pg.Pool
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>

beforeAll(async () => {
  server = await startPostgres()
  admin = new pg.Pool({ connectionString: server.url(), options: '-c synchronous_commit=local' })
  await migrate(fromPg(admin))
  await admin.query('CREATE TABLE written (id text PRIMARY KEY)')
  // What a book is, is asked and written down at its first use, and not what is tried here.
  await createHoldfast(fromPg(admin)).ledger.redeclare('full', { as: 'quota', per: 'lifetime' })
  pool = new pg.Pool({ connectionString: server.url(), max: 4 })
  hf = createHoldfast(fromPg(pool), { resolveFor: '1 ms' })
  // Nobody of this name ever comes: every commit waits until it is cancelled.
  await admin.query(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
  await admin.query('SELECT pg_reload_conf()')
  await waitUntil('the setting holds', async () => {
    const { rows } = await admin.query('SHOW synchronous_standby_names')
    return rows[0]?.synchronous_standby_names === 'nobody' || undefined
  })
})

afterAll(async () => {
  await pool.end()
  await admin.end()
  await server.stop('immediate')
})

async function cancelWait(): Promise<void> {
  await waitUntil('a commit waits for the standby, and is cancelled', async () => {
    const { rows } = await admin.query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
    )
    return rows.length > 0 || undefined
  })
}

/** How it ends if the wait of its commit is cancelled, or at once if it does not wait. */
async function cancelled(run: () => Promise<unknown>): Promise<unknown> {
  const outcome = run().catch((error: unknown) => error)
  const cancelling = cancelWait().catch(() => 'never waited')
  if ((await Promise.race([outcome.then(() => 'answered'), cancelling])) === 'answered')
    return outcome
  return await outcome
}

const full = (of: Holdfast<pg.PoolClient>) => of.quota({ name: 'full', limit: 5, per: 'lifetime' })

const answers: Readonly<Record<string, () => Promise<unknown>>> = {
  'an operation of the ledger': () => full(hf).consume('a', 2, { operationId: 'first' }),
  'an operation on an account that has nothing left': () =>
    full(hf).consume('b', 5, { operationId: 'all' }),
  'work done once': () =>
    hf.once('hook', (tx) => tx.query(`INSERT INTO written VALUES ('hook')`).then(() => 1)),
  'work that is there already': () =>
    hf.work({ queue: 'mails' }).enqueue({ payload: 1, uniqueKey: 'k' }),
}

const unknown = { name: 'UnknownOutcomeError' }

describe.each(Object.entries(answers))('%s', (_, run) => {
  test('is unknown, and asked again it waits for the standby like the first time', async () => {
    expect(await cancelled(run)).toMatchObject(unknown)
    expect(await cancelled(run)).toMatchObject(unknown)
  })
})

test('durable: what a body only looked at is waited for', async () => {
  const look = async (tx: pg.PoolClient) => (await tx.query('SELECT FROM written')).rowCount
  expect(await cancelled(() => hf.transaction(look, { durable: true }))).toMatchObject(unknown)
  // Control.
  expect(await hf.transaction(look)).toBe(1)
})

test('control: without that, a repetition is told that all is well', async () => {
  await admin.query(`CREATE OR REPLACE FUNCTION holdfast.wait_for_standby() RETURNS void
    LANGUAGE plpgsql AS 'BEGIN END'`)
  // The first one locks its account, and waits for the standby by that.
  const [, ...others] = Object.values(answers)
  const told = await Promise.all(others.map((run) => run()))
  expect(told).toMatchObject([{ ok: true }, { ok: true }, { added: false }])
})
