import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { type HoldfastError, isHoldfastError } from '../../../src/errors.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { planFiles } from '../../../src/schema/plan.ts'
import type { SchemaFiles } from '../../../src/schema/schema-files.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import {
  filesOf,
  newRole,
  newSchema,
  notes,
  notes2,
  noteTexts,
  quoted,
} from '../../support/schema-fixture.ts'

const fixture = pgFixture()
const names = ({ migrations, repeatables }: SchemaFiles): string[] =>
  [...migrations, ...repeatables].map(({ name }) => name)
const install = (
  files: SchemaFiles,
  schema: string,
  options: { repair?: boolean; onProgress?: (file: string) => void } = {},
): ReturnType<typeof migrateFiles> =>
  migrateFiles(fromPg(fixture.pool), files, { ...options, schema })

async function value<T>(text: string, values: unknown[] = []): Promise<T> {
  const { rows } = await fixture.observer.query<unknown[]>({ text, values, rowMode: 'array' })
  return rows[0]?.[0] as T
}

const recorded = async (schema: string): Promise<string[]> => {
  const { rows } = await fixture.observer.query<{ name: string }>(
    `SELECT name FROM ${quoted(schema)}.installed_file ORDER BY name`,
  )
  return rows.map(({ name }) => name)
}

const failure = (running: Promise<unknown>): Promise<HoldfastError> =>
  running.then(
    () => expect.unreachable('it succeeded'),
    (error: unknown) => error as HoldfastError,
  )

