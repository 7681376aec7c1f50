/** The script for teams that apply migrations themselves. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { drizzle } from 'drizzle-orm/node-postgres'
import { migrate as migrateDrizzle } from 'drizzle-orm/node-postgres/migrator'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { inspectFiles } from '../../../src/schema/inspect.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { planFiles } from '../../../src/schema/plan.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { catalogueOf, newSchema, notes, notes2, quoted } from '../../support/schema-fixture.ts'

const fixture = pgFixture()
const run = promisify(execFile)
const hasPsql = await run('psql', ['--version']).then(
  () => true,
  () => false,
)

async function withPsql(script: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-plan-'))
  try {
    const file = join(folder, 'plan.sql')
    await writeFile(file, script)
    const args = ['--no-psqlrc', '--quiet', '--set', 'ON_ERROR_STOP=1', '--file', file]
    const { stderr } = await run('psql', [...args, fixture.database.directUrl])
    return stderr
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** What a tool does that sends the whole file. */
async function asOneText(script: string): Promise<string> {
  const client = await fixture.observer.connect()
  try {
    await client.query(script)
  } finally {
    await client.query('ROLLBACK')
    client.release()
  }
  return ''
}

const ways = { 'as one text': asOneText, ...(hasPsql ? { 'with psql': withPsql } : {}) }

describe.each(Object.entries(ways))('a plan, run %s,', (_, apply) => {
  const driver = (): ReturnType<typeof fromPg> => fromPg(fixture.pool)

  test('makes what migrate makes', async () => {
    const [planned, migrated] = [newSchema(), newSchema()]
    expect(await apply(planFiles(notes, { schema: planned }))).toBe('')
    await migrateFiles(driver(), notes, { schema: migrated })
    const expected = await catalogueOf(driver(), migrated)
    expect(await inspectFiles(driver(), notes, expected, { schema: planned })).toEqual([])
    expect(await migrateFiles(driver(), notes, { schema: planned })).toMatchObject({ applied: [] })
  })

  test('goes on from where the database is, after either', async () => {
    const schema = newSchema()
    await migrateFiles(driver(), notes, { schema })
    await apply(planFiles(notes2, { schema, from: '0001-note' }))
    expect(await migrateFiles(driver(), notes2, { schema })).toMatchObject({ applied: [] })
    // The functions and views of the same migration, once more.
    await apply(planFiles(notes2, { schema, from: 'migrations/0002-colour' }))
  })

  test('stops at a database that is elsewhere, and changes nothing', async () => {
    const schema = newSchema()
    const elsewhere = /planned for another state/
    await expect(apply(planFiles(notes2, { schema, from: '0001' }))).rejects.toThrow(elsewhere)
    await apply(planFiles(notes, { schema }))
    await expect(apply(planFiles(notes, { schema }))).rejects.toThrow(elsewhere)
    await expect(apply(planFiles(notes2, { schema, from: '0002' }))).rejects.toThrow(elsewhere)
    expect(await migrateFiles(driver(), notes, { schema })).toMatchObject({ applied: [] })
  })

  test('stops at a schema that others made', async () => {
    const schema = newSchema()
    await fixture.observer.query(`CREATE SCHEMA ${quoted(schema)} CREATE TABLE theirs ()`)
    await expect(apply(planFiles(notes, { schema }))).rejects.toThrow(/not made by Holdfast/)
  })
})

test('inside the transaction of a tool, a plan leaves its settings as they were', async () => {
  const schema = newSchema()
  const client = await fixture.observer.connect()
  const settings = async (): Promise<unknown> =>
    (
      await client.query(
        `SELECT current_setting('search_path') AS path, current_setting('check_function_bodies') AS bodies`,
      )
    ).rows[0]
  try {
    await client.query('BEGIN')
    await client.query('SET LOCAL search_path = "a ""b", public')
    const before = await settings()
    const script = planFiles(notes, { schema, transaction: false })
    expect(script).not.toMatch(/^(BEGIN|COMMIT);/m)
    await client.query(script)
    expect(await settings()).toEqual(before)
    await client.query('COMMIT')
  } finally {
    client.release()
  }
  expect(await migrateFiles(fromPg(fixture.pool), notes, { schema })).toMatchObject({ applied: [] })
})

/** As drizzle-kit leaves it: a journal, and a file that it names. */
async function withDrizzle(script: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-drizzle-'))
  const tag = '0000_holdfast'
  const entries = [{ idx: 0, version: '7', when: 1, tag, breakpoints: true }]
  try {
    await mkdir(join(folder, 'meta'))
    await writeFile(join(folder, `${tag}.sql`), script)
    const journal = { version: '7', dialect: 'postgresql', entries }
    await writeFile(join(folder, 'meta/_journal.json'), JSON.stringify(journal))
    // A schema for each, because Drizzle skips what is older than its last migration.
    const migrationsSchema = newSchema()
    await migrateDrizzle(drizzle(fixture.pool), { migrationsFolder: folder, migrationsSchema })
  } finally {
    await rm(folder, { recursive: true })
  }
}

test("Drizzle's migrator applies it as a migration of its own, or undoes all of it", async () => {
  const [made, occupied] = [newSchema(), newSchema()]
  await withDrizzle(planFiles(notes, { schema: made, transaction: false }))
  const driver = fromPg(fixture.pool)
  expect(await migrateFiles(driver, notes, { schema: made })).toMatchObject({ applied: [] })
  await fixture.observer.query(`CREATE SCHEMA ${quoted(occupied)} CREATE TABLE theirs ()`)
  const refused = withDrizzle(planFiles(notes, { schema: occupied, transaction: false }))
  await expect(refused).rejects.toMatchObject({
    cause: { message: expect.stringMatching(/not made by Holdfast/) },
  })
})

test('a name that looks like SQL stays a name', async () => {
  const schema = `a"; DROP TABLE x; --\n$$ $body1$ :"b" 'c`
  await asOneText(planFiles(notes, { schema }))
  if (hasPsql) await withPsql(planFiles(notes, { schema, from: '0001' }))
  const { rows } = await fixture.observer.query(`SELECT ${quoted(schema)}.add_note(1, 'x') AS x`)
  expect(rows).toEqual([{ x: 'x;' }])
})

test.each(['0003', 'note', ''])('from %j is refused', (from) => {
  expect(() => planFiles(notes, { from })).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      details: expect.objectContaining({ option: 'from' }),
    }),
  )
})
