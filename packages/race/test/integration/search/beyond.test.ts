/** What no lock of a session tells: locks that outlive it, sequences, other servers, other sessions as they are now. */
import { withClient } from '@holdfast/testkit'
import { Client } from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Report } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { inOrder } from '../../../src/search/policy.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  const { host, port, user, database } = new Client(url)
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE t (id int PRIMARY KEY, n int);
      CREATE TABLE log (id serial PRIMARY KEY, n int);
      CREATE SEQUENCE numbers;
      CREATE VIEW sessions AS SELECT pid FROM pg_stat_activity;
      CREATE VIEW busy AS SELECT count(*) AS n FROM sessions;
      CREATE FUNCTION take() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(7); END $$;
      CREATE FUNCTION give() RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_unlock(7); END $$;
      CREATE FUNCTION waiting() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT count(*) FROM pg_locks WHERE NOT granted); END $$;
      CREATE FUNCTION own_locks() RETURNS int LANGUAGE sql AS
        'SELECT count(*)::int FROM pg_locks l WHERE l.pid = pg_backend_pid()';
      CREATE FUNCTION last_of() RETURNS int LANGUAGE plpgsql AS $$
        BEGIN RETURN (SELECT last_value FROM numbers); END $$;
      CREATE FUNCTION size() RETURNS bigint LANGUAGE sql AS $$ SELECT pg_relation_size('t') $$;
      CREATE FUNCTION made_size() RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE v bigint; BEGIN EXECUTE 'SELECT pg_relation_size($1)' INTO v USING 't'::regclass; RETURN v; END $$;
      CREATE VIEW sizes AS SELECT pg_relation_size('t') AS size;
      CREATE TABLE numbered (n int, by xid8 DEFAULT pg_current_xact_id());
      CREATE EXTENSION pgcrypto;
      CREATE EXTENSION postgres_fdw;
      CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw
        OPTIONS (host '${host}', port '${port}', dbname '${database}');
      CREATE USER MAPPING FOR CURRENT_USER SERVER here OPTIONS (user '${user}');
      CREATE FOREIGN TABLE there (id int, n int) SERVER here OPTIONS (table_name 't')`),
  )
})

const seed = async ({ query }: { query(text: string): Promise<unknown> }): Promise<void> => {
  await query('TRUNCATE t, log, numbered')
  await query('INSERT INTO t VALUES (1, 0), (2, 0)')
  await query(`SELECT setval('numbers', 1, false)`)
}

const look = (flows: Readonly<Record<string, Flow>>): Promise<Report> =>
  explore({ url, flows, seed, onProgress: () => undefined })

describe('a lock of the session is released where it is', () => {
  const key = 'advisory #0:7'
  const direct = 'SELECT pg_advisory_lock(7)'

  test.each([
    ['by hand', direct, 'SELECT pg_advisory_unlock(7)'],
    ['by a function', direct, 'SELECT give()'],
    ['by hand, taken by a function', 'SELECT take()', 'SELECT pg_advisory_unlock(7)'],
    ['by a function, taken by one', 'SELECT take()', 'SELECT give()'],
    ['by DISCARD ALL', direct, 'DISCARD ALL'],
    ['by all of them', direct, 'SELECT pg_advisory_unlock_all()'],
    ['by the end of the session', direct, undefined],
    ['by the end of the session, taken by a function', 'SELECT take()', undefined],
  ])('%s', async (_, taking, giving) => {
    const one: Flow = async ({ url: own }) => {
      const client = new Client(own)
      await client.connect()
      await client.query(taking)
      await client.query('UPDATE t SET n = 1 WHERE id = 1')
      if (giving !== undefined) await client.query(giving)
      await client.end()
    }
    const runner = await createRunner({ url, flows: { one }, seed })
    try {
      const { steps, trouble } = await runner.run(inOrder([0]))
      expect(trouble).toBeUndefined()
      const released = steps.findIndex(
        ({ footprint, half }, index) =>
          index > 0 && half !== 'commit' && footprint.ends?.locks.includes(key),
      )
      const at =
        steps[released] ?? steps.findLast(({ footprint }) => footprint.ends?.locks.includes(key))
      expect(at?.footprint.ends?.locks).toContain(key)
      expect(at?.statements).toEqual([giving ?? 'UPDATE t SET n = 1 WHERE id = 1'])
    } finally {
      await runner.close()
    }
  })
})

describe('what no lock tells costs the proof, and is named', () => {
  const bump: Flow = ({ pool }) => pool.query('UPDATE t SET n = n + 1 WHERE id = 1')
  const draw: Flow = ({ pool }) => pool.query(`SELECT nextval('numbers')`)

  test.each<[string, string, Flow]>([
    ['SELECT last_value FROM numbers', 'numbers', draw],
    ['SELECT last_of()', 'numbers in last_of()', draw],
    [`SELECT setval('numbers', 5)`, 'setval()', draw],
    [`SELECT last_value FROM pg_sequences WHERE sequencename = 'numbers'`, 'pg_sequences', draw],
    ['SELECT n FROM there WHERE id = 1', 'public.there', bump],
    ['UPDATE there SET n = n + 1 WHERE id = 2', 'public.there', bump],
    ['SELECT count(*) FROM pg_locks WHERE NOT granted', 'pg_locks', bump],
    ['SELECT waiting()', 'pg_locks in waiting()', bump],
    [
      `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()`,
      'pg_stat_activity',
      bump,
    ],
    ['SELECT n FROM busy', 'public.', bump],
    [`SELECT lo_get(lo_from_bytea(0, 'a'))`, 'lo_', bump],
    // F5: physical sizes, statistics, transaction ids, the log.
    [`SELECT pg_relation_size('t')`, 'pg_relation_size()', bump],
    [`SELECT pg_total_relation_size('t')`, 'pg_total_relation_size()', bump],
    [`SELECT pg_indexes_size('t')`, 'pg_indexes_size()', bump],
    ['SELECT pg_database_size(current_database())', 'pg_database_size()', bump],
    [`SELECT pg_stat_get_live_tuples('t'::regclass)`, 'pg_stat_get_live_tuples()', bump],
    ['SELECT n_live_tup FROM pg_stat_user_tables', 'pg_stat_user_tables', bump],
    ['SELECT pg_current_wal_lsn()', 'pg_current_wal_lsn()', bump],
    ['SELECT txid_current()', 'txid_current()', bump],
    ['SELECT pg_current_xact_id()', 'pg_current_xact_id()', bump],
    ['SELECT pg_current_snapshot()', 'pg_current_snapshot()', bump],
    [`SELECT reltuples FROM pg_class WHERE relname = 't'`, 'pg_class.reltuples', bump],
    ['SELECT size FROM sizes', 'pg_relation_size()', bump],
    ['SELECT size()', 'pg_relation_size() in size()', bump],
    ['SELECT made_size()', 'pg_relation_size in made_size()', bump],
    ['INSERT INTO numbered (n) VALUES (1)', 'pg_current_xact_id()', bump],
  ])('%s', async (text, named, other) => {
    const asks: Flow = async ({ pool }) => {
      await pool.query(text)
    }
    const { verdict, coverage, notes } = await look({
      asks,
      other: async (cx) => void (await other(cx)),
    })
    expect([verdict, coverage.exhaustive]).toEqual(['bounded', false])
    const note = notes.find(({ kind }) => kind === 'uncontrolled-wait')
    expect(note?.message).toContain(`A statement of asks uses ${named}`)
  })

  test.each([
    ['a look at its own session', 'SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()'],
    ['the same in a function', 'SELECT own_locks()'],
    ['a number that is drawn', `SELECT nextval('numbers') > 0`],
    ['an id that is drawn', 'INSERT INTO log (n) VALUES (1)'],
    ['a look at the catalogue', 'SELECT count(*) FROM pg_class'],
    ['the size of a value', 'SELECT pg_column_size(n) FROM t'],
    [
      'the clock, and chance',
      'SELECT clock_timestamp() > now(), random() < 2, gen_random_uuid() IS NULL',
    ],
    ['its own session', `SELECT pg_backend_pid() > 0, current_setting('work_mem'), version() > ''`],
    [
      'what is said of the catalogue',
      `SELECT to_regclass('t') IS NULL, pg_get_userbyid(10), has_table_privilege('t', 'SELECT')`,
    ],
    ['an extension that computes', `SELECT crypt('a', gen_salt('md5')) IS NULL`],
    ['a pause', 'SELECT pg_sleep(0) IS NULL'],
  ])('%s does not', async (_, text) => {
    const asks: Flow = async ({ pool }) => void (await pool.query(text))
    const { verdict } = await look({ asks, other: async (cx) => void (await bump(cx)) })
    expect(verdict).toBe('race-free')
  })
})

test('what a function read and then undid is part of what it did', async () => {
  await withClient(url, (client) =>
    client.query(`CREATE FUNCTION peek() RETURNS int LANGUAGE plpgsql AS $$
      DECLARE v int;
      BEGIN
        BEGIN
          SELECT n INTO v FROM t WHERE id = 1;
          RAISE EXCEPTION 'undone';
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
        RETURN v;
      END $$`),
  )
  // It looks, and writes where nobody else does.
  const copy: Flow = async ({ pool }) => {
    const { rows } = await pool.query('SELECT peek() AS n')
    await pool.query('UPDATE t SET n = $1 WHERE id = 1', [rows[0].n + 1])
  }
  expect((await look({ a: copy, b: copy })).verdict).toBe('race')
  const peek = async ({ pool }: Parameters<Flow>[0]): Promise<unknown> =>
    (await pool.query('SELECT peek() AS n')).rows
  const runner = await createRunner({ url, flows: { peek }, seed })
  try {
    const { steps } = await runner.run(inOrder([0]))
    expect(steps[0]?.footprint.touches).toContainEqual({ object: 'public.t', mode: 'read' })
  } finally {
    await runner.close()
  }
})
