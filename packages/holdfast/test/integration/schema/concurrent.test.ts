/** Many installers at once: one does the work, the others find it done, none fails. */
import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { applySteps, installedIn, migrateFiles } from '../../../src/schema/migrate.ts'
import type { SchemaFiles } from '../../../src/schema/schema-files.ts'
import { pendingOf, stepsFor } from '../../../src/schema/steps.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import {
  filesOf,
  newSchema,
  notes,
  notes2,
  noteTexts,
  quoted,
} from '../../support/schema-fixture.ts'

const fixture = pgFixture()
const installers = 20

/** Lets all of them look at the database before the first of them may act on it. */
async function together(
  files: SchemaFiles,
  schema: string,
  locked: boolean,
): Promise<PromiseSettledResult<unknown>[]> {
  const driver = fromPg(fixture.pool)
  const ready = barrier(installers)
  const one = async (): Promise<unknown> => {
    if (!locked) {
      return driver.transaction(
        async (transaction) => {
          const pending = pendingOf(files, await installedIn(transaction, schema))
          await ready()
          await applySteps(transaction, schema, stepsFor(pending, schema, files.version))
        },
        { scopes: [], isolation: 'read committed' },
      )
    }
    // The same moment, with the real thing: right before the lock is asked for.
    const held: typeof driver = {
      ...driver,
      transaction: (body, settings) =>
        driver.transaction(async (transaction, opened) => {
          const command = async (text: string): Promise<void> => {
            if (text.includes('pg_advisory_xact_lock')) await ready()
            await transaction.command(text)
          }
          return body({ ...transaction, command }, opened)
        }, settings),
    }
    return migrateFiles(held, files, { schema })
  }
  return Promise.allSettled(Array.from({ length: installers }, one))
}

const rejected = (results: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
const applied = (results: readonly PromiseSettledResult<unknown>[]): number =>
  results.filter(
    (result) =>
      result.status === 'fulfilled' && (result.value as { applied: string[] }).applied.length > 0,
  ).length

describe(`${installers} installers`, () => {
  test('of a new schema', async () => {
    const results = await together(notes, newSchema(), true)
    expect(rejected(results)).toEqual([])
    expect(applied(results)).toBe(1)
  })

  test('of an upgrade', async () => {
    const schema = newSchema()
    await migrateFiles(fromPg(fixture.pool), notes, { schema })
    const results = await together(notes2, schema, true)
    expect(rejected(results)).toEqual([])
    expect(applied(results)).toBe(1)
  })

  test('of an upgrade that locks the very table they all look at', async () => {
    const schema = newSchema()
    await migrateFiles(fromPg(fixture.pool), notes, { schema })
    const upgrade = filesOf('2.0.0', {
      ...noteTexts,
      'migrations/0002-records': 'ALTER TABLE :"schema".installed_file ADD COLUMN remark text;',
    })
    const results = await together(upgrade, schema, true)
    expect(rejected(results)).toEqual([])
    expect(applied(results)).toBe(1)
    // The control: had they looked inside of the transaction they wait in, they would be in its way.
    const [worker, waiter] = await Promise.all([fixture.pool.connect(), fixture.pool.connect()])
    try {
      await waiter.query(`BEGIN; TABLE ${quoted(schema)}.installed_file`)
      const alter = `ALTER TABLE ${quoted(schema)}.installed_file DROP COLUMN remark`
      await expect(
        worker.query(`BEGIN; SET LOCAL lock_timeout = '20ms'; ${alter}`),
      ).rejects.toMatchObject({ code: '55P03' })
    } finally {
      for (const client of [worker, waiter]) {
        await client.query('ROLLBACK')
        client.release()
      }
    }
  })

  test('of schemas of their own do not wait for each other', async () => {
    const schemas = Array.from({ length: installers }, newSchema)
    const driver = fromPg(fixture.pool)
    const results = await Promise.all(
      schemas.map((schema) => migrateFiles(driver, notes, { schema })),
    )
    expect(results.every((result) => result.applied.length > 0)).toBe(true)
  })

  test('without the lock all but one fail: the control', async () => {
    expect(rejected(await together(notes, newSchema(), false))).toHaveLength(installers - 1)
    const schema = newSchema()
    await migrateFiles(fromPg(fixture.pool), notes, { schema })
    expect(rejected(await together(notes2, schema, false))).toHaveLength(installers - 1)
  })
})
