import { withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Step } from '../../../src/core/model.ts'
import { createRunner, type LiveRunner } from '../../../src/run/create-runner.ts'
import { script } from '../../support/script.ts'

let url: string
let runner: LiveRunner
let texts: readonly string[] = []

beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE parent (id int PRIMARY KEY, name text UNIQUE);
      CREATE TABLE child (id serial PRIMARY KEY, parent_id int REFERENCES parent);
      CREATE TABLE plain (a int, b int);
      CREATE TABLE tokens (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v int);
      CREATE TABLE log (id serial PRIMARY KEY, what text);
      CREATE TABLE watched (id int PRIMARY KEY);
      CREATE VIEW both_of AS SELECT parent.name, child.id FROM parent JOIN child ON parent_id = parent.id;
      CREATE FUNCTION lock_parent(int) RETURNS void LANGUAGE sql AS
        'SELECT id FROM parent WHERE id = $1 FOR UPDATE';
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO log (what) VALUES ('x'); RETURN NEW; END $$;
      CREATE TRIGGER noted AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION note();
      CREATE TABLE parts (k int, v int) PARTITION BY RANGE (k);
      CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
      CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
      CREATE TABLE keyed (shop text, day int, code text UNIQUE, v int, PRIMARY KEY (shop, day));
      CREATE TABLE lone (id uuid PRIMARY KEY, v int);
      CREATE TABLE loose (id numeric PRIMARY KEY, v int);
      CREATE TABLE owner (id int PRIMARY KEY);
      CREATE TABLE pet (id int PRIMARY KEY, owner int REFERENCES owner ON DELETE CASCADE);
      CREATE SCHEMA one;
      CREATE SCHEMA two;
      CREATE TABLE one.twin (id int PRIMARY KEY);
      CREATE TABLE two.twin (id int);
      CREATE TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    `),
  )
  runner = await createRunner({
    url,
    flows: {
      one: async ({ pool }) => {
        const client = await pool.connect()
        try {
          for (const text of texts) await client.query(text).catch(() => {})
          await client.query('ROLLBACK').catch(() => {})
        } finally {
          client.release()
        }
      },
    },
    seed: async ({ query }) => {
      await query('TRUNCATE parent, child, plain, tokens, log, watched, parts, late')
      await query(`INSERT INTO parent VALUES (1, 'a'), (2, 'b')`)
      await query('INSERT INTO plain VALUES (1, 1)')
      await query('TRUNCATE owner, pet')
      await query('INSERT INTO owner VALUES (1)')
    },
  })
})
afterAll(() => runner.close())

/** Plays the statements often enough to see them told from memory too; each time the same. */
async function play(...statements: readonly string[]): Promise<readonly Step[]> {
  texts = statements
  let first: readonly Step[] | undefined
  for (let time = 0; time < 4; time += 1) {
    const run = await runner.run(script(['one'], ''))
    expect(run.trouble).toBeUndefined()
    const steps = run.steps.map((step) => ({ ...step, pid: 0 }))
    first ??= steps
    expect(steps.map(({ footprint }) => footprint)).toEqual(first.map(({ footprint }) => footprint))
  }
  return first ?? []
}

/** `read public.t` for each touch of a step. */
function touches(step: Step | undefined): string[] {
  return (step?.footprint.touches ?? []).map(({ object, mode }) => `${mode} ${object}`).toSorted()
}

describe('what a statement touches', () => {
  test.each([
    ['SELECT * FROM parent', ['read public.parent']],
    ['SELECT * FROM parent WHERE id = 1 FOR UPDATE', ['lock public.parent#id=1']],
    [
      'SELECT * FROM parent FOR UPDATE SKIP LOCKED',
      ['attempt public.parent', 'lock public.parent'],
    ],
    [`UPDATE parent SET name = 'c' WHERE id = 1`, ['lock public.parent']],
    ['DELETE FROM plain', ['lock public.plain']],
    [`INSERT INTO parent VALUES (3, 'c')`, ['insert public.parent']],
    ['INSERT INTO plain VALUES (1, 2)', ['append public.plain']],
    ['INSERT INTO tokens (v) VALUES (1)', ['append public.tokens']],
    [
      'INSERT INTO tokens VALUES (gen_random_uuid(), 1)',
      // The key is given, so that nobody knows where it comes from.
      ['insert public.tokens'],
    ],
    [
      'INSERT INTO child (parent_id) VALUES (1)',
      ['append public.child', 'key-share public.parent'],
    ],
    ['INSERT INTO child VALUES (DEFAULT, 1)', ['append public.child', 'key-share public.parent']],
    ['INSERT INTO child VALUES (77, 1)', ['insert public.child', 'key-share public.parent']],
    [
      'INSERT INTO plain SELECT 1, 1 WHERE NOT EXISTS (SELECT FROM plain)',
      ['append public.plain', 'read public.plain'],
    ],
    [
      `INSERT INTO parent VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'x'`,
      ['lock public.parent'],
    ],
    [
      'WITH gone AS (DELETE FROM plain RETURNING a) INSERT INTO log (what) SELECT a::text FROM gone',
      ['lock public.log', 'lock public.plain'],
    ],
    ['SELECT * FROM both_of', ['read public.child', 'read public.parent']],
    // A lock inside a function is a lock, and not a foreign key's.
    ['SELECT lock_parent(1)', ['lock public.parent']],
    ['INSERT INTO watched VALUES (1)', ['lock public.log', 'lock public.watched']],
    ['SELECT * FROM parts WHERE k = 3', ['read public.parts']],
    ['INSERT INTO parts VALUES (3, 1)', ['append public.parts']],
    ['LOCK TABLE plain', ['exclusive public.plain']],
    ['SELECT pg_advisory_xact_lock(7)', ['exclusive advisory #0:7']],
    ['SELECT pg_advisory_xact_lock_shared(7)', ['key-share advisory #0:7']],
    ['SELECT pg_advisory_xact_lock(7, 8)', ['exclusive advisory #7:8:2']],
    ['SELECT pg_try_advisory_xact_lock(7)', ['attempt advisory #0:7', 'exclusive advisory #0:7']],
    ['SAVEPOINT s', []],
    ['SET LOCAL lock_timeout = 0', []],
  ])('%s', async (text, expected) => {
    const [, step] = await play('BEGIN', text)
    expect(step?.footprint.opaque).toBe(false)
    expect(touches(step)).toEqual(expected)
  })

  const uuid = '00000000-0000-0000-0000-00000000000A'
  test.each([
    ['SELECT name FROM parent p WHERE p.id = 1 AND name IS NOT NULL', ['read public.parent#id=1']],
    ['SELECT * FROM parent WHERE 1 = id FOR SHARE', ['lock public.parent#id=1']],
    ['SELECT * FROM parent WHERE id = 1 OR id = 2', ['read public.parent']],
    ['SELECT * FROM parent WHERE id = 1 AND EXISTS (SELECT FROM parent)', ['read public.parent']],
    ["SELECT * FROM parent WHERE id = '01'", ['read public.parent']],
    ['SELECT * FROM parent WHERE id = 1.0', ['read public.parent']],
    ['SELECT * FROM parent WHERE id = NULL', ['read public.parent']],
    // `name` may be NULL, so that it is no key.
    [`SELECT * FROM parent WHERE name = 'a'`, ['read public.parent']],
    [`UPDATE keyed SET v = 1 WHERE day = 2 AND shop = 'x'`, ['lock public.keyed#day,shop=2,x']],
    [`UPDATE keyed SET v = 1 WHERE shop = 'x'`, ['lock public.keyed']],
    [`UPDATE keyed SET code = 'c' WHERE day = 2 AND shop = 'x'`, ['lock public.keyed']],
    [`UPDATE keyed SET day = 3 WHERE day = 2 AND shop = 'x'`, ['lock public.keyed']],
    [`DELETE FROM keyed WHERE day = 2 AND shop = 'x '`, ['lock public.keyed']],
    [`INSERT INTO keyed VALUES ('x', 1)`, ['insert public.keyed']],
    [`INSERT INTO lone VALUES ('${uuid}')`, [`insert public.lone#id=${uuid.toLowerCase()}`]],
    [`INSERT INTO lone VALUES ('${uuid}') ON CONFLICT DO NOTHING`, ['lock public.lone']],
    [
      `UPDATE lone SET v = 1 WHERE id = '${uuid}'::uuid`,
      [`lock public.lone#id=${uuid.toLowerCase()}`],
    ],
    ['UPDATE loose SET v = 1 WHERE id = 1', ['lock public.loose']],
    ['DELETE FROM owner WHERE id = 1', ['lock public.owner#id=1', 'lock public.pet']],
    ['SELECT * FROM one.twin WHERE id = 1', ['read one.twin#id=1']],
    ['SELECT * FROM two.twin WHERE id = 1', ['read two.twin']],
  ])('by rows if the key is given: %s', async (text, expected) => {
    const [, step] = await play('BEGIN', text)
    expect(touches(step)).toEqual(expected)
  })

  test('a name without a schema is the table that the session locked', async () => {
    const [, , first, second] = await play(
      'BEGIN',
      'SET LOCAL search_path = two, one',
      'DELETE FROM twin WHERE id = 1',
      'DELETE FROM one.twin WHERE id = 1',
    )
    expect([touches(first), touches(second)]).toEqual([['lock two.twin'], ['lock one.twin#id=1']])
  })

  test('of tables of one name that are both locked, both', async () => {
    const steps = await play(
      'BEGIN',
      'DELETE FROM one.twin',
      'DELETE FROM two.twin',
      'SET LOCAL search_path = one',
      'DELETE FROM twin',
    )
    expect(touches(steps[4])).toEqual(['lock one.twin', 'lock two.twin'])
  })

  test('under SERIALIZABLE always by tables', async () => {
    const [, step] = await play(
      'BEGIN ISOLATION LEVEL SERIALIZABLE',
      'SELECT * FROM parent WHERE id = 1',
    )
    expect(touches(step)).toEqual(['read *', 'read public.parent'])
  })

  test('the end of a transaction names the rows', async () => {
    const [, , , end] = await play(
      'BEGIN',
      `DELETE FROM owner WHERE id = 1`,
      'SELECT * FROM parent WHERE id = 2 FOR UPDATE',
      'COMMIT',
    )
    expect(end?.footprint.ends).toEqual({
      how: 'commit',
      writes: ['public.owner#id=1', 'public.pet'],
      locks: ['public.owner#id=1', 'public.pet', 'public.parent#id=2'],
    })
  })

  test.each([
    ['CREATE TABLE fresh (a int)'],
    ['ALTER TABLE plain ADD c int'],
    [`DO $$ BEGIN PERFORM 1; END $$; SELECT 1`],
  ])('is not known of %s', async (text) => {
    const [, step, end] = await play('BEGIN', text)
    expect([step?.footprint.opaque, end?.footprint.opaque]).toEqual([true, true])
  })

  test('is told again when the lock was there before', async () => {
    const steps = await play(
      'BEGIN',
      'SELECT * FROM parent',
      'INSERT INTO child (parent_id) VALUES (1)',
      'SELECT name FROM parent',
      'SELECT count(*) FROM child',
      'INSERT INTO child (parent_id) VALUES (1)',
      'SELECT * FROM both_of',
      'SELECT * FROM plain',
      'SELECT lock_parent(2)',
      'SELECT max(b) FROM plain',
    )
    expect(steps.map(touches).slice(3, 10)).toEqual([
      ['read public.parent'],
      ['read public.child'],
      // The sequence was drawn from before, so that only the text tells; it lists the columns.
      ['append public.child', 'key-share public.parent'],
      // A view does not name its tables: everything that is held counts.
      ['lock public.child', 'lock public.parent', 'read public.child', 'read public.parent'],
      ['read public.plain'],
      [
        'lock public.child',
        'lock public.parent',
        'read public.child',
        'read public.parent',
        'read public.plain',
      ],
      ['read public.plain'],
    ])
  })

  test('of a statement that failed', async () => {
    const [, , failed, after] = await play(
      'BEGIN',
      `UPDATE plain SET a = 2`,
      `INSERT INTO parent VALUES (1, 'again')`,
      'SELECT 1',
    )
    expect(touches(failed)).toEqual(['insert public.parent'])
    // The server lets go of everything at once, and not when ROLLBACK comes.
    expect(failed?.footprint.ends).toEqual({
      how: 'rollback',
      writes: [],
      locks: ['public.plain', 'public.parent'],
    })
    expect(after?.footprint).toMatchObject({ opaque: false, touches: [] })
  })
})

