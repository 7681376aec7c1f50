import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { appObjects } from '../../../src/schema/grants.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import { quoted } from '../../support/schema-fixture.ts'

/**
 * Somebody with the application's role, and nothing else than what `grants` gives it: cannot change
 * a balance, a movement or a limit except through the functions, nor make these work for them.
 */
const fixture = ledgerFixture()
const role = appRole(fixture)
let app: pg.Pool
let hf: Holdfast<pg.PoolClient>

beforeAll(async () => {
  // What a role has on PostgreSQL 14 without being asked: a place to put objects.
  await fixture.observer.query(`GRANT CREATE, USAGE ON SCHEMA public TO ${quoted(role.name)}`)
  app = role.pool
  hf = createHoldfast(fromPg(app))
})

const denied = { code: '42501' }
const declared = { name: 'secured', limit: 10, per: 'lifetime' } as const

async function namesOf(kinds: string): Promise<string[]> {
  const { rows } = await fixture.observer.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace
     AND relkind = ANY ($1::"char"[]) ORDER BY relname`,
    [kinds.split('')],
  )
  return rows.map(({ name }) => name)
}

describe('the role', () => {
  test('can do its work: consume, hold, settle, refund, and read the views', async () => {
    const quota = hf.quota(declared)
    const [key, operationId] = [fresh(), fresh()]
    expect(await quota.consume(key, 3, { operationId })).toMatchObject({ ok: true })
    const hold = await quota.hold(key, 2, { operationId: fresh(), ttl: '1 min' })
    expect(await quota.settle((hold as { holdId: string }).holdId)).toMatchObject({ debited: 5 })
    const refund = { operationId: fresh(), of: operationId }
    expect(await quota.refund(key, 3, refund)).toMatchObject({ ok: true, available: 8 })
    for (const view of await namesOf('v')) await app.query(`SELECT * FROM holdfast.${view}`)
    const { rows } = await app.query('SELECT kind FROM holdfast.movements WHERE key = $1', [key])
    expect(rows).toHaveLength(4)
  })

  test('cannot read or write a table or a partition, nor truncate, lock or refer to it', async () => {
    // Of the partitions, which are alike, two.
    const months = /^movement_\d/
    const tables = (await namesOf('rp')).filter((name, at, all) => {
      return !months.test(name) || at < all.findIndex((other) => months.test(other)) + 2
    })
    expect(tables).toEqual(
      expect.arrayContaining(['balance', 'movement', 'hold', 'operation', 'account']),
    )
    for (const table of tables) {
      const name = `holdfast.${table}`
      const { rows } = await fixture.observer.query<{ column: string }>(
        `SELECT quote_ident(attname) AS column FROM pg_attribute
         WHERE attrelid = $1::regclass AND attnum = 1`,
        [name],
      )
      const column = rows[0]?.column as string
      const reading = [
        `SELECT * FROM ${name}`,
        `SELECT ${column} FROM ${name}`,
        `UPDATE ${name} SET ${column} = ${column}`,
        `DELETE FROM ${name}`,
        `DO $$ BEGIN LOCK TABLE ${name} IN ACCESS SHARE MODE; END $$`,
        `COPY ${name} TO STDOUT`,
        `SELECT FROM ${name} FOR UPDATE`,
      ]
      for (const statement of [
        // Jobs are claimed by the same statements as rows of the user's own tables.
        ...(table === 'work' ? [] : reading),
        `INSERT INTO ${name} DEFAULT VALUES`,
        `TRUNCATE ${name}`,
        `CREATE TRIGGER mine BEFORE INSERT ON ${name} FOR EACH ROW EXECUTE FUNCTION holdfast.refuse_change()`,
        `CREATE RULE mine AS ON INSERT TO ${name} DO INSTEAD NOTHING`,
        `ALTER TABLE ${name} DISABLE TRIGGER ALL`,
        `DROP TABLE ${name}`,
      ]) {
        await expect(app.query(statement)).rejects.toMatchObject(denied)
      }
    }
  })

  test('cannot write through a view', async () => {
    for (const view of await namesOf('v')) {
      for (const statement of [
        `DELETE FROM holdfast.${view}`,
        `INSERT INTO holdfast.${view} DEFAULT VALUES`,
      ]) {
        // Most cannot be written by anybody.
        await expect(app.query(statement)).rejects.toMatchObject({
          code: expect.stringMatching(/^(42501|55000|0A000)$/) as string,
        })
      }
    }
  })

  test('cannot call a function that is not made for applications', async () => {
    const { functions } = appObjects(ownFiles())
    const { rows } = await app.query<{ name: string; may: boolean }>(
      `SELECT proname AS name, has_function_privilege(oid, 'EXECUTE') AS may
       FROM pg_proc WHERE pronamespace = 'holdfast'::regnamespace`,
    )
    const others = rows.filter(({ name }) => !functions.includes(name))
    expect(others.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['fall_due', 'open_account', 'replay', 'extend_partitions']),
    )
    expect(others.filter(({ may }) => may)).toEqual([])
    for (const call of [
      'fall_due(1::smallint, gen_random_uuid())',
      "hash_name('a')",
      'extend_partitions(1)',
    ]) {
      await expect(app.query(`SELECT holdfast.${call}`)).rejects.toMatchObject(denied)
    }
  })

  test('cannot make, change or take over an object of the schema', async () => {
    for (const statement of [
      'CREATE TABLE holdfast.mine ()',
      "CREATE FUNCTION holdfast.hash_name(name varchar) RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'",
      'ALTER FUNCTION holdfast.sweep(integer) SECURITY INVOKER',
      'ALTER SCHEMA holdfast RENAME TO mine',
      'DROP SCHEMA holdfast CASCADE',
      'GRANT SELECT ON holdfast.balance TO PUBLIC',
    ]) {
      await expect(app.query(statement)).rejects.toMatchObject(denied)
    }
  })
})

describe('the functions are not fooled by', () => {
  /** Plays with this in force on its one connection, and sees what was really booked. */
  const bookedWith = async (...statements: string[]): Promise<unknown> => {
    const client = await app.connect()
    const key = fresh()
    try {
      for (const statement of statements) await client.query(statement)
      await client.query('BEGIN')
      const quota = hf.quota(declared)
      const first = await quota.consume(client, key, 4, { operationId: fresh() })
      expect(first).toMatchObject({ ok: true, available: 6 })
      const hold = await quota.hold(client, key, 6, { operationId: fresh(), ttl: '1 min' })
      expect(hold).toMatchObject({ ok: true, available: 0 })
      expect(await quota.consume(client, key, 1, { operationId: fresh() })).toMatchObject({
        reason: 'insufficient',
      })
      const settled = await quota.settle(client, (hold as { holdId: string }).holdId, 1)
      expect(settled).toMatchObject({ ok: true, available: 5 })
      await client.query('SELECT holdfast.sweep(10)')
      await client.query('COMMIT')
    } finally {
      client.release(true)
    }
    const { rows } = await fixture.observer.query<{ debited: string }>(
      `SELECT b.debited FROM holdfast.balance b JOIN holdfast.account a ON a.id = b.account
       WHERE a.key = $1`,
      [key],
    )
    return rows
  }
  const booked = [{ debited: '5' }]
  const tables = ['balance', 'movement', 'operation', 'hold', 'account', 'credit_grant']

  test('temporary tables with the names of its own', async () => {
    const shadows = tables.map(
      (table) => `CREATE TEMP TABLE ${table} (bucket smallint, account uuid)`,
    )
    expect(await bookedWith(...shadows, 'SET search_path = pg_temp, public, holdfast')).toEqual(
      booked,
    )
  })

  test('functions, operators and types in a schema that comes first', async () => {
    const shadow = (signature: string, returns: string, value: string): string =>
      `CREATE OR REPLACE FUNCTION public.${signature} RETURNS ${returns} LANGUAGE sql AS $$ SELECT ${value} $$`
    const shadows = [
      shadow('clock_timestamp()', 'timestamptz', "'infinity'::timestamptz"),
      shadow('sha256(bytea)', 'bytea', '$1'),
      shadow('hash_name(text)', 'uuid', 'NULL::uuid'),
      shadow('fall_due(smallint, uuid)', 'integer', '99'),
      shadow('micros(timestamptz)', 'bigint', '0::bigint'),
      shadow('never(bigint, bigint)', 'boolean', 'false'),
      'CREATE OPERATOR public.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.never)',
      'CREATE OPERATOR public.<> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.never)',
      'CREATE TYPE public.uuid AS (a text)',
    ]
    const path = 'SET search_path = public, pg_catalog, holdfast'
    expect(await bookedWith(...shadows, path)).toEqual(booked)
  })

  test.each([
    ['other plans', ['SET enable_indexscan = off', 'SET enable_bitmapscan = off']],
    [
      'another time zone and style',
      ["SET TimeZone = 'Asia/Kathmandu'", "SET DateStyle = 'SQL, DMY'"],
    ],
    ['another style of intervals', ["SET IntervalStyle = 'iso_8601'"]],
    [
      'another notation of bytes and numbers',
      ["SET bytea_output = 'escape'", 'SET extra_float_digits = 0'],
    ],
    ['backslashes in texts', ['SET standard_conforming_strings = off']],
    ['nulls in arrays', ['SET array_nulls = off']],
    ['row security', ['SET row_security = off']],
  ])('%s', async (_, statements) => {
    expect(await bookedWith(...statements)).toEqual(booked)
  })

  test('a read-only transaction: an error, and nothing is written', async () => {
    const client = await app.connect()
    await client.query('BEGIN READ ONLY')
    const refused = hf.quota(declared).consume(client, fresh(), 1, { operationId: fresh() })
    await expect(refused).rejects.toMatchObject({ code: '25006' })
    await client.query('ROLLBACK')
    client.release()
    expect(await brokenInvariants(fixture.observer)).toEqual([])
  })
})

describe('movements are append-only', () => {
  test('also for the owner of the table, partition by partition', async () => {
    await hf.quota(declared).consume(fresh(), 1, { operationId: fresh() })
    const { rows } = await fixture.observer.query<{ name: string }>(
      `SELECT tableoid::regclass::text AS name FROM holdfast.movement GROUP BY 1
       UNION SELECT 'holdfast.movement'`,
    )
    expect(rows.length).toBeGreaterThan(1)
    for (const { name } of rows) {
      for (const statement of [
        `UPDATE ${name} SET debit = 0`,
        `UPDATE ${name} SET note = '{}'`,
        `DELETE FROM ${name}`,
      ]) {
        await expect(fixture.observer.query(statement)).rejects.toMatchObject({ code: '23001' })
      }
    }
    const truncated = fixture.observer.query('TRUNCATE holdfast.movement')
    await expect(truncated).rejects.toMatchObject({ code: '23001' })
  })

  test('control: a role that owns the schema can write the other tables', async () => {
    const client = await fixture.observer.connect()
    await client.query('BEGIN')
    const { rowCount } = await client.query('UPDATE holdfast.balance SET debited = 0')
    await client.query('ROLLBACK')
    client.release()
    expect(rowCount).toBeGreaterThan(0)
  })
})
