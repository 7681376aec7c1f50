/** A primary that an application, or whoever moves buckets, was not told of. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, inScope, lockKey } from '../../../src/index.ts'
import { createMoves, type Moves, shardedDriver } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { leftovers, movesFixture } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture()
const ten = { name: 'ten', limit: 10, per: 'lifetime' } as const

/** An application from before south was added. */
function northOnly(): { readonly hf: Holdfast<pg.PoolClient>; readonly moves: Moves } {
  const pool = new pg.Pool({ connectionString: fixture.urls.north, max: 4 })
  onTestFinished(() => pool.end())
  const north = fromPg(pool)
  return {
    hf: createHoldfast(shardedDriver({ north }, { wait: '30 s' })),
    moves: createMoves({ north: { driver: north, connection: fixture.urls.north } }),
  }
}

type Use = (hf: Holdfast<pg.PoolClient>, scope: string) => Promise<unknown>

const uses: readonly (readonly [string, Use])[] = [
  ['consume', (hf, scope) => hf.quota(ten).consume(scope, 1, { operationId: fresh() })],
  ['peek', (hf, scope) => hf.quota(ten).peek(scope)],
  ['guard', (hf, scope) => hf.guard(inScope(lockKey('a', scope), scope), () => Promise.resolve())],
  ['a transaction', (hf, scope) => hf.transaction((tx) => tx.query('SELECT'), { scopes: [scope] })],
  ['a lease', async (hf, scope) => (await hf.leases.acquire('one', { scope })).release()],
  ['once', (hf, scope) => hf.once(scope, () => Promise.resolve(1))],
  ['enqueue', (hf, scope) => hf.work({ queue: 'q' }).enqueue({ payload: 1, scope })],
]

test.each(uses)('%s in a bucket of a primary that was not told: it is named', async (_, use) => {
  const { hf } = northOnly()
  await expect(use(hf, scopeIn('south'))).rejects.toMatchObject({
    code: 'SHARD_PRIMARY_UNKNOWN',
    retryable: false,
    details: { primary: 'south' },
    message: expect.stringContaining('(south)') as string,
  })
  // What it was told of, it serves.
  await use(hf, scopeIn('north'))
})

test('a bucket that has moved to such a primary since the map was read', async () => {
  const scope = scopeIn('north')
  const { hf } = northOnly()
  const quota = hf.quota(ten)
  await quota.consume(scope, 1, { operationId: fresh() })
  await fixture.moves().move({ buckets: [bucketOf(scope)], to: 'south' })
  await expect(quota.consume(scope, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_PRIMARY_UNKNOWN',
    details: { primary: 'south' },
  })
})

test('status names it, and repair does not take its buckets for lost', async () => {
  const { moves } = northOnly()
  const before = await fixture.moves().status()
  const [, south] = before.primaries
  const status = await moves.status()
  expect(status).toMatchObject({ nobody: [], absent: [{ primary: 'south' }] })
  expect(status.absent[0]?.buckets).toHaveLength(south?.here as number)
  expect(await moves.repair({ adopt: true })).toMatchObject({ adopted: [] })
  expect(await fixture.moves().status()).toMatchObject({ absent: [], nobody: [], several: [] })
})

test('a restored primary is not taken for compared by somebody who was not told of all', async () => {
  const scope = scopeIn('north')
  const { north } = fixture.pools
  // As a restored copy: its files are elsewhere than they were.
  await north.query(`UPDATE holdfast.shard_self SET place = 'elsewhere', started = 'epoch'`)
  const pool = new pg.Pool({ connectionString: fixture.urls.north, max: 4 })
  onTestFinished(() => pool.end())
  const partly = createHoldfast(shardedDriver({ north: fromPg(pool) }, { wait: '200 ms' }))
  const use = (hf: Holdfast<pg.PoolClient>): Promise<unknown> =>
    hf.quota(ten).consume(scope, 1, { operationId: fresh() })
  await expect(use(partly)).rejects.toMatchObject({ code: 'SHARD_UNCONFIRMED' })
  expect(await use(fixture.hf)).toMatchObject({ ok: true })
  expect(await use(partly)).toMatchObject({ ok: true })
})

test('one that is gone for good need not be compared with, if the operator says so', async () => {
  const scope = scopeIn('north')
  await fixture.pools.north.query(
    `UPDATE holdfast.shard_self SET place = 'elsewhere', started = 'epoch'`,
  )
  const gone = new pg.Pool({ connectionString: 'postgres://postgres@127.0.0.1:1/gone' })
  const south = { driver: fromPg(gone), connection: '' }
  const north = { driver: fixture.drivers.north, connection: fixture.urls.north }
  const moves = createMoves({ north, south })
  await expect(moves.repair()).rejects.toMatchObject({
    code: 'SHARD_PRIMARY_NEEDED',
    message: expect.stringContaining('(south: CONNECTION_UNAVAILABLE)') as string,
  })
  await moves.repair({ without: ['south'] })
  const { hf } = northOnly()
  expect(await hf.quota(ten).consume(scope, 1, { operationId: fresh() })).toMatchObject({
    ok: true,
  })
})

test('a move to, or from, a primary that is down names it, and is not begun', async () => {
  const [here, there] = [bucketOf(scopeIn('north')), bucketOf(scopeIn('south'))]
  const gone = new pg.Pool({ connectionString: 'postgres://postgres@127.0.0.1:1/gone' })
  const south = { driver: fromPg(gone), connection: '' }
  const north = { driver: fixture.drivers.north, connection: fixture.urls.north }
  const moves = createMoves({ north, south })
  const needed = {
    code: 'SHARD_PRIMARY_NEEDED',
    message: expect.stringContaining('(south: CONNECTION_UNAVAILABLE)') as string,
    details: { failures: [{ primary: 'south' }] },
  }
  await expect(moves.move({ buckets: [here], to: 'south' })).rejects.toMatchObject(needed)
  await expect(moves.move({ buckets: [there], to: 'north' })).rejects.toMatchObject(needed)
  await expect(moves.planRebalance()).rejects.toMatchObject(needed)
  await expect(moves.resume(randomUUID())).rejects.toMatchObject(needed)
  expect(await leftovers(fixture)).toEqual([])
})

test('what is no id of a move is refused as an option', async () => {
  const invalid = { code: 'OPTION_INVALID', details: { option: 'id' } }
  await expect(fixture.moves().undo('nosuch')).rejects.toMatchObject(invalid)
  await expect(fixture.moves().resume('nosuch')).rejects.toMatchObject(invalid)
})
