import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import {
  handOver,
  type Name,
  names,
  rowsIn,
  scopeIn,
  setLeaving,
  shardsFixture,
  withoutCheck,
} from '../../support/shards-fixture.ts'

const fixture = shardsFixture()
const calls = { name: 'calls', limit: 10, per: 'lifetime' } as const

function other(name: Name): Name {
  return name === 'north' ? 'south' : 'north'
}

test.each(names)('a quota of the %s is there and nowhere else', async (name) => {
  const key = scopeIn(name)
  const quota = fixture.hf.quota(calls)
  const operationId = fresh()
  expect(await quota.consume(key, 3, { operationId })).toMatchObject({ ok: true, available: 7 })
  expect(await quota.consume(key, 3, { operationId })).toMatchObject({ ok: true, replayed: true })
  expect(await quota.consume(key, 9, { operationId: fresh() })).toMatchObject({ ok: false })
  expect(await quota.peek(key)).toMatchObject({ used: 3 })
  expect(await rowsIn(fixture, 'balance', bucketOf(key))).toEqual({ [name]: 1, [other(name)]: 0 })
})

test('callers of both sides at the same moment are answered each from their own', async () => {
  const quota = fixture.hf.quota(calls)
  const keys = Array.from({ length: 40 }, (_, at) => scopeIn(names[at % 2] as Name))
  const verdicts = await Promise.all(
    keys.map((key) => quota.consume(key, 1, { operationId: fresh() })),
  )
  expect(verdicts.every(({ ok }) => ok)).toBe(true)
  for (const key of keys) {
    const rows = await rowsIn(fixture, 'balance', bucketOf(key))
    expect(rows.north + rows.south).toBeGreaterThan(0)
    expect(rows[names[bucketOf(key) % 2] === 'north' ? 'south' : 'north']).toBe(0)
  }
})

test('a hold is settled where it was made, by its id alone', async () => {
  const quota = fixture.hf.quota(calls)
  for (const name of names) {
    const key = scopeIn(name)
    const hold = await quota.hold(key, 4, { operationId: fresh(), ttl: '1 min' })
    const { holdId } = hold as { readonly holdId: string }
    expect(await fixture.create().quota(calls).settle(holdId, 2)).toMatchObject({ ok: true })
    expect(await quota.peek(key)).toMatchObject({ used: 2 })
  }
})

test('what spans two primaries is refused before anything is sent', async () => {
  const quota = fixture.hf.quota(calls)
  const [north, south] = [scopeIn('north'), scopeIn('south')]
  const lines = [await quota.line(north, 1), await quota.line(south, 1, { scope: south })]
  const options = { operationId: fresh(), scope: north, acrossScopes: true }
  await expect(fixture.hf.ledger.apply(lines, options)).rejects.toMatchObject({
    code: 'SHARD_SPLIT',
  })
  for (const key of [north, south]) expect(await quota.peek(key)).toMatchObject({ used: 0 })
})

test('two scopes of one primary stay together', async () => {
  const quota = fixture.hf.quota(calls)
  const [one, two] = [scopeIn('south'), scopeIn('south')]
  const lines = [await quota.line(one, 1), await quota.line(two, 1, { scope: two })]
  const options = { operationId: fresh(), scope: one, acrossScopes: true }
  expect(await fixture.hf.ledger.apply(lines, options)).toMatchObject({ ok: true })
})

test('credits and stock are routed, their reads too', async () => {
  const credits = fixture.hf.credits({ name: 'credits' })
  for (const name of names) {
    const scope = scopeIn(name)
    const stock = fixture.hf.stock({ name: 'stock', scope })
    await stock.receive([{ sku: 'lamp', quantity: 4 }], { externalId: fresh() })
    expect(await fixture.hf.ledger.balance('stock', 'lamp', { scope })).toMatchObject({
      available: 4,
    })
    const key = scopeIn(name)
    await credits.grant(key, 5, { operationId: fresh(), priority: 1 })
    expect(await credits.spend(key, 2, { operationId: fresh() })).toMatchObject({ ok: true })
    expect(await credits.grants(key)).toMatchObject([{ remaining: 3 }])
  }
})

test('a bucket that has moved is found again, by callers who still believe the old map', async () => {
  const quota = fixture.hf.quota(calls)
  const key = scopeIn('north')
  // Reads the map, and opens nothing.
  expect(await quota.peek(key)).toMatchObject({ used: 0 })
  await handOver(fixture, bucketOf(key), 'south')
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  expect(await rowsIn(fixture, 'balance', bucketOf(key))).toEqual({ north: 0, south: 1 })
})

test('the server refuses, not the client: without the check the wrong primary accepts', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const believes = fixture.create({ wait: '200 ms' })
  await believes.quota(calls).peek(key)
  await fixture.pools.north.query(
    'UPDATE holdfast.shard_map SET here = false, shard = $2, version = 9 WHERE bucket = $1',
    [bucket, 'south'],
  )
  const consume = (): Promise<unknown> =>
    believes.quota(calls).consume(key, 1, { operationId: fresh() })
  // The south has not got it either: nobody serves it.
  await expect(consume()).rejects.toMatchObject({ code: 'SHARD_BUCKET_LOST' })
  expect(await rowsIn(fixture, 'balance', bucket)).toEqual({ north: 0, south: 0 })
  await withoutCheck(fixture, async () => {
    expect(await consume()).toMatchObject({ ok: true })
    expect(await rowsIn(fixture, 'balance', bucket)).not.toEqual({ north: 0, south: 0 })
  })
})

test('a bucket that is leaving is waited for, others are not; then it is served where it went', async () => {
  const quota = fixture.hf.quota(calls)
  const [moving, staying] = [scopeIn('north'), scopeIn('north')]
  const bucket = bucketOf(moving)
  await setLeaving(fixture, bucket, 'north', true)
  let ended = false
  const waiting = quota.consume(moving, 1, { operationId: fresh() }).finally(() => {
    ended = true
  })
  // In the same batch as the one that has to wait.
  const together = quota.consume(staying, 1, { operationId: fresh() })
  expect(await together).toMatchObject({ ok: true })
  for (let at = 0; at < 20; at += 1) {
    expect(await quota.consume(scopeIn('north'), 1, { operationId: fresh() })).toMatchObject({
      ok: true,
    })
  }
  expect(ended).toBe(false)
  await handOver(fixture, bucket, 'south')
  expect(await waiting).toMatchObject({ ok: true })
  expect(await rowsIn(fixture, 'balance', bucket)).toEqual({ north: 0, south: 1 })
})

test('a move that takes too long is named, and one that is called off is served again', async () => {
  const key = scopeIn('north')
  const impatient = fixture.create({ wait: '50 ms' }).quota(calls)
  await setLeaving(fixture, bucketOf(key), 'north', true)
  await expect(impatient.consume(key, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_MOVING',
  })
  await setLeaving(fixture, bucketOf(key), 'north', false)
  expect(await impatient.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
})
