/** Installing, inspecting and upgrading through every client: one statement at a time. */
import { sample } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { inspectFiles } from '../../../src/schema/inspect.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { testDatabase } from '../../support/database.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { catalogueOf, newSchema, notes, notes2 } from '../../support/schema-fixture.ts'

let url: string
let observer: pg.Pool

beforeAll(async () => {
  const database = await testDatabase()
  url = database.url
  observer = new pg.Pool({ connectionString: database.directUrl, max: 1 })
})
afterAll(async () => observer.end())

describe.each(sample(Object.entries(everyClient)))('%s', (_, open) => {
  let client: OpenClient
  beforeAll(async () => {
    client = await open(url)
  })
  afterAll(async () => client.end())

  test('installs, finds nothing to do, upgrades, inspects; and prints nothing', async () => {
    const printed = vi.spyOn(console, 'log')
    const schema = newSchema()
    const { driver } = client
    const first = await migrateFiles(driver, notes, { schema })
    expect(first.applied).toHaveLength(notes.migrations.length + notes.repeatables.length)
    const expected = await catalogueOf(fromPg(observer), schema)
    expect(await inspectFiles(driver, notes, expected, { schema })).toEqual([])
    expect(await migrateFiles(driver, notes, { schema })).toMatchObject({ applied: [] })
    expect(await migrateFiles(driver, notes2, { schema })).toMatchObject({
      applied: expect.arrayContaining(['migrations/0002-colour']),
      leftover: ['operator/tidy'],
    })
    expect(await inspectFiles(driver, notes, expected, { schema, role: 'nobody' })).toMatchObject([
      { code: 'file-newer' },
      { code: 'file-newer' },
      { code: 'role-missing' },
    ])
    expect(printed).not.toHaveBeenCalled()
  })

  test('a failure has its code and leaves nothing', async () => {
    const schema = newSchema()
    const text = 'CREATE TABLE :"schema".a (); CREATE TABLE :"schema".a ();'
    const broken = { ...notes, migrations: [{ name: 'migrations/0001-a', text, checksum: '' }] }
    await expect(migrateFiles(client.driver, broken, { schema })).rejects.toMatchObject({
      code: 'SCHEMA_FAILED',
      details: { file: 'migrations/0001-a', sqlState: '42P07' },
    })
    const { rowCount } = await observer.query('SELECT FROM pg_namespace WHERE nspname = $1', [
      schema,
    ])
    expect(rowCount).toBe(0)
  })
})
