import { randomInt } from 'node:crypto'
import { waitUntilBlocked } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import type { LockOrderEvent } from '../../../src/core/events/event-map.ts'
import { type Holdfast, legacyKey, type LockKey, lockKey, shared } from '../../../src/index.ts'
import { callerTransaction, eventsOn, pgFixture, pidOf } from '../../support/pg-fixture.ts'

const fixture = pgFixture(
  'CREATE TABLE accounts (id int PRIMARY KEY); INSERT INTO accounts VALUES (1), (2); CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (1)',
)

type Hf = Holdfast<pg.PoolClient>
type Keys = Parameters<Hf['locks']['acquire']>[1]

const told = (): LockOrderEvent[] => eventsOn<LockOrderEvent>('holdfast:lock.order')
const relaxed = (): Hf => fixture.create({ locks: { strict: false, watch: false } })
const strictly = (): Hf => fixture.create({ locks: { strict: true, watch: false } })

/** One transaction that takes these one call after the other. */
async function inTurn(hf: Hf, ...calls: readonly Keys[]): Promise<void> {
  await hf.transaction(async (tx) => {
    for (const keys of calls) await hf.locks.acquire(tx, keys)
  })
}

/** Two keys in the order PostgreSQL locks them. */
function ordered(name: string): [ReturnType<typeof lockKey>, ReturnType<typeof lockKey>] {
  const [a, b] = [lockKey(name, 'a'), lockKey(name, 'b')]
  if (!('id' in a.lock && 'id' in b.lock)) throw new Error('bigint keys expected')
  return a.lock.id < b.lock.id ? [a, b] : [b, a]
}

let used = 0
/** Keys that no other test takes. */
const key = (namespace: string): LockKey => lockKey(namespace, `k${(used += 1)}`)

