import { fork } from 'node:child_process'
import { once as event } from 'node:events'
import { fileURLToPath } from 'node:url'
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import type { HoldPolicy } from '../../../src/ledger/holds.ts'
import type { Accepted } from '../../../src/ledger/verdict.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { inTime } from '../../support/in-time.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })
const policyOf = (name: string, policy: HoldPolicy = {}): Quota<unknown, number> =>
  fixture.hf.quota({ name, limit: 10, per: 'lifetime', ...policy }) as Quota<unknown, number>

let quota: Quota<unknown, number>
beforeAll(() => {
  quota = policyOf('holds')
})

async function holdOf(from: Quota<unknown, number>, key: string, amount = 4): Promise<string> {
  const verdict = await from.hold(key, amount, { ...once(), ttl: '1 h' })
  return (verdict as Accepted<number>).holdId as string
}

/** As if the hold's time had come. */
async function expire(holdId: string): Promise<void> {
  await fixture.observer.query(
    `WITH h AS (UPDATE holdfast.hold SET expires_at = clock_timestamp() WHERE id = $1::uuid
       RETURNING bucket, account)
     UPDATE holdfast.balance b SET due_at = clock_timestamp() FROM h
     WHERE b.bucket = h.bucket AND b.account = h.account`,
    [holdId.slice(4)],
  )
}

interface HoldRow {
  readonly state: number
  readonly held: number
  readonly debited: number
}

async function stored(book: string, key: string): Promise<HoldRow | undefined> {
  const { rows } = await fixture.observer.query<HoldRow>(
    `SELECT h.state::int AS state, b.held::int AS held, b.debited::int AS debited
     FROM holdfast.account a JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
     JOIN holdfast.hold h ON h.bucket = a.bucket AND h.account = a.id
     WHERE a.book = $1 AND a.key = $2`,
    [book, key],
  )
  return rows[0]
}

/** Hold states as the table has them. */
const [open, settled, released, expired, settledLate] = [0, 1, 2, 3, 4]

describe('settle under every policy', () => {
  // Limit 10, 4 used, 4 held: 2 are free. Held and free together are 6.
  type Expected = number | 'insufficient' | 'ended'
  const overruns = ['book', 'refuse', 'cap', 'available'] as const
  const lates = ['book', 'refuse', 'ignore'] as const
  /** What is charged for 3, for 6 and for 9 while the hold is open, and equally if it is booked late. */
  const charged: Record<(typeof overruns)[number], readonly Expected[]> = {
    book: [3, 6, 9],
    refuse: [3, 'insufficient', 'insufficient'],
    cap: [3, 4, 4],
    available: [3, 6, 'insufficient'],
  }
  const cells = overruns.flatMap((overrun) =>
    lates.flatMap((late) =>
      [3, 6, 9].flatMap((actual, at) => {
        const inTime = charged[overrun][at] as Expected
        const afterwards = late === 'book' ? inTime : late === 'refuse' ? 'ended' : 0
        return [
          { overrun, late, actual, when: 'in time', expected: inTime },
          { overrun, late, actual, when: 'too late', expected: afterwards },
        ]
      }),
    ),
  )

  test.each(cells)(
    'overrun $overrun, late $late: $actual of 4, $when → $expected',
    async ({ overrun, late, actual, when, expected }) => {
      const name = `policy-${overrun}-${late}`
      const book = policyOf(name, { overrun, late })
      const key = fresh()
      await book.consume(key, 4, once())
      const holdId = await holdOf(book, key)
      const isLate = when === 'too late'
      if (isLate) await expire(holdId)
      const verdict = await book.settle(holdId, actual)
      const again = await book.settle(holdId, actual)
      const after = await stored(name, key)
      if (typeof expected === 'number') {
        expect(verdict).toMatchObject({ ok: true, debited: 4 + expected })
        expect(again).toMatchObject({ ok: true, debited: 4 + expected })
        const charges = late !== 'ignore' || !isLate
        expect(after).toEqual({
          state: charges ? (isLate ? settledLate : settled) : expired,
          held: 0,
          debited: 4 + expected,
        })
      } else {
        expect(verdict).toMatchObject({ ok: false, reason: expected })
        expect(again).toMatchObject({ ok: false, reason: expected })
        expect(after).toMatchObject({ held: isLate ? 0 : 4, debited: 4 })
      }
    },
  )

  test('the defaults charge what it cost, once, even into debt and even late', async () => {
    const key = fresh()
    const holdId = await holdOf(quota, key)
    expect(await quota.settle(holdId, 12)).toMatchObject({ ok: true, available: -2 })
    expect(await quota.consume(key, 1, once())).toMatchObject({ ok: false, available: -2 })
    expect(await quota.settle(holdId, 11)).toMatchObject({ ok: false, field: 'amount' })
  })
})

