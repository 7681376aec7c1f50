import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { shardedDriver } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { type Name, scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture()
const ten = { name: 'ten', limit: 10, per: 'lifetime' } as const

/** An application with connections, and a map, of its own. */
function application(wait: `${number} ms` = '2000 ms'): Holdfast<pg.PoolClient> {
  const pools = Object.values(fixture.urls).map((url) => {
    const pool = new pg.Pool({ connectionString: url, max: 4 })
    pool.on('error', () => undefined)
    onTestFinished(() => pool.end())
    return fromPg(pool)
  })
  const [north, south] = pools as [(typeof pools)[0], (typeof pools)[0]]
  return createHoldfast(shardedDriver({ north, south }, { wait }))
}

const admin = async (sql: string): Promise<void> => {
  const client = new pg.Client({ connectionString: fixture.server.url() })
  await client.connect()
  await client.query(sql)
  await client.end()
}

function databaseOf(name: Name): string {
  return new URL(fixture.urls[name]).pathname.slice(1)
}

/** A copy of a database, which nobody may use meanwhile. */
async function copy(from: string, to: string): Promise<void> {
  await admin(`DROP DATABASE IF EXISTS ${to} WITH (FORCE)`)
  await admin(`ALTER DATABASE ${from} ALLOW_CONNECTIONS false`)
  await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${from}'`)
  await admin(`CREATE DATABASE ${to} TEMPLATE ${from}`)
  await admin(`ALTER DATABASE ${from} ALLOW_CONNECTIONS true`)
}

/** Moves a bucket after a backup of a primary was taken, and brings that back. */
async function restored(name: Name, during: () => Promise<unknown>): Promise<void> {
  await copy(databaseOf(name), 'backup')
  await during()
  await copy('backup', databaseOf(name))
  await admin('DROP DATABASE backup')
}

const move = (bucket: number, to: Name): Promise<unknown> =>
  fixture.moves().move({ buckets: [bucket], to })

test('S10: a primary that was restored to before a move does not serve what it no longer has', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const old = application()
  const [quota, queue] = [old.quota(ten), fresh()]
  await quota.consume(key, 1, { operationId: fresh() })
  await old.work({ queue }).enqueue({ payload: 1, scope: key })
  await restored('north', async () => {
    await move(bucket, 'south')
    const later = application()
    const used = await later.quota(ten).consume(key, 8, { operationId: fresh() })
    expect(used).toMatchObject({ ok: true, available: 1 })
    const [claim] = await later.work({ queue }).claim()
    await later.work({ queue }).complete(claim as NonNullable<typeof claim>)
  })
  expect(await fixture.moves().status()).toMatchObject({
    stale: [{ primary: 'north', buckets: [bucket] }],
    nobody: [],
  })
  // Its map is from before the move, and so is the server's.
  expect(await old.work({ queue }).claim()).toEqual([])
  expect(await quota.consume(key, 9, { operationId: fresh() })).toMatchObject({ ok: false })
  expect(await application().quota(ten).consume(key, 1, { operationId: fresh() })).toMatchObject({
    ok: true,
    available: 0,
  })
  expect(await ownersOf(fixture, bucket)).toEqual(['south'])
  // Rows of before are still there, until they are cleared away.
  const { stale, strays } = await fixture.moves().status()
  expect([stale, strays]).toEqual([[], [{ primary: 'north', buckets: [bucket] }]])
  await expect(move(bucket, 'north')).rejects.toMatchObject({ code: 'SHARD_MOVE_REFUSED' })
  expect(await leftovers(fixture)).toEqual([])
  expect((await fixture.moves().repair()).rows).toBeGreaterThan(0)
  expect(await contentsOf(fixture.pools.north, bucket)).toEqual({})
  expect(await fixture.moves().status()).toMatchObject({ stale: [], strays: [] })
  await move(bucket, 'north')
  expect(await quota.peek(key)).toMatchObject({ used: 10 })
})

test('S10: in transactions, and in those of the caller, it is the same', async () => {
  const key = scopeIn('north')
  const old = application()
  await old.transaction((tx) => tx.query('SELECT'), { scopes: [key] })
  await restored('north', () => move(bucketOf(key), 'south'))
  const at = async (): Promise<string> =>
    await old.transaction(
      async (tx) => {
        const { rows } = await tx.query<{ name: string }>('SELECT current_database() AS name')
        return rows[0]?.name as string
      },
      { scopes: [key] },
    )
  const client = await fixture.pools.north.connect()
  await client.query('BEGIN')
  const quota = old.quota(ten)
  await expect(quota.consume(client, key, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_UNCONFIRMED',
    retryable: true,
  })
  await client.query('ROLLBACK; BEGIN')
  await expect(quota.consume(client, key, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_ELSEWHERE',
  })
  await client.query('ROLLBACK')
  client.release()
  expect(await at()).toBe(databaseOf('south'))
  await fixture.moves().repair()
})

