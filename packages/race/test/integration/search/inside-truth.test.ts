/**
 * Steps that run several statements inside, compared with the truth: the same statements, sent one by one, so that every
 * order of them is really run. Where those race, the step must not be called race-free.
 */
import { sample, withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'
import { Random } from '../../../src/search/random.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE a (id int PRIMARY KEY, n int);
      CREATE TABLE b (id int PRIMARY KEY, n int);
      CREATE TABLE c (id int PRIMARY KEY, n int);
      CREATE TABLE fired (id int PRIMARY KEY);
      CREATE TABLE twice (x int, y int); CREATE TABLE drawn (x int, y int); CREATE TABLE checked (id int, x int);
      CREATE TABLE summed (x int); CREATE TABLE guarded (x int); CREATE TABLE skipped (x int, y int);
      CREATE FUNCTION read_a() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM a); END $$;
      CREATE FUNCTION read_b() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM b); END $$;
      CREATE FUNCTION inside() RETURNS int[] LANGUAGE plpgsql AS $$ BEGIN RETURN '{}'; END $$;
      CREATE MATERIALIZED VIEW seen_inside AS SELECT inside() AS all`),
  )
})

/** Each answers with one number. */
const statements = [
  'SELECT sum(n)::int AS n FROM a',
  'SELECT sum(n)::int AS n FROM b',
  'SELECT n FROM a WHERE id = 1',
  'SELECT n FROM c WHERE id = 1 FOR UPDATE',
  'UPDATE a SET n = n + 1 WHERE id = 1 RETURNING n',
  'UPDATE b SET n = (SELECT sum(n) FROM a) WHERE id = 1 RETURNING n',
  'UPDATE c SET n = n + 1 WHERE id = 2 RETURNING n',
  'SELECT read_a() AS n',
  'SELECT read_b() AS n',
] as const

const others = [
  'UPDATE a SET n = n + 10 WHERE id = 1 RETURNING n',
  'UPDATE b SET n = n + 10 WHERE id = 1 RETURNING n',
  'UPDATE c SET n = n + 10 WHERE id = 1 RETURNING n',
  'SELECT sum(n)::int AS n FROM b',
] as const

// The view is of empty tables then, whatever is inside.
const seed = `TRUNCATE a, b, c, fired, twice, drawn, checked, summed, guarded, skipped; REFRESH MATERIALIZED VIEW seen_inside; INSERT INTO a VALUES (1, 1), (2, 1); INSERT INTO b VALUES (1, 1), (2, 1);
  INSERT INTO c VALUES (1, 1), (2, 1)`

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({ url, flows, onProgress: () => undefined, seed: ({ query }) => query(seed) })

const oneByOne =
  (texts: readonly string[]): Flow =>
  async ({ pool }) => {
    const client: PoolClient = await pool.connect()
    const answers: number[] = []
    try {
      await client.query('BEGIN')
      for (const text of texts) {
        const { rows } = await client.query<{ n: number }>(text)
        answers.push(...rows.map(({ n }) => n))
      }
      await client.query('COMMIT')
    } finally {
      client.release()
    }
    return answers
  }

const asOneStep =
  (text: string): Flow =>
  async ({ pool }) =>
    ((await pool.query<{ all: number[] }>(text)).rows[0]?.all ?? []).map(Number)

/** As a function, as one that calls another, and by everything else that runs one. */
const ways = {
  async function(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    return asOneStep('SELECT inside() AS all')
  },
  async nested(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    await make('around()', 'int[]', 'BEGIN RETURN inside(); END')
    return asOneStep('SELECT around() AS all')
  },
  async caught(texts: readonly string[]): Promise<Flow> {
    const tried = body(texts).replace('BEGIN', 'BEGIN BEGIN').replace(/END$/, '')
    await make('inside()', 'int[]', `${tried} EXCEPTION WHEN division_by_zero THEN NULL; END; END`)
    return asOneStep('SELECT inside() AS all')
  },
  async told(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    return asOneStep(`SELECT inside() AS all, pg_notify('inside', '')`)
  },
  async executed(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    return inOrder('PREPARE p AS SELECT inside() AS all', 'EXECUTE p')
  },
  async 'made into a table'(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    const create = 'CREATE TEMP TABLE made ON COMMIT DROP AS SELECT inside() AS all'
    return inOrder(create, 'SELECT * FROM made')
  },
  async refreshed(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    return inOrder('REFRESH MATERIALIZED VIEW seen_inside', 'SELECT * FROM seen_inside')
  },
  async called(texts: readonly string[]): Promise<Flow> {
    await withClient(url, (client) =>
      client.query(
        `CREATE OR REPLACE PROCEDURE work(INOUT "all" int[]) LANGUAGE plpgsql AS $body$ ${body(texts).replace('RETURN r;', '"all" := r;')} $body$`,
      ),
    )
    return asOneStep('CALL work(NULL)')
  },
  async failed(texts: readonly string[]): Promise<Flow> {
    await make('inside()', 'int[]', body(texts))
    await make('fail()', 'int[]', `BEGIN RAISE EXCEPTION '%', inside(); END`)
    return async ({ pool }) => {
      const error: unknown = await pool.query('SELECT fail()').catch((thrown: unknown) => thrown)
      return (error as Error).message
    }
  },
} as const

/** One after the other in a transaction, and what the last of them answers. */
const inOrder =
  (...texts: readonly string[]): Flow =>
  async ({ pool }) => {
    const client: PoolClient = await pool.connect()
    try {
      await client.query('BEGIN')
      let all: number[] = []
      for (const text of texts) all = (await client.query(text)).rows[0]?.all ?? []
      await client.query('COMMIT')
      return all.map(Number)
    } finally {
      client.release()
    }
  }

function body(texts: readonly string[]): string {
  const steps = texts.map((text) => {
    const into = text.startsWith('SELECT')
      ? text.replace(/( AS n)?( FROM|$)/, ' INTO v$2')
      : `${text} INTO v`
    return `${into}; r := r || v;`
  })
  return `DECLARE v int; r int[] := '{}'; BEGIN ${steps.join(' ')} RETURN r; END`
}

async function make(name: string, type: string, text: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `CREATE OR REPLACE FUNCTION ${name} RETURNS ${type} LANGUAGE plpgsql AS $body$ ${text} $body$`,
    ),
  )
}

const rounds = Number(
  process.env['HOLDFAST_RACE_ROUNDS'] ?? sample(Array.from({ length: 18 }), 2).length,
)

test(`${rounds} generated functions beside another flow`, {
  timeout: 60_000 + rounds * 10_000,
}, async () => {
  const random = new Random(12)
  const pick = <T>(from: readonly T[]): T => from[random.below(from.length)] as T
  const several = <T>(from: readonly T[], most: number): T[] =>
    Array.from({ length: 2 + random.below(most - 1) }, () => pick(from))
  const tally = { race: 0, 'race-free': 0, noise: 0 }
  for (let round = 0; round < rounds; round++) {
    const texts = several(statements, 3)
    const other = oneByOne(several(others, 3))
    const truth = await look({ step: oneByOne(texts), other })
    // Each in its turn: none may be left out by chance.
    const names = Object.keys(ways) as (keyof typeof ways)[]
    const way = names[round % names.length] as keyof typeof ways
    const { verdict, notes } = await look({ step: await ways[way](texts), other })
    const told = { way, texts, truth: truth.verdict, verdict }
    if (truth.verdict === 'race') {
      tally.race += 1
      expect(told).toMatchObject({ verdict: expect.stringMatching(/^(race|bounded)$/) })
      if (verdict === 'bounded')
        expect(notes.map(({ kind }) => kind)).toContain('several-statements')
    } else if (verdict === 'race-free') tally['race-free'] += 1
    else {
      // Never more than what it says: a race that is none would be a lie as well.
      expect(told).toMatchObject({ verdict: 'bounded' })
      tally.noise += 1
    }
  }
  // Both kinds are among them, or nothing was tested.
  expect(tally.race).toBeGreaterThan(1)
  expect(tally['race-free']).toBeGreaterThan(1)
})

describe('each of these reads twice, and others write in between', () => {
  beforeAll(() =>
    withClient(url, (client) =>
      client.query(`
        CREATE FUNCTION plus(int, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + $2 + read_b(); END $$;
        CREATE OPERATOR @+@ (LEFTARG = int, RIGHTARG = int, FUNCTION = plus);
        CREATE FUNCTION seen(c) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN read_b(); END $$;
        CREATE FUNCTION add_b(int, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN $1 + read_b(); END $$;
        CREATE AGGREGATE sum_b (int) (SFUNC = add_b, STYPE = int, INITCOND = '0');
        CREATE FUNCTION two_stable() RETURNS int LANGUAGE plpgsql AS $$
          DECLARE v int; BEGIN v := stable_b(); RETURN v + stable_b(); END $$;
        CREATE FUNCTION stable_b() RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM b); END $$;
        CREATE FUNCTION note_b() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := read_b(); RETURN NEW; END $$;
        ALTER TABLE twice ALTER x SET DEFAULT read_b(), ALTER y SET DEFAULT read_b();
        ALTER TABLE drawn ALTER y SET DEFAULT read_b();
        ALTER TABLE checked ADD CHECK (x < read_b()), ADD UNIQUE (id);
        ALTER TABLE summed ADD CHECK (x @+@ 1 < 1000);
        CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
        CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN NEW.y := read_b(); RETURN CASE WHEN NEW.x > 1 THEN NEW END; END $$;
        CREATE TRIGGER guarded BEFORE INSERT ON guarded FOR EACH ROW WHEN (read_b() > 0) EXECUTE FUNCTION pass();
        CREATE TRIGGER skipped BEFORE INSERT ON skipped FOR EACH ROW EXECUTE FUNCTION skip();
        CREATE FUNCTION args(int DEFAULT read_b(), int DEFAULT read_b()) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
        CREATE FUNCTION arg(int DEFAULT read_b()) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
        CREATE TRIGGER noted BEFORE UPDATE OF id ON c FOR EACH ROW EXECUTE FUNCTION note_b()`),
    ),
  )

  const twice = oneByOne(['SELECT read_b() AS n', 'SELECT read_b() AS n'])
  const write = oneByOne(['UPDATE b SET n = n + 10 WHERE id = 1 RETURNING n'])

  test('the truth: sent one by one they race', async () => {
    expect((await look({ step: twice, other: write })).verdict).toBe('race')
  })

  test.each(
    sample(
      [
        ['one function, called twice', 'SELECT read_b() + read_b() AS n'],
        ['one function, for each row', 'SELECT sum(read_b()) AS n FROM c'],
        ['an operator', 'SELECT (1 @+@ 2) @+@ 3 AS n'],
        ['a function that looks like a column', 'SELECT sum(c.seen) AS n FROM c'],
        ['an aggregate', 'SELECT sum_b(n) AS n FROM c'],
        ['two functions that share the snapshot of their caller', 'SELECT two_stable() AS n'],
        ['a trigger of two rows', 'UPDATE c SET id = -id'],
        ['the defaults of two columns', 'INSERT INTO twice DEFAULT VALUES RETURNING x'],
        ['the default in two rows', 'INSERT INTO drawn (x) VALUES (1), (2) RETURNING y'],
        ['a check of two rows', 'INSERT INTO checked (x) VALUES (1), (2) RETURNING x'],
        [
          'a check of a row that is inserted and then updated',
          'INSERT INTO checked (id, x) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET x = 1 RETURNING x',
        ],
        ['an operator in a check of two rows', 'INSERT INTO summed VALUES (1), (2) RETURNING x'],
        [
          'what decides about a trigger of two rows',
          'INSERT INTO guarded VALUES (1), (2) RETURNING x',
        ],
        [
          'a trigger that lets one of two rows pass',
          'INSERT INTO skipped VALUES (1), (2) RETURNING y',
        ],
        [
          'one row that is told of two',
          'WITH two AS (INSERT INTO drawn (x) VALUES (1), (2) RETURNING y) SELECT sum(y) AS n FROM two',
        ],
        ['arguments by default', 'SELECT args() AS n'],
      ],
      2,
    ),
  )('%s', async (_, text) => {
    const step: Flow = async ({ pool }) => (await pool.query(text)).rows
    expect((await look({ step, other: write })).verdict).toBe('bounded')
  })

  test.each([
    ['one function, called once', 'SELECT read_b() AS n'],
    ['two that share the snapshot of the statement', 'SELECT stable_b() + stable_b() AS n'],
    ['a trigger of one row', 'UPDATE c SET id = -id WHERE id = 1'],
    ['the default of one row', 'INSERT INTO drawn (x) VALUES (1) RETURNING y'],
    ['a check of one row', 'INSERT INTO checked (x) VALUES (1) RETURNING x'],
    ['what decides about a trigger of one row', 'INSERT INTO guarded VALUES (1) RETURNING x'],
    ['one argument by default', 'SELECT arg() AS n'],
  ])('but not %s', async (_, text) => {
    const step: Flow = async ({ pool }) => (await pool.query(text)).rows
    expect((await look({ step, other: write })).verdict).toBe('race-free')
  })
})

test('code that touches nothing shared costs nothing, however it is come to', async () => {
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE own (id int PRIMARY KEY, n int);
      CREATE VIEW owned AS SELECT n FROM own;
      CREATE FUNCTION mine() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE s int := 0; v int;
        BEGIN
          FOR i IN 1..2 LOOP SELECT count(*) INTO v FROM owned; s := s + v; END LOOP;
          EXECUTE 'SELECT count(*) FROM own' INTO v;
          INSERT INTO own VALUES (s, v);
          RETURN s;
        END $$`),
  )
  const { verdict } = await explore({
    url,
    seed: ({ query }) => query(`${seed}; TRUNCATE own`),
    flows: {
      step: async ({ pool }) => (await pool.query('SELECT mine()')).rows,
      other: oneByOne(others.slice(0, 2)),
    },
    onProgress: () => undefined,
  })
  expect(verdict).toBe('race-free')
})
