/** Statements that the server runs inside of one: others act between them, and no schedule does. */
import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE acc (id int PRIMARY KEY, n int);
      CREATE TABLE cfg (id int PRIMARY KEY, n int);
      CREATE TABLE doc (id int PRIMARY KEY, n int, seen timestamptz);
      CREATE TABLE log (id serial PRIMARY KEY, n int);
      CREATE FUNCTION total() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE a int; b int;
        BEGIN
          SELECT n INTO a FROM acc WHERE id = 1;
          SELECT n INTO b FROM acc WHERE id = 2;
          RETURN a + b;
        END $$;
      CREATE FUNCTION nested() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN total(); END $$;
      CREATE FUNCTION total_sql() RETURNS int LANGUAGE sql AS
        'INSERT INTO log (n) SELECT n FROM acc WHERE id = 1; SELECT n FROM acc WHERE id = 2';
      CREATE FUNCTION looping() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE s int := 0;
        BEGIN
          FOR i IN 1..2 LOOP s := s + (SELECT n FROM acc WHERE id = i); END LOOP;
          RETURN s;
        END $$;
      CREATE FUNCTION dynamic() RETURNS int LANGUAGE plpgsql AS $$
        DECLARE a int;
        BEGIN EXECUTE 'SELECT n FROM acc WHERE id = 1' INTO a; RETURN a + (SELECT n FROM acc WHERE id = 2); END $$;
      CREATE FUNCTION total_stable() RETURNS int STABLE LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT n FROM acc WHERE id = 1) + (SELECT n FROM acc WHERE id = 2); END $$;
      CREATE FUNCTION stable_twice() RETURNS int STABLE LANGUAGE plpgsql AS $$
        DECLARE a int; b int;
        BEGIN
          SELECT n INTO a FROM acc WHERE id = 1;
          SELECT n INTO b FROM acc WHERE id = 2;
          RETURN a + b;
        END $$;
      CREATE FUNCTION once() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(n) FROM acc); END $$;
      CREATE FUNCTION locked() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(9); RETURN total(); END $$;
      CREATE FUNCTION locked_move() RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(9);
          UPDATE acc SET n = n - 100 WHERE id = 1;
          UPDATE acc SET n = n + 100 WHERE id = 2;
        END $$;
      CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.seen := now(); RETURN NEW; END $$;
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO log (n) VALUES (NEW.n); RETURN NULL; END $$;
      CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO log (n) VALUES (total()); RETURN NULL; END $$;
      CREATE TRIGGER stamped BEFORE UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION stamp();
      CREATE TRIGGER noted AFTER UPDATE ON doc FOR EACH ROW EXECUTE FUNCTION note();
      CREATE TRIGGER watched AFTER UPDATE ON cfg FOR EACH ROW EXECUTE FUNCTION watch();
      CREATE TABLE kept (id int PRIMARY KEY, n int);
      CREATE RULE keep AS ON DELETE TO kept DO INSTEAD UPDATE kept SET n = total() WHERE id = OLD.id`),
  )
})

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({
    url,
    flows,
    onProgress: () => undefined,
    oracle: { ignore: ['doc.seen'] },
    seed: async ({ query }) => {
      await query('TRUNCATE acc, cfg, doc, log, kept')
      await query('INSERT INTO acc VALUES (1, 100), (2, 0)')
      await query('INSERT INTO cfg VALUES (1, 0), (2, 0)')
      await query('INSERT INTO doc VALUES (1, 0), (2, 0)')
      await query('INSERT INTO kept VALUES (1, 0)')
    },
  })

const told = ({ verdict, coverage }: Report): unknown => [verdict, coverage.exhaustive]

const asks =
  (text: string): Flow =>
  async ({ pool }) =>
    (await pool.query(text)).rows

const inTransaction =
  (...texts: readonly string[]): Flow =>
  async ({ pool }) => {
    const client = await pool.connect()
    const answers: unknown[] = []
    try {
      await client.query('BEGIN')
      for (const text of texts) answers.push((await client.query(text)).rows)
      await client.query('COMMIT')
    } finally {
      client.release()
    }
    return answers
  }

const move = inTransaction(
  'UPDATE acc SET n = n - 100 WHERE id = 1',
  'UPDATE acc SET n = n + 100 WHERE id = 2',
)

const reads = ['SELECT n FROM acc WHERE id = 1', 'SELECT n FROM acc WHERE id = 2']

interface Wire {
  parse(message: object): void
  bind(message: object): void
  execute(message: object): void
  sync(): void
}

/** Several statements up to one Sync, as a driver with a pipeline sends them. */
function pipelined(client: PoolClient, texts: readonly string[]): Promise<unknown[]> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown[]>()
  const rows: unknown[] = []
  const ignore = (): void => {}
  client.query({
    submit(wire: Wire) {
      for (const text of texts) {
        wire.parse({ name: '', text, types: [] })
        wire.bind({ portal: '', statement: '', values: [] })
        wire.execute({ portal: '', rows: 0 })
      }
      wire.sync()
    },
    handleDataRow: ({ fields }: { fields: unknown[] }) => rows.push(...fields),
    handleReadyForQuery: () => resolve(rows.map(String)),
    handleError: reject,
    handleRowDescription: ignore,
    handleCommandComplete: ignore,
  } as never)
  return promise
}

describe('a step that runs several statements costs the proof', () => {
  test.each([
    ['a function that reads twice', 'SELECT total()'],
    ['a function that calls one', 'SELECT nested()'],
    ['a function of SQL', 'SELECT total_sql()'],
    ['a loop', 'SELECT looping()'],
    ['a statement that is made at run time', 'SELECT dynamic()'],
    ['a trigger', 'UPDATE cfg SET n = 1 WHERE id = 1'],
    ['a rule', 'DELETE FROM kept WHERE id = 1'],
    [
      'a block',
      'DO $$ BEGIN INSERT INTO log (n) SELECT n FROM acc WHERE id = 1; INSERT INTO log (n) SELECT n FROM acc WHERE id = 2; END $$',
    ],
  ])('%s', async (_, text) => {
    const report = await look({ report: asks(text), move })
    expect(told(report)).toEqual(['bounded', false])
    const note = report.notes.find(({ kind }) => kind === 'several-statements')
    expect(note?.message).toContain(text.slice(0, 30))
  })

  test('statements that a client sends in one pipeline', async () => {
    const report: Flow = async ({ pool }) => {
      const client = await pool.connect()
      try {
        return await pipelined(client, reads)
      } finally {
        client.release()
      }
    }
    expect(told(await look({ report, move }))).toEqual(['bounded', false])
  })
})

describe('nothing is lost', () => {
  test.each([
    ['the function has one statement', 'SELECT once()'],
    ['the function has the snapshot of its caller', 'SELECT stable_twice()'],
    ['all of it is one query', 'SELECT total_stable()'],
    ['the trigger only sets a column, or only adds a row', 'UPDATE doc SET n = 1 WHERE id = 1'],
    ['the rule is for another command', 'INSERT INTO kept SELECT 2, sum(n) FROM acc'],
    ['nobody writes what it reads', 'DO $$ BEGIN PERFORM n FROM cfg; PERFORM n FROM cfg; END $$'],
  ])('if %s', async (_, text) => {
    const writes = inTransaction(
      'UPDATE acc SET n = n - 100 WHERE id = 1',
      'UPDATE acc SET n = n + 100 WHERE id = 2',
      'UPDATE doc SET n = n + 1 WHERE id = 1',
    )
    expect(told(await look({ report: asks(text), writes }))).toEqual(['race-free', true])
  })

  test('if a lock that all of them take comes first', async () => {
    const flows = { report: asks('SELECT locked()'), move: asks('SELECT locked_move()') }
    expect(told(await look(flows))).toEqual(['race-free', true])
  })

  test('if a lock was taken by a statement before', async () => {
    const lock = 'SELECT pg_advisory_xact_lock(9)'
    const flows = {
      report: inTransaction(lock, 'SELECT total()'),
      move: asks('SELECT locked_move()'),
    }
    expect(told(await look(flows))).toEqual(['race-free', true])
  })

  test('under one snapshot for the transaction', async () => {
    const report: Flow = async ({ pool }) => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
        const { rows } = await client.query('SELECT total()')
        await client.query('COMMIT')
        return rows
      } finally {
        client.release()
      }
    }
    expect(told(await look({ report, move }))).toEqual(['race-free', true])
  })
})

test('a block that checks and inserts is found to race: its commit is a step of its own', async () => {
  const block = asks(
    'DO $$ BEGIN IF (SELECT count(*) FROM log) = 0 THEN INSERT INTO log (n) VALUES (1); END IF; END $$',
  )
  expect((await look({ a: block, b: block })).verdict).toBe('race')
})
