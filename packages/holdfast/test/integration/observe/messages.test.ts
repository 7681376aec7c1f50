import { channel } from 'node:diagnostics_channel'
import { deferred, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import {
  createHoldfast,
  type Holdfast,
  type HoldfastError,
  legacyKey,
  lockKey,
  shared,
} from '../../../src/index.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'

/** A value of a user's: part of keys, names, ids. It is for programs, in `details`, and in no message. */
const secret = 'alice@example.com'
const key = lockKey('cart', secret)
const nowait = { waitMs: 0, retry: false } as const
const soon = { waitMs: 20, retry: false } as const

const fixture = pgFixture(
  `CREATE TABLE people (id text PRIMARY KEY, version int NOT NULL);
   INSERT INTO people VALUES ('${secret}', 1);
   CREATE TABLE numbers (id int PRIMARY KEY)`,
  'installed',
)
let hf: Holdfast<pg.PoolClient>
beforeAll(() => {
  hf = createHoldfast(fromPg(fixture.pool), {
    resolveFor: '100 ms',
    locks: { strict: true, watch: { heldLongMs: 5, heldTooLongMs: 10 } },
  })
})

/** What goes wrong, with the secret wherever a caller may put one; and the code that must come of it. */
const paths: Readonly<Record<string, () => Promise<unknown>>> = {
  LOCK_TIMEOUT: () => beside(() => hf.guard(key, unreached, soon)),
  LOCK_BUSY: () => beside(() => hf.guard([key, lockKey('cart', `${secret}2`)], unreached, nowait)),
  LOCK_NOT_HELD: () => hf.transaction((tx) => hf.locks.assertHeld(tx, key)),
  LOCK_OUTSIDE_TRANSACTION: async () => {
    const client = await fixture.pool.connect()
    try {
      await hf.locks.acquire(client, key)
    } finally {
      client.release()
    }
  },
  LOCK_STALE_SNAPSHOT: () =>
    hf.transaction((tx) => hf.locks.acquire(tx, legacyKey.hashtext(secret)), {
      isolation: 'repeatable read',
    }),
  LOCK_ORDER: () =>
    hf.transaction(async (tx) => {
      await hf.locks.acquire(tx, shared(key))
      await hf.locks.acquire(tx, key)
    }),
  LOCK_KEY_INVALID: async () => lockKey('cart', `${secret}\0`),
  ROWS_TIMEOUT: () =>
    beside(() => hf.transaction((tx) => hf.rows.lock(tx, 'people', [secret], { wait: 20 }))),
  ROWS_BUSY: () =>
    beside(() => hf.transaction((tx) => hf.rows.lock(tx, 'people', [secret], { wait: 'nowait' }))),
  ROWS_MISSING: () =>
    hf.transaction((tx) => hf.rows.lock(tx, 'people', [`${secret}2`], { expectAll: true })),
  ROWS_KEY_INVALID: () => hf.transaction((tx) => hf.rows.lock(tx, 'numbers', [secret])),
  ROWS_VERSION_CONFLICT: () =>
    hf.transaction((tx) =>
      hf.rows.updateVersioned(tx, 'people', secret, { version: 7, set: { id: secret } }),
    ),
  LEASE_TIMEOUT: async () => {
    await using _ = await hf.leases.acquire(`import:${secret}`)
    await hf.leases.acquire(`import:${secret}`, { wait: '20 ms' })
  },
  LEASE_LOST: async () => {
    await using lease = await hf.leases.acquire(`lost:${secret}`)
    await fixture.observer.query('DELETE FROM holdfast.lease')
    await hf.transaction((tx) => lease.guard(tx))
  },
  LEASE_NAME_INVALID: () => hf.leases.acquire(`${secret}\0`),
  ONCE_KEY_INVALID: () => hf.once(`${secret}\0`, () => 'never'),
  LEDGER_NAME_INVALID: () =>
    hf
      .quota({ name: 'calls', limit: 1, per: 'lifetime' })
      .consume(`${secret}\0`, 1, { operationId: secret }),
  OPTION_INVALID: () => hf.transaction((tx) => hf.rows.lock(tx, `people.${secret}`, [1])),
}

const unreached = (): Promise<never> => Promise.reject(new Error('not reached'))

/** While somebody else holds the lock and the row, under names that show in pg_stat_activity. */
async function beside(call: () => Promise<unknown>): Promise<unknown> {
  const [held, leave] = [deferred(), deferred()]
  const holding = hf.guard(key, async (tx) => {
    await hf.rows.lock(tx, 'people', [secret])
    held.resolve()
    await leave.promise
  })
  await held.promise
  try {
    return await call()
  } finally {
    leave.resolve()
    await holding
  }
}

test('T13: no message of an error contains a value of a key, a name or an id', async () => {
  const errors: HoldfastError[] = []
  const warnings: Error[] = []
  const listen = (event: unknown): void =>
    void errors.push((event as { error: HoldfastError }).error)
  const hear = (warning: Error): void => void warnings.push(warning)
  channel('holdfast:error').subscribe(listen)
  process.on('warning', hear)
  onTestFinished(() => {
    channel('holdfast:error').unsubscribe(listen)
    process.off('warning', hear)
  })
  for (const [code, path] of Object.entries(paths)) {
    const error = await path().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code })
  }
  // The watch has its say too.
  const holder = await callerTransaction(fixture)
  await hf.locks.acquire(holder, lockKey('slow', secret))
  await waitUntil('the warning', () => warnings.length > 0 || undefined)

  const texts = [...errors, ...warnings].map(({ message }) => message)
  expect(texts.filter((text) => text.includes('alice'))).toEqual([])
  // Programs are told, and people see whom to look at.
  expect(errors.find(({ code }) => code === 'LOCK_TIMEOUT')).toMatchObject({
    message: expect.stringMatching(/^LOCK_TIMEOUT \(cart\): /),
    details: { names: [key.name], subject: key.name },
  })
  // On a busy machine the blocker may not be found in time; the message of one is in errors.test.ts too.
  for (const { message, blockers } of errors.filter((error) => error.blockers.length > 0)) {
    expect(message).toMatch(/Blocked by pid \d+, cart, for \d+ ms/)
    expect(blockers[0]?.name).toBe(key.name)
  }
})