describe('an installation', () => {
  test('applies every file in order, records it, and is usable', async () => {
    const schema = newSchema()
    const seen: string[] = []
    const result = await install(notes, schema, { onProgress: (file) => seen.push(file) })
    expect(result).toEqual({ schema, applied: names(notes), leftover: [], notes: [] })
    expect(seen).toEqual(names(notes))
    expect(await recorded(schema)).toEqual(names(notes).toSorted())
    expect(await value(`SELECT ${quoted(schema)}.add_note(1, ' x ')`)).toBe('x;')
    expect(await value(`SELECT body FROM ${quoted(schema)}.notes`)).toBe(' X ')
  })

  test('a second time does nothing, and asks for no lock', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const holder = await fixture.observer.connect()
    await holder.query('BEGIN')
    await holder.query(`LOCK TABLE ${quoted(schema)}.note IN SHARE MODE`)
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: [] })
    await holder.query('ROLLBACK')
    holder.release()
  })

  test('into a schema that somebody made for it', async () => {
    const schema = newSchema()
    await fixture.observer.query(`CREATE SCHEMA ${quoted(schema)}`)
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: names(notes) })
  })

  test('by a role that may not create schemas, into one made for it', async () => {
    const schema = newSchema()
    const installer = quoted(await newRole(fixture.observer))
    await fixture.observer.query(`CREATE SCHEMA ${quoted(schema)} AUTHORIZATION ${installer}`)
    const refused = newSchema()
    const as = async (name: string): Promise<unknown> =>
      fromPg(fixture.pool).transaction(
        async (transaction) => {
          await transaction.command(`SET LOCAL ROLE ${installer}`)
          const driver = {
            ...fromPg(fixture.pool),
            transaction: async (body: never) => (body as (tx: unknown) => unknown)(transaction),
          }
          return migrateFiles(driver as never, notes, { schema: name })
        },
        { scopes: [] },
      )
    await expect(as(schema)).resolves.toMatchObject({ applied: names(notes) })
    const error = await failure(as(refused))
    expect(error).toMatchObject({ code: 'SCHEMA_FAILED', details: { sqlState: '42501' } })
  })

  test('is refused in a schema that holds something else, and changes nothing', async () => {
    const schema = newSchema()
    await fixture.observer.query(`CREATE SCHEMA ${quoted(schema)}`)
    await fixture.observer.query(
      `CREATE FUNCTION ${quoted(schema)}.theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
    )
    expect(await failure(install(notes, schema))).toMatchObject({
      code: 'SCHEMA_OCCUPIED',
      name: 'SchemaError',
    })
    expect(await value(`SELECT proacl IS NULL FROM pg_proc WHERE proname = 'theirs'`)).toBe(true)
  })

  test('U3: is refused if there is nothing to install, which never says success', async () => {
    const schema = newSchema()
    const nothing = filesOf('1.0.0', {})
    expect(await failure(install(nothing, schema))).toMatchObject({
      code: 'SCHEMA_FILES_MISSING',
      name: 'SchemaError',
    })
    const { rows } = await fixture.observer.query('SELECT FROM pg_namespace WHERE nspname = $1', [
      schema,
    ])
    expect(rows).toEqual([])
    expect(() => planFiles(nothing, { schema })).toThrow('SCHEMA_FILES_MISSING')
  })

  test.each(['', 'public', 'pg_notes', 'information_schema', 'x'.repeat(64), 'a\0b'])(
    'is refused under the name %j',
    async (schema) => {
      expect(await failure(install(notes, schema))).toMatchObject({
        code: 'OPTION_INVALID',
        details: { option: 'schema' },
      })
    },
  )

  test('under the longest name', async () => {
    const schema = 'ü'.repeat(31)
    await expect(install(notes, schema)).resolves.toMatchObject({ schema })
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: [] })
  })
})

describe('a failure', () => {
  const broken = filesOf('1.0.0', {
    ...noteTexts,
    'app/broken':
      'CREATE OR REPLACE FUNCTION :"schema".broken() RETURNS no_such_type LANGUAGE sql AS $$ SELECT 1 $$;',
  })

  test('names the file and leaves nothing behind', async () => {
    const schema = newSchema()
    const error = await failure(install(broken, schema))
    expect(error).toMatchObject({
      code: 'SCHEMA_FAILED',
      details: { file: 'app/broken', sqlState: '42704' },
      cause: expect.objectContaining({ message: expect.stringContaining('no_such_type') }),
    })
    expect(error.message).toContain('app/broken')
    expect(await value('SELECT count(*)::int FROM pg_namespace WHERE nspname = $1', [schema])).toBe(
      0,
    )
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: names(notes) })
  })

  test('of an upgrade leaves the old version in place', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const upgrade = filesOf('2.0.0', {
      ...noteTexts,
      'migrations/0002-half':
        'ALTER TABLE :"schema".note ADD COLUMN a int; ALTER TABLE :"schema".gone ADD COLUMN b int;',
    })
    expect(await failure(install(upgrade, schema))).toMatchObject({
      code: 'SCHEMA_FAILED',
      details: { file: 'migrations/0002-half' },
    })
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: [] })
    expect(
      await value(
        `SELECT count(*)::int FROM pg_attribute WHERE attrelid = $1::regclass AND attname = 'a'`,
        [`${quoted(schema)}.note`],
      ),
    ).toBe(0)
  })

  test('to get a lock in time stays what it is', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const holder = await fixture.observer.connect()
    await holder.query('BEGIN')
    await holder.query(`LOCK TABLE ${quoted(schema)}.note IN ACCESS SHARE MODE`)
    const impatient = filesOf('2.0.0', {
      ...noteTexts,
      'migrations/0002-wait': `SET LOCAL lock_timeout = '20ms'; ALTER TABLE :"schema".note ADD COLUMN a int;`,
    })
    const error = await failure(install(impatient, schema))
    expect(isHoldfastError(error)).toBe(false)
    expect(error).toMatchObject({ code: '55P03' })
    await holder.query('ROLLBACK')
    holder.release()
  })
})

describe('an upgrade', () => {
  test('applies what is new, then all functions and views; what is gone is reported', async () => {
    const schema = newSchema()
    await install(notes, schema)
    await expect(install(notes2, schema)).resolves.toEqual({
      schema,
      applied: ['migrations/0002-colour', ...notes2.repeatables.map(({ name }) => name)],
      leftover: ['operator/tidy'],
      notes: [],
    })
    await value(`SELECT ${quoted(schema)}.add_note(1, 'x')`)
    expect(await value(`SELECT colour FROM ${quoted(schema)}.note`)).toBe('red')
    await expect(install(notes2, schema)).resolves.toMatchObject({
      applied: [],
      leftover: ['operator/tidy'],
    })
  })

  test('of one function applies that one only', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const text = (noteTexts['internal/b_trim'] as string).replace(
      'btrim(body)',
      "btrim(body, '- ')",
    )
    const patched = filesOf('1.0.1', { ...noteTexts, 'internal/b_trim': text })
    await expect(install(patched, schema)).resolves.toMatchObject({ applied: ['internal/b_trim'] })
    expect(await value(`SELECT ${quoted(schema)}.b_trim('- x -')`)).toBe('x')
  })

  test('keeps what was granted', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const keeper = await newRole(fixture.observer)
    await fixture.observer.query(
      `GRANT EXECUTE ON FUNCTION ${quoted(schema)}.add_note TO ${quoted(keeper)}`,
    )
    await install(notes2, schema)
    expect(
      await value(`SELECT has_function_privilege($1, $2, 'EXECUTE')`, [
        keeper,
        `${quoted(schema)}.add_note(bigint, text)`,
      ]),
    ).toBe(true)
  })

  test('line ends do not make a file another one', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const checkedOut = Object.entries(noteTexts).map(([name, text]) => [
      name,
      text.replaceAll('\n', '\r\n'),
    ])
    await expect(
      install(filesOf('1.0.0', Object.fromEntries(checkedOut)), schema),
    ).resolves.toMatchObject({ applied: [] })
  })
})

describe('a repair', () => {
  test('creates functions and views again although their files did not change', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const drift = `CREATE OR REPLACE FUNCTION ${quoted(schema)}.b_trim(body text) RETURNS text LANGUAGE sql AS 'SELECT ''!'''`
    await fixture.observer.query(drift)
    await install(notes, schema)
    expect(await value(`SELECT ${quoted(schema)}.b_trim(' x')`)).toBe('!')
    await expect(install(notes, schema, { repair: true })).resolves.toMatchObject({
      applied: notes.repeatables.map(({ name }) => name),
    })
    expect(await value(`SELECT ${quoted(schema)}.b_trim(' x')`)).toBe('x')
  })
})

describe('is refused, and changes nothing,', () => {
  test('when a migration that was applied has changed', async () => {
    const schema = newSchema()
    await install(notes, schema)
    const edited = filesOf('2.0.0', {
      ...noteTexts,
      'migrations/0001-note': `${noteTexts['migrations/0001-note']}-- a word more`,
      'migrations/0002-more': 'CREATE TABLE :"schema".more ();',
    })
    expect(await failure(install(edited, schema))).toMatchObject({
      code: 'SCHEMA_CHECKSUM',
      details: { files: ['migrations/0001-note'] },
    })
    expect(await recorded(schema)).toEqual(names(notes).toSorted())
  })

  test('when the database has a migration that this version does not know', async () => {
    const schema = newSchema()
    await install(notes2, schema)
    expect(await failure(install(notes, schema))).toMatchObject({
      code: 'SCHEMA_NEWER',
      details: { files: expect.arrayContaining(['migrations/0002-colour']) },
    })
  })

  test('when a later version has changed a function: it is not put back', async () => {
    const schema = newSchema()
    const text = (noteTexts['internal/b_trim'] as string).replace('btrim', 'ltrim')
    const later = filesOf('1.10.0', { ...noteTexts, 'internal/b_trim': text })
    await install(later, schema)
    const earlier = { ...notes, version: '1.9.0' }
    expect(await failure(install(earlier, schema))).toMatchObject({
      code: 'SCHEMA_NEWER',
      details: { files: ['internal/b_trim'] },
    })
    expect(await failure(install(earlier, schema, { repair: true }))).toMatchObject({
      code: 'SCHEMA_NEWER',
    })
    // The control: the same files from a version that is not earlier are applied.
    await expect(install({ ...notes, version: '1.10.0' }, schema)).resolves.toMatchObject({
      applied: ['internal/b_trim'],
    })
  })

  test('but not when the later version changed nothing', async () => {
    const schema = newSchema()
    await install({ ...notes, version: '3.0.0' }, schema)
    await expect(install(notes, schema)).resolves.toMatchObject({ applied: [] })
  })
})

describe('rights', () => {
  const executable = (schema: string): Promise<number> =>
    value(
      `SELECT count(*)::int FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace
       WHERE nspname = $1 AND has_function_privilege('public', pg_proc.oid, 'EXECUTE')`,
      [schema],
    )

  test('are taken from everyone, whatever the default privileges say', async () => {
    const schema = newSchema()
    await fixture.pool.query('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC')
    try {
      await install(notes, schema)
    } finally {
      await fixture.pool.query('ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC')
    }
    expect(await executable(schema)).toBe(0)
    expect(
      await value(
        `SELECT count(*)::int FROM pg_class WHERE relnamespace = $1::regnamespace
         AND relkind IN ('r', 'p', 'v') AND has_table_privilege('public', oid, 'SELECT')`,
        [quoted(schema)],
      ),
    ).toBe(0)
    // The control: a function that nobody closes is everybody's.
    await fixture.observer.query(
      `CREATE FUNCTION ${quoted(schema)}.open() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
    )
    expect(await executable(schema)).toBe(1)
    await install(notes, schema, { repair: true })
    expect(await executable(schema)).toBe(0)
  })
})

describe('the search_path of the connection', () => {
  const texts = {
    'migrations/0001-trap': 'CREATE TABLE :"schema".trap (id int DEFAULT lower(1)); -- not ours',
  }

  test('leads no name of a file to something that others made', async () => {
    const schema = newSchema()
    await fixture.observer.query('CREATE SCHEMA others')
    await fixture.observer.query(
      `CREATE FUNCTION others.lower(int) RETURNS int LANGUAGE sql AS 'SELECT $1'`,
    )
    const database = (await value<string>('SELECT current_database()')).replaceAll('"', '""')
    await fixture.observer.query(`ALTER DATABASE "${database}" SET search_path = others, public`)
    const { default: pg } = await import('pg')
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    try {
      const error = await failure(migrateFiles(fromPg(pool), filesOf('1.0.0', texts), { schema }))
      expect(error).toMatchObject({ code: 'SCHEMA_FAILED', details: { sqlState: '42883' } })
      // The control: on the same connection the name is found.
      await expect(pool.query('SELECT lower(1)')).resolves.toBeDefined()
    } finally {
      await pool.end()
      await fixture.observer.query(`ALTER DATABASE "${database}" RESET search_path`)
    }
  })
})
