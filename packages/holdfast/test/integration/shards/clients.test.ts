import { sample } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, inScope, lockKey } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { initShards, shardedDriver } from '../../../src/shards/index.ts'
import { testDatabase } from '../../support/database.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { fresh } from '../../support/ledger-fixture.ts'

/** Routed through every client: alone, in transactions of ours, in one of the caller's, and refused. */
const urls: string[] = []
let pools: pg.Pool[] = []

beforeAll(async () => {
  for (const _ of ['a', 'b']) {
    const { directUrl } = await testDatabase()
    urls.push(directUrl)
    pools.push(new pg.Pool({ connectionString: directUrl, max: 2 }))
  }
  for (const pool of pools) await migrate(fromPg(pool))
  await initShards({ a: fromPg(pools[0] as pg.Pool), b: fromPg(pools[1] as pg.Pool) })
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
  pools = []
})

function scopeOf(place: 0 | 1): string {
  for (;;) {
    const scope = fresh()
    if (bucketOf(scope) % 2 === place) return scope
  }
}

describe.each(sample(Object.entries(everyClient), 3, 2))('%s', (_, open) => {
  let clients: OpenClient[] = []
  beforeAll(async () => {
    clients = await Promise.all(urls.map(open))
  })
  afterAll(async () => {
    for (const client of clients) await client.end()
  })

  test('goes to the right primary, and is refused by the wrong one', async () => {
    const [a, b] = clients.map(({ driver }) => driver)
    const hf = createHoldfast(
      shardedDriver({ a: a as NonNullable<typeof a>, b: b as NonNullable<typeof b> }),
    )
    const quota = hf.quota({ name: 'calls', limit: 9, per: 'lifetime' })
    for (const place of [0, 1] as const) {
      const [own, other] = [scopeOf(place), scopeOf(place === 0 ? 1 : 0)]
      expect(await quota.consume(own, 1, { operationId: fresh() })).toMatchObject({ ok: true })
      expect(await hf.once(own, () => 7)).toMatchObject({ result: 7 })
      await hf.guard(inScope(lockKey('lock', own), own), async (tx) => {
        expect(await quota.consume(tx, own, 1, { operationId: fresh() })).toMatchObject({
          ok: true,
        })
      })
      await expect(
        hf.transaction((tx) => quota.consume(tx, other, 1, { operationId: fresh() }), {
          scopes: [own],
        }),
      ).rejects.toMatchObject({ code: 'SHARD_ELSEWHERE' })
      const { rows } = await (pools[place] as pg.Pool).query(
        'SELECT debited FROM holdfast.balance WHERE bucket = $1',
        [bucketOf(own)],
      )
      expect(rows).toContainEqual({ debited: '2' })
    }
  })
})