test('S10: control: without the comparison the bucket is used up twice', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const old = application()
  await old.quota(ten).consume(key, 1, { operationId: fresh() })
  await restored('north', async () => {
    await move(bucket, 'south')
    await application().quota(ten).consume(key, 9, { operationId: fresh() })
  })
  await fixture.pools.north.query(`CREATE OR REPLACE VIEW holdfast.shard_here AS
    SELECT served FROM holdfast.shard_self`)
  expect(await old.quota(ten).consume(key, 9, { operationId: fresh() })).toMatchObject({ ok: true })
  await fixture.pools.north.query(`CREATE OR REPLACE VIEW holdfast.shard_here AS
    SELECT served FROM holdfast.shard_self WHERE started = pg_postmaster_start_time()
      AND place = pg_relation_filepath(shard_self.tableoid)`)
  await fixture.moves().repair()
})

test('S10: restored while another primary cannot be asked, it waits for that one', async () => {
  const [moved, stays] = [scopeIn('north'), scopeIn('north')]
  const old = application('200 ms')
  await old.quota(ten).consume(stays, 1, { operationId: fresh() })
  await restored('north', () => move(bucketOf(moved), 'south'))
  await admin(`ALTER DATABASE ${databaseOf('south')} ALLOW_CONNECTIONS false`)
  await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = '${databaseOf('south')}'`)
  const use = (): Promise<unknown> => old.quota(ten).consume(stays, 1, { operationId: fresh() })
  await expect(use()).rejects.toMatchObject({ code: 'SHARD_UNCONFIRMED' })
  const { failures } = await fixture.moves().status()
  expect(failures.map(({ primary }) => primary)).toEqual(['south'])
  await expect(fixture.moves().repair()).rejects.toMatchObject({ code: 'SHARD_PRIMARY_NEEDED' })
  await admin(`ALTER DATABASE ${databaseOf('south')} ALLOW_CONNECTIONS true`)
  expect(await use()).toMatchObject({ ok: true })
  await fixture.moves().repair()
})

test('S10: a target that was restored to before a move: nobody has the bucket, until it is adopted', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = application('200 ms').quota(ten)
  await quota.consume(key, 1, { operationId: fresh() })
  await restored('south', () => move(bucket, 'south'))
  expect(await fixture.moves().status()).toMatchObject({ nobody: [bucket], stale: [] })
  await expect(quota.consume(key, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_BUCKET_LOST',
    retryable: false,
  })
  expect(await fixture.moves().repair()).toMatchObject({ adopted: [] })
  expect(await fixture.moves().repair({ adopt: true })).toMatchObject({
    adopted: [{ primary: 'south', buckets: [bucket] }],
  })
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ available: 9 })
})

test('S10: a backup of the middle of a move is brought to the end that the move had', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = application().quota(ten)
  await quota.consume(key, 1, { operationId: fresh() })
  let id = ''
  const halfway = fixture.moves({
    onProgress: (progress) => {
      if (progress.step !== 'expected') return
      ;({ id } = progress)
      throw new Error('the mover dies here')
    },
  })
  await expect(halfway.move({ buckets: [bucket], to: 'south' })).rejects.toThrow('dies here')
  await restored('north', () => fixture.moves().resume(id))
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ available: 8 })
  expect(await fixture.moves().repair()).toMatchObject({ resumed: [id] })
  expect(await leftovers(fixture)).toEqual([])
  expect(await contentsOf(fixture.pools.north, bucket)).toEqual({})
  expect(await fixture.moves().status()).toMatchObject({ nobody: [], stale: [], strays: [] })
})

test('a server that was merely started again serves, whether or not the others can be asked', async () => {
  const key = scopeIn('north')
  const hf = application()
  await hf.quota(ten).consume(key, 1, { operationId: fresh() })
  await fixture.server.shutDown('fast')
  await fixture.server.startAgain()
  await admin(`ALTER DATABASE ${databaseOf('south')} ALLOW_CONNECTIONS false`)
  expect(await hf.quota(ten).consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  await admin(`ALTER DATABASE ${databaseOf('south')} ALLOW_CONNECTIONS true`)
})

test('who was not told of all primaries does not speak for them: a restored one waits', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  await application().quota(ten).consume(key, 1, { operationId: fresh() })
  await restored('north', async () => {
    await move(bucket, 'south')
    await application().quota(ten).consume(key, 9, { operationId: fresh() })
  })
  const pool = new pg.Pool({ connectionString: fixture.urls.north, max: 2 })
  onTestFinished(() => pool.end())
  const narrow = createHoldfast(shardedDriver({ north: fromPg(pool) }, { wait: '500 ms' }))
  await expect(narrow.quota(ten).consume(key, 9, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_UNCONFIRMED',
  })
  // Whoever knows both brings it back, and it has given the bucket up.
  expect(await application().quota(ten).consume(key, 1, { operationId: fresh() })).toMatchObject({
    ok: false,
  })
  expect(await ownersOf(fixture, bucket)).toEqual(['south'])
})
