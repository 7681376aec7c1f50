import { describe, expect, test } from 'vitest'
import {
  acquireLease,
  renewLease,
} from '../../../../holdfast/src/engines/postgres/leases/leases.ts'
import { runAlone } from '../../../../holdfast/src/engines/postgres/leases/run-call.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { patienceMs } from './expectations.ts'
import { holdfastOn, ownDriver, type Room, roomStage } from './room-stage.ts'
import { withoutFenceLock, withoutLeaseLocks } from './weakened.ts'

/**
 * A lease by its calls, one at a time: one that is held renews itself by the clock. That time passes is
 * a flow like any other.
 */
const lease = { scope: 'job', name: 'job' } as const
const holder = '00000000-0000-4000-8000-000000000001'
const taker = '00000000-0000-4000-8000-000000000002'
const oldToken = 1n

const room: Room = {
  tables: `
    CREATE TABLE resource (id int PRIMARY KEY, writers text NOT NULL);
    ALTER TABLE holdfast.lease
      ADD COLUMN live boolean GENERATED ALWAYS AS (expires_at > '2020-01-01 00:00:00+00'::timestamptz) STORED`,
  rows: `
    TRUNCATE resource; INSERT INTO resource VALUES (1, ''); DELETE FROM holdfast.lease; DELETE FROM holdfast.lease_counter;
    INSERT INTO holdfast.lease (bucket, scope, name, owner, token, ttl, delay, acquired_at, expires_at)
    VALUES (holdfast.bucket_of('job'), 'job', 'job', '${holder}', 1, '1 h', '0', now(), now() + interval '1 h')`,
  compared: {
    tables: ['resource', 'holdfast.lease'],
    ignore: ['lease.token', 'lease.acquired_at', 'lease.expires_at'],
  },
}

const timePasses: Flow = async ({ pool }) => {
  await pool.query(`UPDATE holdfast.lease SET expires_at = '2000-01-01'`)
}

const renewing: Flow = (cx) =>
  runAlone(
    ownDriver(cx),
    {},
  )(renewLease('holdfast', { ...lease, owner: holder, token: oldToken, sessionLock: undefined }))

/** The new token; who comes at a moment at which the row is locked tries again later. */
async function takeOver(cx: FlowContext): Promise<bigint> {
  const request = { ...lease, owner: taker, ttlMs: 3_600_000, delayMs: 0 }
  const answer = await runAlone(
    ownDriver(cx),
    {},
  )(acquireLease('holdfast', { ...request, note: undefined, sessionLock: undefined }))
  const [token = ''] = String(answer).split(',')
  if (token === '') throw new Error('held')
  return BigInt(token)
}

const taking: Flow = async (cx) => (await takeOver(cx)) > oldToken

/** The write is made in the transaction of the guard, or in one of its own behind it. */
const writing =
  (together: boolean, token: (cx: FlowContext) => Promise<bigint>): Flow =>
  async (cx) => {
    const mine = await token(cx)
    const hf = holdfastOn(ownDriver(cx))
    const write = async (client: { query(text: string, values: unknown[]): Promise<unknown> }) => {
      await client.query(`UPDATE resource SET writers = writers || $1 || ' '`, [cx.flow])
    }
    await hf.transaction(async (tx) => {
      await hf.leases.guard(tx, { ...lease, token: mine })
      if (together) await write(tx)
    })
    if (!together) await write(cx.pool)
  }
const old = async (): Promise<bigint> => oldToken

describe('renew and take over', () => {
  const explored = roomStage(room)

  test(
    'and time passes',
    async () => {
      const report = await explored({ holder: renewing, taker: taking, time: timePasses })
      expect(report).toBeExhausted({ classes: 14, schedules: 18 })
    },
    patienceMs,
  )

  test(
    'two who take over, and time passes',
    async () => {
      const report = await explored({ a: taking, b: taking, time: timePasses })
      expect(report).toBeExhausted({ classes: 7, schedules: 14 })
    },
    patienceMs,
  )

  describe('control', () => {
    const weakened = roomStage(room, withoutLeaseLocks)

    test('without the locks on the row', async () => {
      const report = await weakened({ holder: renewing, time: timePasses })
      expect(report).toBeCaught(/no serial order|every serial order/)
    })
  })
})

describe('a guarded write and a take-over', () => {
  const explored = roomStage(room)

  test(
    'by the old holder and by the new one',
    async () => {
      const flows = { holder: writing(true, old), taker: writing(true, takeOver), time: timePasses }
      const report = await explored(flows)
      expect(report).toBeExhausted({ classes: 40, schedules: 60 })
    },
    patienceMs,
  )

  test(
    'control: the write in a transaction of its own',
    async () => {
      const flows = {
        holder: writing(false, old),
        taker: writing(true, takeOver),
        time: timePasses,
      }
      expect(await explored(flows)).toBeCaught(/serial order/)
    },
    patienceMs,
  )

  describe('control', () => {
    const weakened = roomStage(room, withoutFenceLock)

    test(
      'a guard that does not lock',
      async () => {
        const flows = {
          holder: writing(true, old),
          taker: writing(true, takeOver),
          time: timePasses,
        }
        expect(await weakened(flows)).toBeCaught(/serial order/)
      },
      patienceMs,
    )
  })
})