describe('T3: the order watch learns', () => {
  test('row 5: 10,000 transactions in one order over 20 namespaces: nothing; one opposite: once', async () => {
    const events = told()
    const hf = relaxed()
    const namespaces = Array.from({ length: 20 }, (_, at) => `ns-${at}`)
    const random = (at: number): LockKey => lockKey(namespaces[at] as string, randomInt(2 ** 40))
    // The short run of CI; the graph itself is shown all of them in order-watch.test.ts.
    let left = process.env['HOLDFAST_BRIEF'] === undefined ? 10_000 : 2_000
    const work = async (): Promise<void> => {
      while (left > 0) {
        left -= 1
        const first = randomInt(19)
        const second = first + 1 + randomInt(19 - first)
        await hf.guard(random(first), async (tx) => hf.locks.acquire(tx, random(second)))
      }
    }
    // Or chance leaves out the one that is opposite to what comes below.
    await hf.guard(random(3), async (tx) => hf.locks.acquire(tx, random(17)))
    await Promise.all(Array.from({ length: 8 }, work))
    expect(events).toEqual([])

    const opposite = (): Promise<void> => inTurn(hf, random(17), random(3))
    await opposite()
    await opposite()
    expect(events).toMatchObject([
      {
        fault: 'out-of-order',
        cycle: [
          { before: 'ns-17', after: 'ns-3', at: expect.stringMatching(/order\.test\.ts:\d+/) },
          { before: 'ns-3', after: 'ns-17', at: expect.stringMatching(/order\.test\.ts:\d+/) },
        ],
      },
    ])
    const [here, there] = events[0]?.cycle ?? []
    expect(here?.at).not.toBe(there?.at)
  }, 60_000)

  test('always cart, then payout is a discipline, whatever the keys', async () => {
    const hf = strictly()
    for (let turn = 0; turn < 50; turn += 1) await inTurn(hf, key('cart'), key('payout'))
    for (let turn = 0; turn < 20; turn += 1) {
      await hf.guard(key('cart'), async (tx) => hf.locks.acquire(tx, key('payout')))
    }
    await expect(inTurn(hf, key('payout'), key('cart'))).rejects.toMatchObject({
      code: 'LOCK_ORDER',
      details: { fault: 'out-of-order', cycle: [{ before: 'payout' }, { before: 'cart' }] },
      message: expect.stringMatching(
        /payout, then cart, at .*order\.test\.ts.*; cart, then payout, at /,
      ),
    })
    // Thrown each time, so that a second run does not look like a fix; told once.
    const events = told()
    await expect(inTurn(hf, key('payout'), key('cart'))).rejects.toMatchObject({
      code: 'LOCK_ORDER',
    })
    expect(events).toEqual([])
  })

  test('always in one call is safe; in one call here and one after the other there is not', async () => {
    const [hf, events] = [relaxed(), told()]
    for (let turn = 0; turn < 20; turn += 1)
      await hf.guard([key('left'), key('right')], async () => {})
    expect(events).toEqual([])
    await inTurn(hf, key('left'), key('right'))
    expect(events).toMatchObject([
      {
        cycle: [
          { before: 'left', together: false },
          { before: 'right', together: true },
        ],
      },
    ])
  })

  test('within a namespace: told when both orders of the numbers were seen', async () => {
    const [hf, events] = [relaxed(), told()]
    const [low, high] = ordered('within')
    await inTurn(hf, high, low)
    expect(events).toEqual([])
    await hf.guard([high, low], async () => {})
    expect(events).toMatchObject([{ fault: 'out-of-order', cycle: [{ together: true }, {}] }])
  })

  test('the right order, a key again, and trying are no fault', async () => {
    const hf = strictly()
    const [low, high] = ordered('order-fine')
    await hf.transaction(async (tx) => {
      await hf.locks.acquire(tx, low)
      await hf.locks.acquire(tx, high)
      await hf.locks.acquire(tx, low)
      await hf.locks.acquire(tx, shared(high))
    })
    await hf.transaction(async (tx) => {
      await hf.locks.acquire(tx, high)
      expect(await hf.locks.tryAcquire(tx, low)).toBe(true)
    })
  })

  test('an upgrade from shared to exclusive is a fault by itself', async () => {
    const [hf, events] = [strictly(), told()]
    const upgraded = key('upgrade')
    await expect(inTurn(hf, shared(upgraded), upgraded)).rejects.toMatchObject({
      code: 'LOCK_ORDER',
      details: { fault: 'upgrade' },
    })
    expect(events).toHaveLength(1)
  })

  test('shared in both orders is none; exclusive on one side of each is', async () => {
    const [hf, events] = [relaxed(), told()]
    await inTurn(hf, shared(key('s1')), shared(key('s2')))
    await inTurn(hf, shared(key('s2')), shared(key('s1')))
    expect(events).toEqual([])
    await inTurn(hf, key('s1'), shared(key('s2')))
    await inTurn(hf, key('s2'), shared(key('s1')))
    expect(events).toHaveLength(1)
  })

  test('legacy keys are told apart by their kind', async () => {
    const [hf, events] = [relaxed(), told()]
    const old = legacyKey.hashtext('somebody')
    await inTurn(hf, legacyKey.pair(7, 1), old, legacyKey.bigint(3), key('modern'))
    await inTurn(hf, legacyKey.pair(7, 2), [old, legacyKey.hashtext('else')])
    expect(events).toEqual([])
    await inTurn(hf, old, legacyKey.pair(7, 1))
    expect(events).toMatchObject([
      { cycle: [{ before: 'legacyKey.hashtext', after: 'legacyKey.pair(7)' }, {}] },
    ])
  })

  test('always rows first is a discipline; the rows of a table in both orders is none', async () => {
    const [hf, events] = [relaxed(), told()]
    const rowsFirst = (table: string): Promise<void> =>
      hf.transaction(async (tx) => {
        await hf.rows.lock(tx, table, [1])
        await hf.locks.acquire(tx, key('after-rows'))
      })
    await rowsFirst('accounts')
    await rowsFirst('accounts')
    const locksFirst = (table: string, wait: 'nowait' | 'block'): Promise<void> =>
      hf.transaction(async (tx) => {
        await hf.locks.acquire(tx, key('after-rows'))
        await hf.rows.lock(tx, table, [1], { wait })
      })
    await locksFirst('orders', 'block')
    await locksFirst('accounts', 'nowait')
    expect(events).toEqual([])
    await locksFirst('accounts', 'block')
    expect(events).toMatchObject([
      {
        fault: 'rows-first',
        cycle: [
          {
            before: 'after-rows',
            after: 'rows of accounts',
            at: expect.stringContaining('order.test.ts'),
          },
          {
            before: 'rows of accounts',
            after: 'after-rows',
            at: expect.stringContaining('order.test.ts'),
          },
        ],
        names: [expect.stringMatching(/^after-rows:/)],
      },
    ])
    await locksFirst('accounts', 'block')
    expect(events).toHaveLength(1)
  })

  test('the previous transaction of the same connection does not count', async () => {
    const hf = strictly()
    const client = await callerTransaction(fixture)
    await inTurn(hf, key('reset-a'), key('reset-b'))
    await hf.locks.acquire(client, key('reset-b'))
    await client.query('COMMIT')
    await client.query('BEGIN')
    await expect(hf.locks.acquire(client, key('reset-a'))).resolves.toBeUndefined()
  })

  test('control: that order really deadlocks', async () => {
    const hf = relaxed()
    const [low, high] = ordered('order-deadlock')
    const [one, two] = [await callerTransaction(fixture), await callerTransaction(fixture)]
    await hf.locks.acquire(one, low)
    await hf.locks.acquire(two, high)
    const [pidOne] = [await pidOf(one)]
    const first = hf.locks.acquire(one, high, { waitMs: 20_000 }).then(() => 'granted', String)
    await waitUntilBlocked(fixture.observer, pidOne)
    const second = hf.locks.acquire(two, low, { waitMs: 20_000 }).then(() => 'granted', String)
    const outcomes = await Promise.race([
      Promise.all([first, second]),
      first.then(async (outcome) => [outcome, await two.query('ROLLBACK').then(() => second)]),
    ])
    expect(outcomes.filter((outcome) => outcome.includes('deadlock detected'))).toHaveLength(1)
  })
})