describe('a hold ends once', () => {
  test('without an amount it is settled at the estimate', async () => {
    const key = fresh()
    const holdId = await holdOf(quota, key)
    expect(await quota.settle(holdId)).toMatchObject({ ok: true, debited: 4, held: 0 })
    expect(await quota.release(holdId)).toMatchObject({ ok: false, state: 'settled' })
    expect(await quota.extend(holdId, '1 h')).toMatchObject({ ok: false, state: 'settled' })
  })

  test('a settlement of zero charges nothing', async () => {
    const key = fresh()
    const holdId = await holdOf(quota, key)
    expect(await quota.settle(holdId, 0)).toMatchObject({ ok: true, debited: 0, available: 10 })
  })

  test('what was released stays released', async () => {
    const key = fresh()
    const holdId = await holdOf(quota, key)
    expect(await quota.release(holdId)).toMatchObject({ ok: true, available: 10 })
    expect(await quota.release(holdId)).toMatchObject({ ok: true, replayed: true })
    expect(await quota.settle(holdId, 4)).toMatchObject({ ok: false, state: 'released' })
    expect(await stored('holds', key)).toMatchObject({ state: released, debited: 0 })
  })

  test('expiry gives everything back without anybody sweeping, once', async () => {
    const key = fresh()
    const holdId = await holdOf(quota, key)
    expect(await quota.consume(key, 7, once())).toMatchObject({ ok: false, available: 6 })
    await expire(holdId)
    expect(await quota.consume(key, 7, once())).toMatchObject({ ok: true, available: 3 })
    expect(await quota.extend(holdId, '1 h')).toMatchObject({ ok: false, state: 'expired' })
    expect(await quota.release(holdId)).toMatchObject({ ok: false, state: 'expired' })
    expect(await stored('holds', key)).toEqual({ state: expired, held: 0, debited: 7 })
  })

  test('extend keeps it open, counted from now, and never shortens it', async () => {
    const key = fresh()
    const held = (await quota.hold(key, 4, { ...once(), ttl: '10 min' })) as Accepted<number>
    const holdId = held.holdId as string
    const longer = (await quota.extend(holdId, '1 h')) as Accepted<number>
    expect(Number(longer.expiresAt) - Number(held.expiresAt)).toBeGreaterThan(49 * 60_000)
    expect(await quota.extend(holdId, '1 s')).toMatchObject({ expiresAt: longer.expiresAt })
  })

  test('a refund of what was settled is bounded by what was settled', async () => {
    const [key, operation] = [fresh(), once()]
    const held = await quota.hold(key, 4, { ...operation, ttl: '1 h' })
    await quota.settle((held as Accepted<number>).holdId as string, 3)
    const of = operation.operationId
    expect(await quota.refund(key, 4, { ...once(), of })).toMatchObject({ reason: 'over-refund' })
    expect(await quota.refund(key, 3, { ...once(), of })).toMatchObject({ ok: true, available: 10 })
  })

  test('ids of holds that nobody made are told apart from nonsense', async () => {
    const unknown = `000-${fresh()}`
    expect(await quota.settle(unknown, 1)).toMatchObject({ ok: false, reason: 'not-found' })
    await expect(quota.settle('nonsense', 1)).rejects.toMatchObject({ code: 'LEDGER_NAME_INVALID' })
  })

  test.each([undefined, 0, -1, '1 fortnight', Number.NaN])(
    'a hold needs a ttl: %s',
    async (ttl) => {
      const options = { ...once(), ttl: ttl as number }
      await expect(quota.hold(fresh(), 1, options)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
      })
    },
  )
})

