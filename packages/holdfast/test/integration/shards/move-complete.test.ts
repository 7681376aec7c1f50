/**
 * Nothing is deleted at the source unless the target has as many rows, table by table and bucket by bucket, whatever
 * the reason that some did not come.
 */
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { migrate } from '../../../src/schema/index.ts'
import { createMoves, type Moves, type MovesOptions } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { type Name, names, scopeIn } from '../../support/shards-fixture.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = movesFixture(`
  CREATE TABLE orders (bucket smallint, id int, tenant text, PRIMARY KEY (bucket, id));
  ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
  CREATE POLICY own ON orders USING (tenant = current_setting('app.tenant', true));
  CREATE TABLE note (bucket smallint, id int, PRIMARY KEY (bucket, id));
`)
const tables = ['public.orders', 'public.note']

/** What a role that replicates is told to have, which is not to see all rows. */
async function peerUrl(attributes = ''): Promise<string> {
  const role = `peer_${fresh().replaceAll('-', '')}`
  const { north } = fixture.pools
  await north.query(`CREATE ROLE ${role} LOGIN REPLICATION ${attributes} PASSWORD 'peer'`)
  await north.query(`GRANT USAGE ON SCHEMA holdfast TO ${role}`)
  await north.query(`GRANT SELECT ON ALL TABLES IN SCHEMA holdfast, public TO ${role}`)
  const url = new URL(fixture.urls.north)
  return Object.assign(url, { username: role, password: 'peer' }).href
}

function movesBy(connection: string, options?: MovesOptions): Moves {
  const { drivers, urls } = fixture
  return createMoves(
    {
      north: { driver: drivers.north, connection },
      south: { driver: drivers.south, connection: urls.south },
    },
    options,
  )
}

/** A bucket of the north with five orders and a note. */
async function filled(): Promise<number> {
  const bucket = bucketOf(scopeIn('north'))
  const { north } = fixture.pools
  await north.query(`INSERT INTO orders SELECT $1, g, 'ann' FROM generate_series(1, 5) g`, [bucket])
  await north.query('INSERT INTO note VALUES ($1, 1)', [bucket])
  return bucket
}

async function orders(bucket: number): Promise<Record<Name, number>> {
  const count = async (name: Name): Promise<number> =>
    (await fixture.pools[name].query('SELECT FROM orders WHERE bucket = $1', [bucket]))
      .rowCount as number
  return { north: await count('north'), south: await count('south') }
}

/** For controls: both servers without a protection, until the test has ended. */
async function without(file: string, protection: RegExp, instead = ''): Promise<void> {
  onTestFinished(async () => {
    for (const name of names) await migrate(fixture.drivers[name])
  })
  for (const name of names) {
    await migrateFiles(fixture.drivers[name], weakened(file, protection, instead))
  }
}

/** A move by a role that does not see the orders, on servers that neither ask nor tell it so. */
async function moveUnseen(bucket: number): Promise<unknown> {
  const connection = await peerUrl()
  const moves = movesBy(connection, {
    async onProgress({ id, step }) {
      // As where PostgreSQL passes over the options of the connection, which are to make COPY fail.
      if (step !== 'subscribed') return
      const name = `holdfast_move_${id.replaceAll('-', '')}`
      await fixture.pools.south.query(`ALTER SUBSCRIPTION ${name} CONNECTION '${connection}'`)
    },
  })
  return await moves.move({ buckets: [bucket], to: 'south', tables }).catch((each: unknown) => each)
}
const noQuestion = ['operator/refuse_hidden_rows', /RAISE EXCEPTION/, 'RAISE NOTICE'] as const

test('rows that the role of the connection does not see: refused before the first one is copied', async () => {
  const bucket = await filled()
  const moving = movesBy(await peerUrl()).move({ buckets: [bucket], to: 'south', tables })
  await expect(moving).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringContaining('row-level security') as string,
  })
  expect(await orders(bucket)).toEqual({ north: 5, south: 0 })
  expect(await leftovers(fixture)).toEqual([])
})

test.each(['BYPASSRLS', 'SUPERUSER'])(
  'a role with %s sees all rows, and they go over',
  async (role) => {
    const bucket = await filled()
    const moves = movesBy(await peerUrl(role))
    expect(await moves.move({ buckets: [bucket], to: 'south', tables })).toMatchObject([
      { moved: true },
    ])
    expect(await orders(bucket)).toEqual({ north: 0, south: 5 })
  },
)

test('without that question the copy fails, and filters nothing', async () => {
  await without(...noQuestion)
  const bucket = await filled()
  const moves = movesBy(await peerUrl())
  await expect(moves.move({ buckets: [bucket], to: 'south', tables })).rejects.toMatchObject({
    code: 'SHARD_MOVE_STALLED',
  })
  const open = (await moves.status()).primaries.flatMap((each) => each.moves)
  await moves.undo(open.find(({ ended }) => !ended)?.id ?? '')
  expect(await orders(bucket)).toEqual({ north: 5, south: 0 })
  expect(await leftovers(fixture)).toEqual([])
})

test('where nobody noticed, the rows are counted: the move is undone, and none is lost', async () => {
  await without(...noQuestion)
  const bucket = await filled()
  const before = await contentsOf(fixture.pools.north, bucket, tables)
  expect(await moveUnseen(bucket)).toMatchObject({
    code: 'SHARD_MOVE_INCOMPLETE',
    message: expect.stringContaining(`public.orders has 0 of 5 rows in bucket ${bucket}`) as string,
  })
  expect(await contentsOf(fixture.pools.north, bucket, tables)).toEqual(before)
  expect(await contentsOf(fixture.pools.south, bucket, tables)).toEqual({})
  expect(await ownersOf(fixture, bucket)).toEqual(['north'])
  expect(await leftovers(fixture)).toEqual([])
})

test('control: without counting, they are lost', async () => {
  await without('operator/take_move', /found IS DISTINCT FROM expected/, 'false')
  await fixture.pools.north.query(
    `CREATE OR REPLACE FUNCTION holdfast.refuse_hidden_rows(names text[], peer text) RETURNS void LANGUAGE sql AS ''`,
  )
  const bucket = await filled()
  expect(await moveUnseen(bucket)).toMatchObject([{ moved: true }])
  expect(await orders(bucket)).toEqual({ north: 0, south: 0 })
})

test.each([
  ['fewer', 'DELETE FROM note WHERE bucket = $1', 'note has 0 of 1 rows'],
  ['more', 'INSERT INTO note VALUES ($1, 2)', 'note has 2 of 1 rows'],
  [
    'of a table of ours fewer',
    'DELETE FROM holdfast.operation WHERE bucket = $1',
    'operation has 0',
  ],
])('%s rows at the target than at the source stop the move', async (_, change, why) => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  const quota = fixture.hf.quota({ name: 'calls', limit: 1_000, per: 'lifetime' })
  await quota.consume(key, 1, { operationId: fresh() })
  await fixture.pools.north.query('INSERT INTO note VALUES ($1, 1)', [bucket])
  const moves = fixture.moves({
    async onProgress({ step }) {
      if (step === 'copied') await fixture.pools.south.query(change, [bucket])
    },
  })
  await expect(moves.move({ buckets: [bucket], to: 'south', tables })).rejects.toMatchObject({
    code: 'SHARD_MOVE_INCOMPLETE',
    message: expect.stringContaining(why) as string,
  })
  expect(await leftovers(fixture)).toEqual([])
  await quota.consume(key, 1, { operationId: fresh() })
  expect(await fixture.moves().move({ buckets: [bucket], to: 'south', tables })).toHaveLength(1)
  expect(await quota.peek(key)).toMatchObject({ used: 2 })
})

test('who would count for longer than half of the pause is refused before anybody waits', async () => {
  const bucket = await filled()
  const steps: string[] = []
  const moves = fixture.moves({ pause: '1 ms', onProgress: ({ step }) => void steps.push(step) })
  await expect(moves.move({ buckets: [bucket], to: 'south', tables })).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringContaining('pause') as string,
  })
  expect(steps).not.toContain('marked')
  expect(await leftovers(fixture)).toEqual([])
})
