/** Tables that cannot be moved, or only with a loss, are told before the first row is copied, and nothing is left. */
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const key = 'bucket smallint, id int, PRIMARY KEY (bucket, id)'
const fixture = movesFixture(`
  CREATE TABLE orders (${key});
  CREATE TABLE parent (${key});
  CREATE TABLE child (PRIMARY KEY (bucket, id)) INHERITS (parent);
  CREATE UNLOGGED TABLE unlogged (${key});
  CREATE TABLE fired (what text);
  CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.fired VALUES (TG_OP); RETURN NULL; END';
  CREATE TABLE always (${key});
  CREATE TRIGGER t AFTER INSERT OR DELETE ON always FOR EACH ROW EXECUTE FUNCTION note();
  ALTER TABLE always ENABLE ALWAYS TRIGGER t;
  CREATE TABLE quiet (${key});
  CREATE TRIGGER t AFTER INSERT OR DELETE ON quiet FOR EACH ROW EXECUTE FUNCTION note();
  CREATE TYPE mood AS ENUM ('glad', 'sad');
  CREATE TABLE moods (bucket smallint, id int, m mood[], PRIMARY KEY (bucket, id));
  CREATE TABLE part (${key}) PARTITION BY RANGE (id);
  CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (100);
  CREATE TABLE hidden (${key});
  CREATE TABLE "with.dot" (${key});
`)

function moveOf(tables: readonly string[], bucket = bucketOf(scopeIn('north'))): Promise<unknown> {
  return fixture.moves().move({ buckets: [bucket], to: 'south', tables })
}

async function rowsOf(table: string): Promise<unknown> {
  const { rows } = await fixture.pools.north.query(
    `SELECT tableoid::regclass::text AS at, bucket, id FROM ${table} ORDER BY 1, 2, 3`,
  )
  return rows
}

test('no row of a table that inherits is deleted by the place of one of its parent', async () => {
  const [moved, other] = [bucketOf(scopeIn('north')), bucketOf(scopeIn('north'))]
  const { north } = fixture.pools
  await north.query('INSERT INTO parent SELECT $1, g FROM generate_series(1, 5) g', [other])
  await north.query('INSERT INTO child SELECT $1, g FROM generate_series(1, 3) g', [moved])
  const before = await rowsOf('parent')
  await expect(moveOf(['public.parent'], moved)).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringContaining('inherit') as string,
  })
  expect(await rowsOf('parent')).toEqual(before)
  // Nor where tables began to inherit since.
  await north.query(`SELECT holdfast.delete_buckets('{public.parent}', ARRAY[$1::smallint], 100)`, [
    moved,
  ])
  expect(await rowsOf('parent')).toEqual(before)
  await north.query('INSERT INTO parent VALUES ($1, 9)', [moved])
  const { rows } = await north.query<{ count: number }>(
    `SELECT holdfast.delete_buckets('{public.parent}', ARRAY[$1::smallint], 100) AS count`,
    [moved],
  )
  expect(rows).toEqual([{ count: 1 }])
  expect(await rowsOf('parent')).toEqual(before)
  expect(await leftovers(fixture)).toEqual([])
})

test('a child itself goes over', async () => {
  const bucket = bucketOf(scopeIn('north'))
  await fixture.pools.north.query('INSERT INTO child VALUES ($1, 1)', [bucket])
  await moveOf(['public.child'], bucket)
  const { rowCount } = await fixture.pools.south.query('SELECT FROM ONLY child')
  expect(rowCount).toBe(1)
})

const refused = [
  ['a table that is not logged', 'unlogged', 'not logged'],
  ['a trigger that fires for replicas, too', 'always', 'ENABLE ALWAYS'],
] as const

test.each(refused)('%s is refused, and nothing is left of the move', async (_, table, why) => {
  const bucket = bucketOf(scopeIn('north'))
  await fixture.pools.north.query(`INSERT INTO ${table} VALUES ($1, 1)`, [bucket])
  await fixture.pools.north.query('TRUNCATE fired')
  await expect(moveOf([`public.${table}`], bucket)).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringMatching(new RegExp(`${table} .*${why}`)) as string,
  })
  expect(await leftovers(fixture)).toEqual([])
  for (const pool of [fixture.pools.north, fixture.pools.south]) {
    expect((await pool.query('SELECT FROM fired')).rowCount).toBe(0)
  }
})

test('other triggers do not fire', async () => {
  const bucket = bucketOf(scopeIn('north'))
  await fixture.pools.north.query('INSERT INTO quiet VALUES ($1, 1)', [bucket])
  await fixture.pools.north.query('TRUNCATE fired')
  await moveOf(['public.quiet'], bucket)
  for (const pool of [fixture.pools.north, fixture.pools.south]) {
    expect((await pool.query('SELECT FROM fired')).rowCount).toBe(0)
  }
})

