import { expect, test } from 'vitest'
import type { Quota } from '../../../src/quota/index.ts'
import { type AcrossPart, holdAcross } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { scopeIn, shardsFixture } from '../../support/shards-fixture.ts'

const fixture = shardsFixture()

interface Deal {
  readonly wallet: Quota<never, number>
  readonly seats: Quota<never, number>
  readonly parts: readonly AcrossPart<number>[]
  used(): Promise<readonly [number, number]>
}

/** A wallet in the north and seats in the south, 10 of each. */
function deal(
  amounts: readonly [number, number] = [3, 1],
  late: 'book' | 'refuse' | 'ignore' = 'book',
): Deal {
  const [buyer, show] = [scopeIn('north'), scopeIn('south')]
  const limits = { limit: 10, per: 'lifetime' } as const
  const wallet = fixture.hf.quota({ name: 'wallet', late: 'refuse', ...limits })
  const seats = fixture.hf.quota({ name: 'seats', late, ...limits })
  return {
    wallet,
    seats,
    parts: [
      { book: wallet, key: buyer, amount: amounts[0] },
      { book: seats, key: show, amount: amounts[1] },
    ],
    async used() {
      const [one, two] = [await wallet.peek(buyer), await seats.peek(show)]
      return [one.used + one.held, two.used + two.held]
    },
  }
}

async function expire(): Promise<void> {
  for (const pool of Object.values(fixture.pools)) {
    await pool.query(`UPDATE holdfast.hold SET expires_at = clock_timestamp() - interval '1 s'
      WHERE state = 0`)
    await pool.query(`UPDATE holdfast.balance SET due_at = clock_timestamp() - interval '1 s'
      WHERE due_at < 'infinity'`)
  }
  await fixture.hf.ledger.sweep()
}

test('both are charged, once for all calls under the same id', async () => {
  const { parts, used } = deal()
  const options = { operationId: fresh() }
  expect(await holdAcross(parts, options)).toMatchObject({ ok: true })
  expect(await holdAcross(parts, options)).toMatchObject({ ok: true })
  expect(await used()).toEqual([3, 1])
})

test('if one is refused, nothing is charged; two operations by hand leave one behind', async () => {
  const { parts, used, wallet, seats } = deal([3, 11])
  expect(await holdAcross(parts, { operationId: fresh() })).toMatchObject({
    ok: false,
    part: 1,
    verdict: { reason: 'insufficient' },
  })
  expect(await used()).toEqual([0, 0])
  await wallet.consume(parts[0]?.key ?? '', 3, { operationId: fresh() })
  await seats.consume(parts[1]?.key ?? '', 11, { operationId: fresh() })
  expect(await used()).toEqual([3, 0])
})

/** Goes as far as a process that died there, and gives the id to go on with. */
async function diedAfter({ parts }: Deal, settled: number): Promise<string> {
  const operationId = fresh()
  const ids: string[] = []
  for (const [part, { book, key, amount }] of parts.entries()) {
    const options = { operationId: `${operationId}:${part}`, ttl: '1 min' } as const
    const verdict = await book.hold(key, amount, options)
    ids.push((verdict as { readonly holdId: string }).holdId)
  }
  for (let part = 0; part < settled; part += 1) await parts[part]?.book.settle(ids[part] as string)
  return operationId
}

test('whoever goes on after a crash finishes it', async () => {
  for (const settled of [0, 1]) {
    const one = deal()
    const operationId = await diedAfter(one, settled)
    expect(await holdAcross(one.parts, { operationId })).toMatchObject({ ok: true })
    expect(await one.used()).toEqual([3, 1])
  }
})

test('after a crash before the decision everything expires, and stays so', async () => {
  const one = deal()
  const operationId = await diedAfter(one, 0)
  await expire()
  expect(await holdAcross(one.parts, { operationId })).toMatchObject({
    ok: false,
    part: 0,
    verdict: { reason: 'ended', state: 'expired' },
  })
  expect(await one.used()).toEqual([0, 0])
})

test('after the decision what has expired is booked late, or told', async () => {
  const one = deal()
  const operationId = await diedAfter(one, 1)
  await expire()
  expect(await holdAcross(one.parts, { operationId })).toMatchObject({ ok: true })
  expect(await one.used()).toEqual([3, 1])
  const strict = deal([3, 1], 'refuse')
  const other = await diedAfter(strict, 1)
  await expire()
  await expect(holdAcross(strict.parts, { operationId: other })).rejects.toMatchObject({
    code: 'SHARD_HOLD_INCOMPLETE',
    details: { part: 1 },
  })
})

test('the first book has to let expired reservations be', async () => {
  const { parts } = deal()
  await expect(holdAcross(parts.toReversed(), { operationId: fresh() })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
  await expect(holdAcross([], { operationId: fresh() })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

test('S8: a book that ignores late settlements could leave its part uncharged, and is refused', async () => {
  const { parts, used } = deal([3, 1], 'ignore')
  await expect(holdAcross(parts, { operationId: fresh() })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
  expect(await used()).toEqual([0, 0])
})