describe('what the end of a transaction means', () => {
  test('commit: what was written becomes visible, what was locked is free', async () => {
    const [, , , , end] = await play(
      'BEGIN',
      'SELECT * FROM parent FOR UPDATE',
      'INSERT INTO plain VALUES (5, 5)',
      'SELECT * FROM child',
      'COMMIT',
    )
    expect(end?.footprint.ends).toEqual({
      how: 'commit',
      writes: ['public.plain'],
      locks: ['public.parent', 'public.plain'],
    })
  })

  test('a write of no row writes nothing', async () => {
    const [, , end] = await play('BEGIN', 'UPDATE plain SET a = 1 WHERE a = 99', 'COMMIT')
    expect(end?.footprint.ends).toEqual({ how: 'commit', writes: [], locks: ['public.plain'] })
  })

  test('a lock that excludes readers is named again at its end', async () => {
    const [, , end] = await play('BEGIN', 'LOCK TABLE plain', 'COMMIT')
    expect(touches(end)).toEqual(['exclusive public.plain'])
  })

  test('checks that were put off are done by the commit', async () => {
    const [, , end] = await play('BEGIN', 'INSERT INTO late VALUES (1)', 'COMMIT')
    expect(touches(end)).toEqual(['lock public.late'])
  })

  test('ROLLBACK TO lets go', async () => {
    const steps = await play('BEGIN', 'SAVEPOINT s', 'UPDATE plain SET a = 1', 'ROLLBACK TO s')
    expect(steps[3]?.footprint.ends).toMatchObject({ how: 'rollback', locks: ['public.plain'] })
  })

  test('an advisory lock of the session is released by hand', async () => {
    const steps = await play(
      'SELECT pg_advisory_lock(9)',
      'BEGIN',
      'SELECT pg_advisory_unlock(9)',
      'COMMIT',
    )
    const unlock = steps.find(({ statements }) => statements[0]?.includes('unlock'))
    expect(unlock?.footprint.ends).toEqual({
      how: 'rollback',
      writes: [],
      locks: ['advisory #0:9'],
    })
  })
})

describe('one snapshot for the whole transaction', () => {
  test.each(['REPEATABLE READ', 'SERIALIZABLE'])('%s: the first query takes it', async (level) => {
    const steps = await play(
      `BEGIN ISOLATION LEVEL ${level}`,
      'LOCK TABLE plain IN ROW SHARE MODE',
      'SELECT * FROM parent',
      'SELECT * FROM plain',
    )
    expect(steps.map(({ footprint }) => footprint.isolation)).toEqual(
      Array.from(steps, () => level.toLowerCase()).fill('read committed', 0, 0),
    )
    expect(steps.map((step) => touches(step).includes('read *'))).toEqual([
      false,
      false,
      true,
      false,
      false,
    ])
  })
})