describe('withHold', () => {
  const options = (estimate = 4, operation = once()): Parameters<typeof quota.withHold>[1] => ({
    ...operation,
    estimate,
    ttl: '1 h',
  })

  test('settles what the body says it cost', async () => {
    const key = fresh()
    const result = await quota.withHold(key, options(), async (hold) => {
      expect(hold).toMatchObject({ amount: 4, expiresAt: expect.any(Date) })
      expect(await stored('holds', key)).toMatchObject({ state: open, held: 4 })
      expect(await hold.settle(3)).toMatchObject({ ok: true, debited: 3 })
      return 'done'
    })
    expect(result).toBe('done')
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 3 })
  })

  test('settles the estimate if the body forgot', async () => {
    const key = fresh()
    await quota.withHold(key, options(), async () => undefined)
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 4 })
  })

  test('waits for a settlement that the body did not wait for', async () => {
    const key = fresh()
    await quota.withHold(key, options(), async (hold) => void hold.settle(2))
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 2 })
  })

  test('releases if the body throws, and passes its error on', async () => {
    const key = fresh()
    const failure = new Error('the model is down')
    const failing = quota.withHold(key, options(), async () => {
      throw failure
    })
    await expect(failing).rejects.toBe(failure)
    expect(await stored('holds', key)).toEqual({ state: released, held: 0, debited: 0 })
  })

  test('keeps what was settled if the body throws afterwards', async () => {
    const key = fresh()
    const failing = quota.withHold(key, options(), async (hold) => {
      await hold.settle(1)
      throw new Error('could not send the answer')
    })
    await expect(failing).rejects.toThrow('could not send')
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 1 })
  })

  test('does not run the body if the estimate does not fit', async () => {
    const body = async (): Promise<never> => {
      throw new Error('must not run')
    }
    await expect(quota.withHold(fresh(), options(11), body)).rejects.toMatchObject({
      code: 'LEDGER_HOLD_REFUSED',
      details: { verdict: { ok: false, reason: 'insufficient', available: 10 } },
    })
  })

  test('settles the estimate after a settlement that the policy refused', async () => {
    const strict = policyOf('strict', { overrun: 'refuse' })
    const key = fresh()
    await strict.withHold(key, options(), async (hold) => {
      expect(await hold.settle(5)).toMatchObject({ ok: false, reason: 'insufficient' })
    })
    expect(await stored('strict', key)).toEqual({ state: settled, held: 0, debited: 4 })
    const other = fresh()
    const failing = strict.withHold(other, options(), async (hold) => {
      await hold.settle(5)
      throw new Error('too expensive')
    })
    await expect(failing).rejects.toThrow('too expensive')
    expect(await stored('strict', other)).toEqual({ state: released, held: 0, debited: 0 })
  })

  test('says so if the estimate could no longer be charged', async () => {
    const strict = policyOf('strict-late', { late: 'refuse' })
    const late = strict.withHold(fresh(), options(), async (hold) => await expire(hold.id))
    await expect(late).rejects.toMatchObject({
      code: 'LEDGER_HOLD_REFUSED',
      details: { verdict: { reason: 'ended', state: 'expired' } },
    })
  })

  test('runs again under the same hold while it is open, and is charged once', async () => {
    const [key, operation] = [fresh(), once()]
    await quota.hold(key, 4, { ...operation, ttl: '1 min' })
    await quota.withHold(key, options(4, operation), async (hold) => {
      expect(hold.expiresAt.getTime()).toBeGreaterThan(Date.now() + 50 * 60_000)
      await hold.settle(2)
    })
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 2 })
  })

  test('does not run again for an id that was paid for', async () => {
    const [key, operation] = [fresh(), once()]
    let runs = 0
    const body = async (): Promise<number> => (runs += 1)
    await quota.withHold(key, options(4, operation), body)
    await expect(quota.withHold(key, options(4, operation), body)).rejects.toMatchObject({
      code: 'LEDGER_HOLD_REFUSED',
      details: { verdict: { reason: 'ended', state: 'settled' } },
    })
    expect(runs).toBe(1)
  })

  test('aborts its signal shortly before the hold expires', async () => {
    const key = fresh()
    await quota.withHold(key, { ...once(), estimate: 4, ttl: '3 s' }, async (hold) => {
      await event(hold.signal, 'abort')
      expect(hold.signal.reason).toMatchObject({ code: 'LEDGER_HOLD_EXPIRING' })
      const before = await stored('holds', key)
      const verdict = await hold.settle(1)
      inTime(Date.now(), hold.expiresAt.getTime())
      expect(before).toMatchObject({ state: open, held: 4 })
      expect(verdict).toMatchObject({ ok: true })
    })
    expect(await stored('holds', key)).toEqual({ state: settled, held: 0, debited: 1 })
  })

  test('does not abort it if the hold was extended', async () => {
    await quota.withHold(fresh(), { ...once(), estimate: 4, ttl: '400 ms' }, async (hold) => {
      const was = hold.expiresAt
      expect(await hold.extend('1 h')).toMatchObject({ ok: true })
      await waitUntil('the first time is over', async () => {
        const { rows } = await fixture.observer.query('SELECT clock_timestamp() > $1 AS over', [
          was,
        ])
        return rows[0].over || undefined
      })
      expect(hold.signal.aborted).toBe(false)
    })
  })
})

describe('the process dies in the middle', () => {
  const child = fileURLToPath(new URL('../../support/die-in-hold.ts', import.meta.url))

  async function killedAtWork(key: string, way: string): Promise<void> {
    const worker = fork(child, [fixture.database.url, key, way])
    await event(worker, 'message')
    worker.kill('SIGKILL')
    await event(worker, 'exit')
  }

  test('a hold comes back by itself', async () => {
    const key = fresh()
    await killedAtWork(key, 'hold')
    expect(await stored('death-hold', key)).toEqual({ state: open, held: 4, debited: 0 })
    const { rows } = await fixture.observer.query(
      'SELECT h.id FROM holdfast.hold h JOIN holdfast.account a ON a.bucket = h.bucket AND a.id = h.account WHERE a.key = $1',
      [key],
    )
    await expire(`000-${rows[0].id}`)
    expect(await policyOf('death-hold').consume(key, 10, once())).toMatchObject({ ok: true })
  })

  test('control: charged first and refunded in a finally block, it is lost', async () => {
    const key = fresh()
    await killedAtWork(key, 'charge-then-refund')
    expect(await policyOf('death-charge-then-refund').consume(key, 10, once())).toMatchObject({
      ok: false,
      available: 6,
    })
  })
})
