/**
 * Every kind of drift, made on a real server: it is found under its code, it is the only finding,
 * and what the finding says to do puts it right.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { Catalogue } from '../../../src/schema/catalogue.ts'
import type { Finding } from '../../../src/schema/finding.ts'
import { inspectFiles } from '../../../src/schema/inspect.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import {
  catalogueOf,
  filesOf,
  newSchema,
  notes,
  notes2,
  noteTexts,
  quoted,
} from '../../support/schema-fixture.ts'
import { drifts } from './drifts.ts'

const fixture = pgFixture()
let expected: Catalogue

beforeAll(async () => {
  const schema = newSchema()
  await migrateFiles(fromPg(fixture.pool), notes, { schema })
  expected = await catalogueOf(fromPg(fixture.pool), schema)
})

const look = (schema: string, files = notes): Promise<readonly Finding[]> =>
  inspectFiles(fromPg(fixture.pool), files, expected, { schema })

async function installed(files = notes): Promise<string> {
  const schema = newSchema()
  await migrateFiles(fromPg(fixture.pool), files, { schema })
  return schema
}

/** Does what a finding says: its SQL, the repair, or both. */
async function follow(schema: string, { fix }: Finding): Promise<void> {
  const sql = fix.endsWith(';') ? fix : (/^(.*;) then run/s.exec(fix)?.[1] ?? '')
  if (sql !== '') await fixture.observer.query(`${sql} RESET search_path`)
  if (!fix.includes('--repair')) return expect(sql).not.toBe('')
  await migrateFiles(fromPg(fixture.pool), notes, { schema, repair: true })
}

describe('found and put right:', () => {
  test.each(Object.entries(drifts))('%s', async (_, [drift, code, object]) => {
    const schema = await installed()
    // The control: before it there is nothing to find.
    expect(await look(schema)).toEqual([])
    const name = quoted(schema)
    // As an escape string: a hostile database may take backslashes for escapes in any other.
    const inText = name.replaceAll("'", "''").replaceAll('\\', '\\\\')
    await fixture.observer.query(
      drift.replaceAll(/('?)\bS\b/g, (_all, quote: string) =>
        quote === '' ? name : `E'${inText}`,
      ),
    )
    const found = await look(schema)
    expect(found.map((finding) => ({ code: finding.code, object: finding.object }))).toContainEqual(
      { code, object },
    )
    for (const finding of found) await follow(schema, finding)
    expect(await look(schema)).toEqual([])
    expect(found.map(({ code: other }) => other)).toEqual([code])
  })
})

describe('found, and not to be put right by SQL:', () => {
  test('nothing installed', async () => {
    expect(await look(newSchema())).toMatchObject([{ code: 'schema-missing' }])
    const empty = newSchema()
    await fixture.observer.query(`CREATE SCHEMA ${quoted(empty)}`)
    expect(await look(empty)).toMatchObject([
      { code: 'schema-missing', fix: expect.stringContaining('holdfast migrate') },
    ])
  })

  test('a missing table, without all that belongs to it', async () => {
    const schema = await installed()
    await fixture.observer.query(`DROP TABLE ${quoted(schema)}.log`)
    expect(await look(schema)).toMatchObject([
      { code: 'table-missing', object: 'table log', fix: expect.stringContaining('backup') },
    ])
  })

  test('a changed function of a migration, which no repair creates again', async () => {
    const schema = await installed()
    await fixture.observer.query(`ALTER FUNCTION ${quoted(schema)}.refuse RESET search_path`)
    const [finding] = await look(schema)
    expect(finding).toMatchObject({ code: 'function-search-path', object: 'function refuse()' })
    expect(finding?.what).toContain(`expected ${quoted(schema)}, pg_temp.`)
    expect(finding?.fix).toContain('migrations/0001-note')
  })

  test('a migration and functions that were not applied, and nothing about the tables', async () => {
    const schema = await installed()
    const found = await look(schema, notes2)
    expect(found.map(({ code, object }) => `${code} ${object}`)).toEqual([
      'file-missing migrations/0002-colour',
      'file-missing app/add_note',
      'file-leftover operator/tidy',
    ])
    expect(found[0]?.fix).toBe('Run `holdfast migrate`.')
  })

  test('a migration and functions of a later version', async () => {
    const schema = await installed(notes2)
    const found = await look(schema)
    expect(found.map(({ code, object }) => `${code} ${object}`)).toEqual([
      'file-missing operator/tidy',
      'file-newer migrations/0002-colour',
      'file-newer app/add_note',
    ])
  })

  test('a migration with another text, and still all the rest', async () => {
    const schema = await installed()
    await fixture.observer.query(`ALTER TABLE ${quoted(schema)}.note ADD more int`)
    const edited = filesOf('1.0.0', {
      ...noteTexts,
      'migrations/0001-note': `${noteTexts['migrations/0001-note']} `,
    })
    expect((await look(schema, edited)).map(({ code }) => code)).toEqual([
      'file-changed',
      'column-extra',
    ])
  })
})

describe('left alone', () => {
  test('partitions, present, detached and to come; a further index; tuned storage', async () => {
    const schema = await installed()
    const s = quoted(schema)
    await fixture.observer.query(
      `
      CREATE TABLE ${s}.log_202601 PARTITION OF ${s}.log FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
      CREATE TABLE ${s}.log_202602 PARTITION OF ${s}.log FOR VALUES FROM ('2026-02-01') TO ('2026-03-01');
      CREATE INDEX ON ${s}.log_202601 (at);
      ALTER TABLE ${s}.log DETACH PARTITION ${s}.log_202602;
      CREATE INDEX ON ${s}.note (body);
      ALTER TABLE ${s}.note SET (fillfactor = 70);
      VACUUM`.replace(';\n      VACUUM', ''),
    )
    expect(await look(schema)).toEqual([])
    // The control: a name that only resembles a month of ours.
    await fixture.observer.query(`CREATE TABLE ${s}.logs_202602 (); CREATE TABLE ${s}.log_2026 ()`)
    expect((await look(schema)).map(({ object }) => object)).toEqual([
      'table log_2026',
      'table logs_202602',
    ])
  })

  test('the wording of definitions, on a server that the catalogue does not know', async () => {
    const schema = await installed()
    const s = quoted(schema)
    const unknown = { ...expected, versions: [] }
    const lookFrom = (): Promise<readonly Finding[]> =>
      inspectFiles(fromPg(fixture.pool), notes, unknown, { schema })
    expect(await lookFrom()).toEqual([])
    await fixture.observer.query(`ALTER TABLE ${s}.note DROP CONSTRAINT note_state`)
    expect(await lookFrom()).toMatchObject([{ code: 'constraint-missing' }])
  })

  test('the database: looking changes nothing', async () => {
    const schema = await installed()
    const driver = fromPg(fixture.pool)
    const readOnly: typeof driver = {
      ...driver,
      transaction: (body, settings) =>
        driver.transaction(async (transaction, opened) => {
          await transaction.command('SET TRANSACTION READ ONLY')
          return body(transaction, opened)
        }, settings),
    }
    expect(await inspectFiles(readOnly, notes, expected, { schema })).toEqual([])
  })

  test('settings of the connection', async () => {
    const schema = await installed()
    const { default: pg } = await import('pg')
    const options = '-c quote_all_identifiers=on -c timezone=Asia/Tokyo -c search_path=pg_catalog'
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1, options })
    try {
      expect(await inspectFiles(fromPg(pool), notes, expected, { schema })).toEqual([])
    } finally {
      await pool.end()
    }
  })
})
