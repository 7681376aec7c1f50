import { describe, expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { handOver, names, scopeIn, shardsFixture } from '../../support/shards-fixture.ts'

/** The row of a key is on the primary that has the bucket of its scope. */
const fixture = shardsFixture()

describe('on several primaries', () => {
  test('keys of both are counted, each where its bucket is', async () => {
    const limit = fixture.hf.rateLimit({ name: fresh(), limit: 3, per: 'month' })
    const keys = [scopeIn('north'), scopeIn('south')]
    const verdicts = await Promise.all(
      [...keys, ...keys, ...keys, ...keys].map((key) => limit.consume(key)),
    )
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(6)
    for (const name of names) {
      const { rowCount } = await fixture.pools[name].query('SELECT FROM holdfast.rate_limit')
      expect(rowCount).toBe(1)
    }
    for (const key of keys) expect(await limit.peek(key)).toMatchObject({ ok: false })
    expect(await limit.forget()).toBe(0)
  })

  test('calls follow a bucket that is handed over, also in a transaction', async () => {
    const limit = fixture.hf.rateLimit({ name: fresh(), limit: 3, rate: '1 h' })
    const key = scopeIn('north')
    await limit.consume(key, 3)
    await fixture.pools.north.query('DELETE FROM holdfast.rate_limit WHERE bucket = $1', [
      bucketOf(key),
    ])
    await handOver(fixture, bucketOf(key), 'south')
    expect(await limit.consume(key, 2)).toMatchObject({ ok: true, available: 1 })
    await fixture.hf.transaction(async (tx) => await limit.consume(tx, key), { scopes: [key] })
    const { rowCount } = await fixture.pools.south.query(
      'SELECT FROM holdfast.rate_limit WHERE bucket = $1',
      [bucketOf(key)],
    )
    expect(rowCount).toBe(1)
    expect(await limit.peek(key)).toMatchObject({ ok: false, available: 0 })
  })

  test('the table cannot be moved while it is not logged', async () => {
    const north = fixture.pools.north
    await north.query('ALTER TABLE holdfast.rate_limit SET UNLOGGED')
    await expect(
      north.query("SELECT holdfast.refuse_tables(holdfast.move_tables('{}'))"),
    ).rejects.toMatchObject({ code: 'HF003', message: expect.stringContaining('is not logged') })
    await north.query('ALTER TABLE holdfast.rate_limit SET LOGGED')
  })
})
