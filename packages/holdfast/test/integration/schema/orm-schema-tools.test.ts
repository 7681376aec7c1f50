/** What the schema tools of ORMs would do to our tables in a database that they share. */
import { createDatabase } from '@holdfast/testkit'
import { defineEntity, MikroORM } from '@mikro-orm/postgresql'
import { DataSource, EntitySchema } from 'typeorm'
import { expect, inject, test } from 'vitest'

async function installedDatabase(): Promise<string> {
  return await createDatabase(inject('postgresUrl'), 'beside', inject('installedDatabase'))
}

/** The statements of MikroORM's `schema:update`. */
async function updateOfMikroOrm(ignoreSchema: string[]): Promise<string> {
  const entity = defineEntity({
    name: 'Thing',
    properties: (p) => ({ id: p.integer().primary() }),
  })
  const orm = new MikroORM({
    clientUrl: await installedDatabase(),
    entities: [entity],
    schemaGenerator: { ignoreSchema },
  })
  try {
    return await orm.schema.getUpdateSchemaSQL()
  } finally {
    await orm.close(true)
  }
}

test('MikroORM would drop them, unless the schema is ignored', async () => {
  expect(await updateOfMikroOrm([])).toMatch(/drop .*"holdfast"/)
  const update = await updateOfMikroOrm(['holdfast'])
  expect(update).toContain('create table "thing"')
  expect(update).not.toContain('holdfast')
})

test('TypeORM leaves them alone', async () => {
  const entity = new EntitySchema({
    name: 'thing',
    columns: { id: { type: 'int', primary: true } },
  })
  const source = new DataSource({
    type: 'postgres',
    url: await installedDatabase(),
    entities: [entity],
  })
  await source.initialize()
  try {
    const { upQueries } = await source.driver.createSchemaBuilder().log()
    expect(upQueries.map(({ query }) => query)).toEqual([
      expect.stringMatching(/^CREATE TABLE "thing"/),
    ])
  } finally {
    await source.destroy()
  }
})