test.each([
  ['a label', `ALTER TYPE mood ADD VALUE 'calm'`, 'moods', /public\.moods\.m.*calm/],
  [
    'a partition',
    'CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (100) TO (200)',
    'part',
    /part.*\(100\)/,
  ],
])('%s that the target lacks is found before anything is done', async (_, change, table, why) => {
  await fixture.pools.north.query(change)
  await expect(moveOf([`public.${table}`])).rejects.toMatchObject({
    code: 'SHARD_MOVE_REFUSED',
    message: expect.stringMatching(why) as string,
  })
  expect(await leftovers(fixture)).toEqual([])
  // What only the target has is in nobody's way.
  await fixture.pools.south.query(change)
  await fixture.pools.south.query(
    'CREATE TABLE IF NOT EXISTS more PARTITION OF part FOR VALUES FROM (200) TO (300)',
  )
  await fixture.pools.south.query(`ALTER TYPE mood ADD VALUE IF NOT EXISTS 'odd'`)
  expect(await moveOf([`public.${table}`])).toHaveLength(1)
})

test('a target with a default partition takes what it has no other for', async () => {
  await fixture.pools.south.query('CREATE TABLE rest PARTITION OF part DEFAULT')
  await fixture.pools.north.query(
    'CREATE TABLE part9 PARTITION OF part FOR VALUES FROM (900) TO (999)',
  )
  const bucket = bucketOf(scopeIn('north'))
  await fixture.pools.north.query('INSERT INTO part VALUES ($1, 901)', [bucket])
  await moveOf(['public.part'], bucket)
  expect(Object.keys(await contentsOf(fixture.pools.south, bucket, ['public.part']))).toEqual([
    'public.part',
  ])
})

test.each([
  ['nothing', ['']],
  ['half a quotation', ['"']],
  ['too many dots', ['a.b.c.d']],
  ['NUL', ['public.orders\0']],
  ['a number', [7]],
  ['null', [null]],
  ['a text and no list', 'public.orders'],
])('names of tables that are none: %s', async (_, tables) => {
  const invalid = { code: 'OPTION_INVALID', details: { option: 'tables' } }
  await expect(moveOf(tables as string[])).rejects.toMatchObject(invalid)
  const repairing = fixture.moves().repair({ tables: tables as string[] })
  await expect(repairing).rejects.toMatchObject(invalid)
  expect(await leftovers(fixture)).toEqual([])
})

test('a table that is named twice, or goes along anyhow, goes once', async () => {
  const bucket = bucketOf(scopeIn('north'))
  await fixture.pools.north.query('INSERT INTO orders VALUES ($1, 1)', [bucket])
  const tables = ['public.orders', 'public."orders"', 'holdfast.work', '"public"."with.dot"']
  expect(await moveOf(tables, bucket)).toHaveLength(1)
  expect(await contentsOf(fixture.pools.south, bucket, ['public.orders'])).toEqual({
    'public.orders': [`(${bucket},1)`],
  })
})

test.each(['holdfast.shard_map', 'holdfast.lock_name', 'pg_catalog.pg_class', 'public.nosuch'])(
  '%s stays where it is',
  async (table) => {
    await expect(moveOf([table])).rejects.toMatchObject({ code: 'SHARD_MOVE_REFUSED' })
    expect(await leftovers(fixture)).toEqual([])
  },
)

test('what the database says before the first row undoes the move, and is its cause', async () => {
  const { north } = fixture.pools
  const bucket = bucketOf(scopeIn('north'))
  // Something that nobody has thought of.
  await north.query(`CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION ''not on a Tuesday'' USING ERRCODE = ''P0001''; END'`)
  await north.query(`CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE PUBLICATION')
    EXECUTE FUNCTION refuse()`)
  try {
    await expect(moveOf(['public.orders'], bucket)).rejects.toMatchObject({
      code: 'SHARD_MOVE_REFUSED',
      cause: { code: 'P0001', message: 'not on a Tuesday' },
    })
  } finally {
    await north.query('DROP EVENT TRIGGER refuse')
  }
  expect(await leftovers(fixture)).toEqual([])
  expect(await ownersOf(fixture, bucket)).toEqual(['north'])
})

test.each([
  ['x', 'OPTION_INVALID'],
  ['', 'OPTION_INVALID'],
  [fresh(), 'SHARD_MOVE_UNKNOWN'],
])('the id "%s" is told by a code: %s', async (id, code) => {
  await expect(fixture.moves().undo(id)).rejects.toMatchObject({ code })
  await expect(fixture.moves().resume(id)).rejects.toMatchObject({ code })
})
