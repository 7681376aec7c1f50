/** Rules for the files in sql/, so that the runner can rely on them. */
import { describe, expect, test } from 'vitest'
import { filesDigest } from '../../../../../scripts/common-catalogue.ts'
import { objectsIn, statementsOf } from '../../../src/engines/postgres/schema/script.ts'
import { expectedOn, ownCatalogue } from '../../../src/schema/catalogue.ts'
import { appObjects } from '../../../src/schema/grants.ts'
import { inFolder, ownFiles, type SchemaFile } from '../../../src/schema/schema-files.ts'

const files = ownFiles()
const all = [...files.migrations, ...files.repeatables]
const created = (file: SchemaFile): string[] => objectsIn(file.text).map(({ name }) => name)

describe('the files in sql/', () => {
  test('are there, and migrations are numbered without a gap', () => {
    const numbers = files.migrations.map(
      ({ name }) => /^migrations\/(\d{4})-[a-z0-9-]+$/.exec(name)?.[1],
    )
    expect(numbers.length).toBeGreaterThan(0)
    expect(numbers).toEqual(numbers.map((_, at) => String(at + 1).padStart(4, '0')))
  })

  test('no migration drops what functions of the version before may be calling', () => {
    const inner = new Set(
      inFolder(files, 'internal').map(({ name }) => name.split('/')[1] as string),
    )
    expect(inner.size).toBeGreaterThan(10)
    const dropped = files.migrations.flatMap(({ text }) =>
      [...text.matchAll(/DROP (?:FUNCTION|ROUTINE)[^;]*?:"schema"\.(\w+)/g)].map(
        ([, name]) => name,
      ),
    )
    expect(dropped.filter((name) => inner.has(name as string))).toEqual([])
  })

  test.each(all.map((file) => [file.name, file] as const))(
    '%s ends with a semicolon, is text, has no transaction of its own',
    (_, file) => {
      const statements = statementsOf(file.text)
      expect(file.text.trimEnd().endsWith(';')).toBe(true)
      expect(file.text).not.toMatch(/\t|\r|[^\S\n]\n/)
      for (const statement of statements) {
        expect(statement).not.toMatch(/^(BEGIN|COMMIT|ROLLBACK|SET (?!LOCAL)|DROP SCHEMA)\b/i)
        expect(statement).not.toMatch(/\bCONCURRENTLY\b/i)
      }
    },
  )

  test.each(files.repeatables.map((file) => [file.name, file] as const))(
    '%s creates the one object it is named after, again and again',
    (name, file) => {
      expect(created(file)).toEqual([name.split('/')[1]])
      expect(file.text).toMatch(/CREATE OR REPLACE (FUNCTION|VIEW) :"schema"\./)
    },
  )

  test('no function has a name that another has: GRANT names it without arguments', () => {
    const names = all.flatMap(created)
    expect(new Set(names).size).toBe(names.length)
  })

  test('are those the catalogue was made of; if not: npm run schema:snapshot', () => {
    expect(ownCatalogue()).toMatchObject({ files: filesDigest(files) })
  })

  test("what applications call runs with its owner's rights and finds only our tables", () => {
    const { functions } = appObjects(files)
    const described = expectedOn(ownCatalogue(), ownCatalogue().versions[0] as number)
    expect(functions).toHaveLength(inFolder(files, 'app').length)
    // Reads one view that applications may read, by full names; changing rights would be most of its cost.
    const asCaller = new Set(['here'])
    for (const name of functions.filter((each) => !asCaller.has(each))) {
      const found = described.filter(
        (object) => object.kind === 'function' && object.name.startsWith(`${name}(`),
      )
      expect(found).toMatchObject([
        { facts: { securityDefiner: 'yes', searchPath: ':"schema", pg_temp' } },
      ])
    }
  })
})
