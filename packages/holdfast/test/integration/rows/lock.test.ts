/** What `rows.lock` returns, for which keys, tables and columns. */
import { waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { rowLockStatement } from '../../../src/engines/postgres/rows/rows.ts'
import type { RowKey } from '../../../src/entries/rows.ts'
import { openRoom, type Room } from './open-room.ts'

let room: Room

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)`)
  await room.sql(`INSERT INTO accounts SELECT i, 100 FROM generate_series(1, 2000) AS i`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

describe('rows', () => {
  test('come back locked, in the order of the keys given', async () => {
    const { client } = await room.begin()
    const locked = await room.rows.lock(client, 'accounts', [3, 1, 2])
    expect(locked).toEqual({
      rows: [3, 1, 2].map((id) => ({ id, balance: 100 })),
      missing: [],
      skipped: [],
    })
    const free = `SELECT id FROM accounts WHERE id <= 4 ORDER BY id FOR UPDATE SKIP LOCKED`
    expect(await room.sql(free)).toEqual([{ id: 4 }])
  })

  test('are fresh: what was committed during the wait is what comes back', async () => {
    const writer = await room.begin()
    await writer.sql('UPDATE accounts SET balance = 7 WHERE id = 10')
    const waiter = await room.begin()
    const before = await waiter.sql('SELECT balance FROM accounts WHERE id = 10')
    const locking = room.rows.lock(waiter.client, 'accounts', [9, 10])
    await waitUntilBlocked(room.observer, waiter.pid)
    await writer.commit()
    expect((await locking).rows).toEqual([
      { id: 9, balance: 100 },
      { id: 10, balance: 7 },
    ])
    // The control: what was read before the lock is old.
    expect(before).toEqual([{ balance: 100 }])
  })

  test('that are not there are missing, also if they vanish during the wait', async () => {
    const writer = await room.begin()
    await writer.sql('DELETE FROM accounts WHERE id = 1999')
    await writer.sql('UPDATE accounts SET id = 5000 WHERE id = 2000')
    const waiter = await room.begin()
    const locking = room.rows.lock(waiter.client, 'accounts', ['77777', 1998, 1999, 2000])
    await waitUntilBlocked(room.observer, waiter.pid)
    await writer.commit()
    const { rows, missing, skipped } = await locking
    expect(rows).toEqual([{ id: 1998, balance: 100 }])
    expect(missing).toEqual(['77777', 1999, 2000])
    expect(skipped).toEqual([])
  })

  test('can be fewer columns', async () => {
    const { client } = await room.begin()
    const some = await room.rows.lock(client, 'accounts', [1], { columns: ['balance'] })
    expect(some.rows).toEqual([{ balance: 100 }])
    const none = await room.rows.lock(client, 'accounts', [1, -1], { columns: [] })
    expect(none).toEqual({ rows: [{}], missing: [-1], skipped: [] })
  })
})

describe('keys', () => {
  test('may be none at all', async () => {
    const { client } = await room.begin()
    expect(await room.rows.lock(client, 'accounts', [])).toEqual({
      rows: [],
      missing: [],
      skipped: [],
    })
  })

  test('T13: that are equal have an answer each, also if only the server sees that they are', async () => {
    const { client } = await room.begin()
    const keys = [5, '5', 6, 5n, -1, '05', '-1']
    const { rows, missing } = await room.rows.lock(client, 'accounts', keys)
    expect(rows.map((row) => row['id'])).toEqual([5, 5, 6, 5, 5])
    expect(missing).toEqual([-1, '-1'])
    const pairs: readonly RowKey[][] = [
      [6, 6],
      [{ id: 6 }, { id: '6' }],
    ]
    for (const pair of pairs) {
      const [from, to] = (await room.rows.lock(client, 'accounts', pair, { expectAll: true })).rows
      expect([from?.['id'], to?.['id']]).toEqual([6, 6])
    }
    // Others skip it, once for each time they asked.
    const other = await room.begin()
    const skipping = await room.rows.lock(other.client, 'accounts', [6, 7, '6'], { wait: 'skip' })
    expect(skipping).toMatchObject({ rows: [{ id: 7 }], skipped: [6, '6'], missing: [] })
  })

  test('may be a thousand', async () => {
    const { client } = await room.begin()
    const keys = Array.from({ length: 1000 }, (_, at) => 1001 - ((at * 7) % 1000) - 1)
    const { rows, missing } = await room.rows.lock(client, 'accounts', keys)
    expect(rows.map((row) => row['id'])).toEqual(keys)
    expect(missing).toEqual([])
  })

  test('must all be there with expectAll', async () => {
    const { client } = await room.begin()
    const locking = room.rows.lock(client, 'accounts', [1, 424242, 434343], { expectAll: true })
    const error = await locking.catch((thrown: unknown) => thrown as Error)
    expect(error).toMatchObject({
      code: 'ROWS_MISSING',
      details: { subject: 'accounts', missing: 2, skipped: 0 },
    })
    expect((error as Error).message).not.toContain('424242')
    // Nothing failed in the database: the transaction goes on.
    expect(await room.rows.lock(client, 'accounts', [1], { expectAll: true })).toBeDefined()
  })

  test('that the server cannot read are named as such, with its error as the cause', async () => {
    const { client } = await room.begin()
    await expect(room.rows.lock(client, 'accounts', ['one'])).rejects.toMatchObject({
      code: 'ROWS_KEY_INVALID',
      cause: { code: '22P02' },
    })
  })

  test('must identify one row', async () => {
    await room.sql('CREATE TABLE lines (id int PRIMARY KEY, order_id int)')
    await room.sql('INSERT INTO lines VALUES (1, 1), (2, 1), (3, 2)')
    const { client } = await room.begin()
    const keyColumns = ['order_id']
    await expect(room.rows.lock(client, 'lines', [1], { keyColumns })).rejects.toMatchObject({
      code: 'ROWS_KEY_INVALID',
    })
    expect((await room.rows.lock(client, 'lines', [2], { keyColumns })).rows).toHaveLength(1)
  })
})

describe('key columns of every type', () => {
  test.each([
    ['uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['int8', 9007199254740993n, '9007199254740993'],
    ['int8', '-9223372036854775808', '-9223372036854775808'],
    ['text', `it's "so" \\ {1} ☃`, `it's "so" \\ {1} ☃`],
    ['text', '', ''],
    ['varchar(5)', 'abc', 'abc'],
    ['char(5)', 'abc', 'abc  '],
    ['numeric', 0.1, '0.1'],
    ['date', '2026-02-28', '2026-02-28'],
    ['timestamptz', '2026-02-28T12:00:00.123456Z', '2026-02-28 12:00:00.123456+00'],
    ['bytea', '\\xdeadbeef', '\\xdeadbeef'],
    ['boolean', true, 'true'],
    ['inet', '10.0.0.1', '10.0.0.1'],
    ['mood', 'so so', 'so so'],
    ['positive', 3, '3'],
  ])('%s', async (type, key, stored) => {
    const name = `typed_${type.replace(/\W/g, '')}`
    await room.sql(`DO $$ BEGIN
      IF to_regtype('mood') IS NULL THEN
        CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
        CREATE DOMAIN positive AS int CHECK (VALUE > 0);
      END IF;
    END $$`)
    await room.sql(`DROP TABLE IF EXISTS ${name}`)
    await room.sql(`CREATE TABLE ${name} (id ${type} PRIMARY KEY, note text)`)
    await room.sql(`INSERT INTO ${name} VALUES ($1::${type}, 'here')`, [stored])
    const { client, sql } = await room.begin()
    await sql(`SET LOCAL TimeZone = 'UTC'`)
    const { rows } = await room.rows.lock(client, name, [key], { expectAll: true })
    expect(rows).toEqual([expect.objectContaining({ note: 'here' })])
  })

  test('and of several columns, given in any order', async () => {
    await room.sql(
      'CREATE TABLE stock (warehouse text, sku int8, units int, PRIMARY KEY (sku, warehouse))',
    )
    await room.sql(`INSERT INTO stock VALUES ('north', 1, 10), ('north', 2, 20), ('south', 1, 30)`)
    const { client } = await room.begin()
    const keys = [
      { sku: 1n, warehouse: 'south' },
      { warehouse: 'north', sku: 3 },
      { warehouse: 'north', sku: '1' },
    ]
    const options = { keyColumns: ['warehouse', 'sku'] }
    const { rows, missing } = await room.rows.lock(client, 'stock', keys, options)
    expect(rows.map((row) => row['units'])).toEqual([30, 10])
    expect(missing).toEqual([keys[1]])
    expect(missing[0]).toBe(keys[1])
  })
})

describe('names', () => {
  test.each([
    ['with a double quote', 'we"ird', 'ke"y'],
    ['in mixed case', 'MixedCase', 'Id'],
    ['that are reserved words', 'user', 'select'],
    ['that a careless statement would use itself', 'wanted', 'ordinal'],
    ['that our own statement uses, without the mark', 'locked', 'key'],
    ['of types', 'path', 'row'],
    ['with a dot, a space and a $1', 'a.b $1', 'c.d $1'],
    ['beyond ASCII', 'größe', 'naïve'],
  ])('%s', async (_, table, column) => {
    const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
    await room.sql(
      `CREATE TABLE ${quote(table)} (${quote(column)} int PRIMARY KEY, locked text, ordinal2 text, t text)`,
    )
    await room.sql(`INSERT INTO ${quote(table)} VALUES (1, 'l', 'o', 't')`)
    const { client } = await room.begin()
    const options = { keyColumns: [column], wait: 'skip' } as const
    const answer = await room.rows.lock(client, { table }, [1, 2], options)
    expect(answer).toEqual({
      rows: [{ [column]: 1, locked: 'l', ordinal2: 'o', t: 't' }],
      missing: [2],
      skipped: [],
    })
  })

  test('with a schema', async () => {
    await room.sql('CREATE SCHEMA "the shop"')
    await room.sql('CREATE TABLE "the shop".accounts (id int PRIMARY KEY, other boolean)')
    await room.sql('INSERT INTO "the shop".accounts VALUES (1, true)')
    const { client } = await room.begin()
    const table = { schema: 'the shop', table: 'accounts' }
    expect((await room.rows.lock(client, table, [1])).rows).toEqual([{ id: 1, other: true }])
  })

  test('with a dot are refused unless it is clear what the dot is', async () => {
    const { client } = await room.begin()
    await expect(room.rows.lock(client, 'the shop.accounts', [1])).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option: 'table' },
    })
  })

  test('cannot smuggle SQL', async () => {
    const { client, sql } = await room.begin()
    const table = 'accounts" ; DROP TABLE accounts; --'
    await sql('SAVEPOINT here')
    await expect(room.rows.lock(client, { table }, [1])).rejects.toMatchObject({ code: '42P01' })
    await sql('ROLLBACK TO here')
    expect((await room.rows.lock(client, 'accounts', [1])).rows).toHaveLength(1)
  })
})

test('partitioned tables and simple views can be locked too', async () => {
  await room.sql(`CREATE TABLE parted (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)`)
  await room.sql(`CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (10)`)
  await room.sql(`CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (10) TO (20)`)
  await room.sql(`INSERT INTO parted VALUES (1, 1), (11, 2)`)
  await room.sql(`CREATE VIEW seen AS SELECT id, v AS value FROM parted`)
  const { client } = await room.begin()
  const { rows } = await room.rows.lock(client, 'parted', [11, 1])
  expect(rows.map((row) => row['v'])).toEqual([2, 1])
  const other = await room.begin()
  expect(await room.rows.lock(other.client, 'seen', [1, 2], { wait: 'skip' })).toEqual({
    rows: [],
    missing: [2],
    skipped: [1],
  })
})

test('a domain that is NOT NULL itself is a known limit, and a loud one', async () => {
  await room.sql('CREATE DOMAIN email AS text NOT NULL')
  await room.sql('CREATE TABLE people (id int PRIMARY KEY, address email)')
  const { client } = await room.begin()
  await expect(room.rows.lock(client, 'people', [1])).rejects.toMatchObject({ code: '23502' })
})

test('a handful of keys in a big table are found by the index, whatever the wait', async () => {
  await room.sql(
    'CREATE TABLE big (a int8, b uuid DEFAULT gen_random_uuid(), v text, PRIMARY KEY (a, b))',
  )
  await room.sql('CREATE UNIQUE INDEX big_b ON big (b)')
  await room.sql(
    `INSERT INTO big (a, v) SELECT i, repeat('x', 50) FROM generate_series(1, 100000) AS i`,
  )
  await room.sql('ANALYZE big')
  const found = await room.sql<{ a: string; b: string }>('SELECT a, b FROM big WHERE a < 6')
  const { sql } = await room.begin()
  const plan = async (
    keyColumns: string[],
    keys: unknown[],
    patience: 'wait' | 'skip' | 'fail',
  ) => {
    const { text, values } = rowLockStatement({
      target: { table: { table: 'big' }, keyColumns },
      keysJson: JSON.stringify(keys),
      keyCount: keys.length,
      strength: 'no key update',
      patience,
      columns: undefined,
      versionColumn: undefined,
      unsure: false,
    })
    const lines = await sql<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, [...values])
    return lines.map((line) => line['QUERY PLAN']).join('\n')
  }
  for (const keyColumns of [['a', 'b'], ['b']]) {
    for (const patience of ['wait', 'skip', 'fail'] as const) {
      const many = await plan(keyColumns, found, patience)
      expect(many).toMatch(/Index Scan using "?big_/)
      expect(many).not.toMatch(/Seq Scan/)
      // Locked in key order: the sorting is done before the locking.
      expect(many).toMatch(/LockRows.*\n\s*->\s+Sort.*\n\s*Sort Key: "#row"\."?[ab]/)
      const one = await plan(keyColumns, found.slice(0, 1), patience)
      expect(one).toMatch(/Index Scan using "?big_/)
      expect(one).not.toMatch(/Seq Scan/)
    }
  }
})
