import { describe, expect, onTestFinished, test } from 'vitest'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { rejection, type Setting } from './setting.ts'

/** The ledger in a transaction of its own and in the caller's, by the client's own handle. */
export function ledger<Tx>(at: Setting<Tx>): void {
  const create = async (options?: HoldfastOptions): Promise<Holdfast<Tx>> => {
    await migrate(at.harness.driver)
    return createHoldfast(at.harness.driver, options)
  }
  const declared = { name: 'calls', limit: 10, per: 'lifetime' } as const

  /** What everybody can see of an account: sequence, used, held. */
  const seen = async (key: string): Promise<number[] | undefined> => {
    const { rows } = await at.observer.query<{ seen: number[] }>(
      `SELECT ARRAY[b.seq, b.debited, b.held]::int[] AS seen FROM holdfast.balance b
       JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account WHERE a.key = $1`,
      [key],
    )
    return rows[0]?.seen
  }

  test('an operation alone is committed when it is answered, and applied once', async () => {
    const calls = (await create()).quota(declared)
    const [key, operationId] = [fresh(), fresh()]
    const first = await calls.consume(key, 4, { operationId })
    expect(first).toMatchObject({ ok: true, replayed: false, available: 6, sequence: 1 })
    expect(await seen(key)).toEqual([1, 4, 0])
    expect(await calls.consume(key, 4, { operationId })).toEqual({ ...first, replayed: true })
    expect(await calls.consume(key, 5, { operationId })).toMatchObject({
      ok: false,
      reason: 'conflict',
      field: 'amount',
    })
    expect(await seen(key)).toEqual([1, 4, 0])
  })

  test('many at once are answered one by one', async () => {
    const calls = (await create()).quota(declared)
    const key = fresh()
    const verdicts = await Promise.all(
      Array.from({ length: 12 }, async () => await calls.consume(key, 1, { operationId: fresh() })),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(10)
    expect(await seen(key)).toEqual([10, 10, 0])
  })

  test('who follows writes with the client: both are committed, or neither', async () => {
    const hf = await create()
    const calls = hf.quota({ ...declared, name: fresh() })
    const options = { name: fresh(), book: calls.name }
    await calls.consume('a', 4, { operationId: fresh(), feature: 'chat' })
    const account = await at.account(0)
    const write = async (tx: Tx, amount: number): Promise<void> => {
      const text = `UPDATE account SET balance = balance + ${amount} WHERE id = '${account}'`
      await at.harness.run(tx, text)
    }
    const failed = hf.ledger.follow(options, async (tx, movements) => {
      await write(tx, movements[0]?.debit ?? 0)
      throw new Error('no')
    })
    expect(await rejection(failed)).toMatchObject({ message: 'no' })
    for (const movements of [1, 0]) {
      const followed = await hf.ledger.follow(options, async (tx, [movement]) => {
        expect(movement).toMatchObject({ key: 'a', note: { feature: 'chat' } })
        await write(tx, movement?.debit ?? 0)
      })
      expect(followed).toEqual({ movements, busy: false })
    }
    expect(await at.balance(account)).toBe(4)
    const [from, to] = [new Date(0), new Date('2100-01-01')]
    const { rows } = await hf.ledger.usage(calls.name, { from, to, per: 'day', by: ['feature'] })
    expect(rows).toMatchObject([{ feature: 'chat', used: 4 }])
    expect((await hf.ledger.keys(calls.name)).keys).toMatchObject([{ key: 'a', available: 6 }])
  })

  describe("in the caller's transaction", () => {
    test('what was accepted is part of it: seen by others when it commits', async () => {
      const calls = (await create()).quota(declared)
      const [key, operationId] = [fresh(), fresh()]
      const account = await at.account(0)
      const verdict = await at.harness.own(async (tx) => {
        await at.harness.run(tx, `UPDATE account SET balance = 7 WHERE id = '${account}'`)
        const inside = await calls.consume(tx, key, 4, { operationId })
        expect(await seen(key)).toBeUndefined()
        return inside
      })
      expect(verdict).toMatchObject({ ok: true, replayed: false, available: 6 })
      expect(await seen(key)).toEqual([1, 4, 0])
      expect(await at.balance(account)).toBe(7)
      const again = await at.harness.own(
        async (tx) => await calls.consume(tx, key, 4, { operationId }),
      )
      expect(again).toEqual({ ...verdict, replayed: true })
    })

    test('it rolls back with it, and the same id can be used again', async () => {
      const calls = (await create()).quota(declared)
      const [key, operationId] = [fresh(), fresh()]
      const mine = new Error('mine')
      const error = await rejection(
        at.harness.own(async (tx) => {
          await calls.consume(tx, key, 4, { operationId })
          const hold = await calls.hold(tx, key, 2, { operationId: fresh(), ttl: '1 min' })
          expect(hold.ok).toBe(true)
          throw mine
        }),
      )
      expect(error).toBe(mine)
      expect(await seen(key)).toBeUndefined()
      expect(await calls.consume(key, 5, { operationId })).toMatchObject({
        ok: true,
        replayed: false,
      })
    })

    test('a refusal is an answer: the transaction goes on and commits', async () => {
      const calls = (await create()).quota(declared)
      const [key, operationId] = [fresh(), fresh()]
      const account = await at.account(0)
      await at.harness.own(async (tx) => {
        expect(await calls.consume(tx, key, 11, { operationId: fresh() })).toMatchObject({
          ok: false,
          reason: 'insufficient',
          available: 10,
        })
        expect(await calls.consume(tx, key, 3, { operationId })).toMatchObject({ ok: true })
        expect(await calls.consume(tx, key, 4, { operationId })).toMatchObject({
          reason: 'conflict',
        })
        expect(await calls.refund(tx, key, 1, { operationId: fresh(), of: fresh() })).toMatchObject(
          { reason: 'not-found' },
        )
        expect(
          await calls.refund(tx, key, 4, { operationId: fresh(), of: operationId }),
        ).toMatchObject({ reason: 'over-refund' })
        await at.harness.run(tx, `UPDATE account SET balance = 9 WHERE id = '${account}'`)
      })
      expect(await at.balance(account)).toBe(9)
      expect(await seen(key)).toEqual([1, 3, 0])
    })

    test('a hold is made, settled once, and told how it ended', async () => {
      const calls = (await create()).quota(declared)
      const key = fresh()
      await at.harness.own(async (tx) => {
        const held = await calls.hold(tx, key, 6, { operationId: fresh(), ttl: '1 min' })
        expect(held).toMatchObject({ ok: true, held: 6, available: 4 })
        if (!held.ok || held.holdId === undefined) throw new Error('no hold')
        expect(held.expiresAt).toBeInstanceOf(Date)
        expect(await calls.extend(tx, held.holdId, '2 min')).toMatchObject({ ok: true })
        const settled = await calls.settle(tx, held.holdId, 2)
        expect(settled).toMatchObject({ ok: true, held: 0, debited: 2, available: 8 })
        expect(await calls.settle(tx, held.holdId, 2)).toEqual({ ...settled, replayed: true })
        expect(await calls.release(tx, held.holdId)).toMatchObject({
          reason: 'ended',
          state: 'settled',
        })
      })
      expect(await seen(key)).toEqual([2, 2, 0])
    })

    test('several accounts in one operation, or none of them', async () => {
      const hf = await create()
      const [calls, daily] = [
        hf.quota(declared),
        hf.quota({ ...declared, name: 'daily', limit: 3 }),
      ]
      const key = fresh()
      await at.harness.own(async (tx) => {
        const lines = async (cost: number): Promise<Awaited<ReturnType<typeof calls.line>>[]> => [
          await calls.line(key, cost),
          await daily.line(key, cost),
        ]
        const options = { operationId: fresh(), scope: key }
        expect(await hf.ledger.apply(tx, await lines(3), options)).toMatchObject({ ok: true })
        expect(
          await hf.ledger.apply(tx, await lines(1), { operationId: fresh(), scope: key }),
        ).toMatchObject({ ok: false, book: 'daily', reason: 'insufficient' })
      })
      const { rows } = await at.observer.query<{ book: string; debited: string }>(
        `SELECT a.book, b.debited FROM holdfast.balance b
         JOIN holdfast.account a ON a.bucket = b.bucket AND a.id = b.account
         WHERE a.key = $1 ORDER BY a.book`,
        [key],
      )
      expect(rows).toEqual([
        { book: 'calls', debited: '3' },
        { book: 'daily', debited: '3' },
      ])
    })

    test('one round trip for each operation', async () => {
      const wire = await breakableWire(at.url)
      onTestFinished(async () => await wire[Symbol.asyncDispose]())
      await create()
      const harness = await at.another(wire.url)
      const calls = createHoldfast(harness.driver).quota(declared)
      const key = fresh()
      const counted: number[] = []
      // The first ones prepare statements.
      await calls.consume(fresh(), 1, { operationId: fresh() })
      await harness.own(async (tx) => {
        const warm = await calls.hold(tx, fresh(), 1, { operationId: fresh(), ttl: '1 min' })
        if (warm.ok) await calls.settle(tx, warm.holdId as string)
        // A debit has a statement of its own.
        await calls.consume(tx, fresh(), 1, { operationId: fresh() })
        const count = async <T>(work: () => Promise<T>): Promise<T> => {
          const before = wire.roundTrips()
          const result = await work()
          counted.push(wire.roundTrips() - before)
          return result
        }
        const held = (await count(
          async () => await calls.hold(tx, key, 1, { operationId: fresh(), ttl: '1 min' }),
        )) as { holdId: string }
        for (const operationId of [fresh(), fresh()]) {
          await count(async () => await calls.consume(tx, key, 1, { operationId }))
        }
        await count(async () => await calls.consume(tx, key, 99, { operationId: fresh() }))
        await count(async () => await calls.settle(tx, held.holdId, 1))
      })
      // As many as a lock takes: Drizzle on postgres-js cannot tell whether it is in a transaction, nor
      // send two statements at once.
      const each = harness.facts.roundTrips.acquire
      expect(counted).toEqual(Array.from({ length: 5 }, () => each))
    })

    test('a handle kept after its end is refused', async () => {
      const calls = (await create()).quota(declared)
      let kept: Tx | undefined
      await at.harness.own(async (tx) => {
        kept = tx
      })
      const stale = calls.consume(kept as Tx, fresh(), 1, { operationId: fresh() })
      expect(await rejection(stale)).toBeInstanceOf(Error)
    })

    test('a handle that was never in one is refused', async () => {
      const calls = (await create()).quota(declared)
      for (const withHandle of Object.values(at.harness.lookAlikes)) {
        const key = fresh()
        await withHandle(async (handle) => {
          const error = await rejection(calls.consume(handle, key, 1, { operationId: fresh() }))
          expect(error.code).toBe('LEDGER_OUTSIDE_TRANSACTION')
        })
        expect(await seen(key)).toBeUndefined()
      }
    })
  })
}
