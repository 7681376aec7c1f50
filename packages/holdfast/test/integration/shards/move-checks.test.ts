import { expect, onTestFinished, test } from 'vitest'
import pg from 'pg'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { migrate } from '../../../src/schema/index.ts'
import { createMoves, initShards, type Moves } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture(`
  CREATE TABLE country (code text PRIMARY KEY);
  CREATE TABLE orders (bucket smallint, id int, country text REFERENCES country, PRIMARY KEY (bucket, id));
  CREATE TABLE order_items (bucket smallint, id int, order_id int, PRIMARY KEY (bucket, id),
    FOREIGN KEY (bucket, order_id) REFERENCES orders ON DELETE CASCADE);
  CREATE TABLE page (bucket smallint, id int UNIQUE, PRIMARY KEY (bucket, id));
  CREATE TABLE comment (bucket smallint, id int, page int REFERENCES page (id), PRIMARY KEY (bucket, id));
  CREATE TABLE note (bucket smallint, id int, text text, PRIMARY KEY (bucket, id));
`)
const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const

/** A move from the prod's north to a south of another cluster that has the same names. */
async function otherSouth(): Promise<{ readonly pool: pg.Pool; readonly moves: Moves }> {
  const urls = [
    await fixture.server.createDatabase('north'),
    await fixture.server.createDatabase('south'),
  ] as const
  const [north, south] = urls.map((url) => new pg.Pool({ connectionString: url, max: 4 })) as [
    pg.Pool,
    pg.Pool,
  ]
  onTestFinished(async () => {
    await north.end()
    await south.end()
  })
  for (const pool of [north, south]) await migrate(fromPg(pool))
  await initShards({ north: fromPg(north), south: fromPg(south) })
  const moves = createMoves({
    north: { driver: fixture.drivers.north, connection: fixture.urls.north },
    south: { driver: fromPg(south), connection: urls[1] },
  })
  return { pool: south, moves }
}

test('S3: a target of another cluster is refused, and nothing has left', async () => {
  const key = scopeIn('north')
  const bucket = bucketOf(key)
  await fixture.hf.quota(calls).consume(key, 1, { operationId: fresh() })
  const before = await contentsOf(fixture.pools.north, bucket)
  const { pool, moves } = await otherSouth()
  const invalid = { code: 'SHARD_MAP_INVALID' }
  await expect(moves.status()).rejects.toMatchObject(invalid)
  await expect(moves.planRebalance()).rejects.toMatchObject(invalid)
  await expect(moves.move({ buckets: [bucket], to: 'south' })).rejects.toMatchObject(invalid)
  expect(await contentsOf(fixture.pools.north, bucket)).toEqual(before)
  expect(await contentsOf(pool, bucket)).toEqual({})
  expect(await leftovers(fixture)).toEqual([])
})

test('S3: nor can such a target bring a move further, or undo it', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const { moves } = await otherSouth()
  let id = ''
  const stopped = fixture.moves({
    onProgress: (progress) => {
      if (progress.step !== 'marked') return
      ;({ id } = progress)
      throw new Error('the mover dies here')
    },
  })
  await expect(stopped.move({ buckets: [bucket], to: 'south' })).rejects.toThrow('dies here')
  const invalid = { code: 'SHARD_MAP_INVALID' }
  await expect(moves.resume(id)).rejects.toMatchObject(invalid)
  await expect(moves.undo(id)).rejects.toMatchObject(invalid)
  expect(await fixture.moves().resume(id)).toMatchObject({ moved: true })
  // The servers themselves would not have done it either.
  await expect(
    fixture.pools.south.query(
      `SELECT holdfast.refuse_move($1, gen_random_uuid(), '{1}', 'north', 'south')`,
      [id],
    ),
  ).rejects.toMatchObject({ code: 'HF003' })
})

const keys = [
  ['a child is left out', ['public.orders'], /order_items to public.orders,/],
  ['a parent is left out', ['public.order_items'], /order_items to public.orders,/],
  ['a key may lead to another bucket', ['public.page', 'public.comment'], /include the bucket/],
] as const

test.each(keys)(
  'S11: %s, so the move is refused before a row is copied',
  async (_, tables, why) => {
    const bucket = bucketOf(scopeIn('north'))
    const { north } = fixture.pools
    await north.query('INSERT INTO orders VALUES ($1, 1)', [bucket])
    await north.query('INSERT INTO order_items VALUES ($1, 10, 1)', [bucket])
    const moving = fixture.moves().move({ buckets: [bucket], to: 'south', tables })
    await expect(moving).rejects.toMatchObject({
      code: 'SHARD_MOVE_REFUSED',
      message: expect.stringMatching(why) as string,
    })
    expect(await leftovers(fixture)).toEqual([])
    expect(await ownersOf(fixture, bucket)).toEqual(['north'])
  },
)

test('S11: both together go, with what they refer to on every primary', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const { north, south } = fixture.pools
  for (const pool of [north, south]) {
    await pool.query(`INSERT INTO country VALUES ('at') ON CONFLICT DO NOTHING`)
  }
  await north.query(`INSERT INTO orders VALUES ($1, 1, 'at')`, [bucket])
  await north.query('INSERT INTO order_items VALUES ($1, 10, 1)', [bucket])
  const tables = ['public.orders', 'public.order_items']
  const before = await contentsOf(north, bucket, tables)
  await fixture.moves().move({ buckets: [bucket], to: 'south', tables })
  expect(await contentsOf(south, bucket, tables)).toEqual(before)
  expect(await contentsOf(north, bucket, tables)).toEqual({})
})

test('rows that the target has in these buckets are not deleted: the move is refused', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const { south } = fixture.pools
  await south.query(`INSERT INTO note VALUES ($1, 1, 'of somebody')`, [bucket])
  const tables = ['public.note']
  const move = (): Promise<unknown> =>
    fixture.moves().move({ buckets: [bucket], to: 'south', tables })
  await expect(move()).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringContaining('note has rows') as string,
  })
  expect((await south.query('SELECT FROM note WHERE bucket = $1', [bucket])).rowCount).toBe(1)
  expect(await leftovers(fixture)).toEqual([])
  await south.query('DELETE FROM note WHERE bucket = $1', [bucket])
  expect(await move()).toHaveLength(1)
})

test.each([
  ['a column that the target lacks', 'DROP COLUMN text', 'ADD COLUMN text text'],
  ['another type', 'ALTER text TYPE int USING 1', 'ALTER text TYPE text'],
  ['a column that must have a value', 'ADD COLUMN more int NOT NULL', 'DROP COLUMN more'],
])('%s is found before anything is done', async (_, change, back) => {
  const bucket = bucketOf(scopeIn('north'))
  const { south } = fixture.pools
  await south.query(`ALTER TABLE note ${change}`)
  const moving = fixture.moves().move({ buckets: [bucket], to: 'south', tables: ['public.note'] })
  await expect(moving).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringContaining('public.note.') as string,
  })
  await south.query(`ALTER TABLE note ${back}`)
  expect(await leftovers(fixture)).toEqual([])
})
