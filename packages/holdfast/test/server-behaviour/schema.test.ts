/** The files of this version, installed on every version of PostgreSQL. */
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { describeSchema, expectedOn, ownCatalogue } from '../../src/schema/catalogue.ts'
import { appObjects } from '../../src/schema/grants.ts'
import { grants, inspect, migrate } from '../../src/schema/index.ts'
import { ownFiles } from '../../src/schema/schema-files.ts'
import { bindSchema, statementsOf } from '../../src/engines/postgres/schema/script.ts'
import { onEveryVersion } from './support/on-every-version.ts'

const schemas = ['holdfast', `we"ird $$ 'schema`]
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

onEveryVersion((place) => {
  describe.each(schemas)('a fresh installation as %s', (schema) => {
    let pool: Pool
    beforeAll(async () => {
      pool = new Pool({ connectionString: await place.server().createDatabase(), max: 2 })
      pool.on('error', () => undefined)
      await migrate(fromPg(pool), { schema })
    })
    afterAll(() => pool.end())

    test('is what the catalogue says; if not, run npm run schema:snapshot', async () => {
      const driver = fromPg(pool)
      const { major, objects } = await driver.transaction(
        (transaction) => describeSchema(transaction, schema),
        { scopes: [] },
      )
      expect(objects).toEqual(expectedOn(ownCatalogue(), major))
      expect(ownCatalogue().versions).toContain(major)
      await pool.query(`DROP ROLE IF EXISTS app; CREATE ROLE app`)
      await pool.query(grants({ schema, role: 'app' }))
      expect(await inspect(driver, { schema, role: 'app' })).toEqual([])
      await pool.query('DROP OWNED BY app')
    })

    test('has functions that PostgreSQL accepts once all of them exist', async () => {
      for (const { text } of ownFiles().repeatables) {
        for (const statement of statementsOf(bindSchema(text, schema))) {
          if (!/^(--[^\n]*\n)*CREATE/.test(statement)) continue
          await expect(pool.query(statement)).resolves.toBeDefined()
        }
      }
    })

    test('lets the role of an application read every view', async () => {
      await pool.query(`DROP ROLE IF EXISTS reader; CREATE ROLE reader`)
      await pool.query(grants({ schema, role: 'reader' }))
      for (const view of appObjects(ownFiles()).views) {
        const read = `SELECT * FROM ${quoted(schema)}.${quoted(view)} LIMIT 1`
        await expect(
          pool.query(`BEGIN; SET LOCAL ROLE reader; ${read}; COMMIT`),
        ).resolves.toBeDefined()
      }
      await pool.query('DROP OWNED BY reader')
    })
  })
})
