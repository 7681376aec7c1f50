import { describe, expect, test } from 'vitest'
import { commonCatalogue } from '../../../../../scripts/common-catalogue.ts'
import type { CatalogueObject, ObjectKind } from '../../../src/engines/postgres/schema/catalogue.ts'
import { differences, expectedOn } from '../../../src/schema/catalogue.ts'
import { isNewer } from '../../../src/schema/version.ts'

const object = (
  kind: ObjectKind,
  name: string,
  facts: Record<string, string> = {},
  of = '',
): CatalogueObject => ({ kind, of, name, facts })

describe('one catalogue of several versions', () => {
  const on = (major: number, definition: string, columns = 'a') => ({
    major,
    objects: [object('view', 'v', { columns, definition }), object('table', 't')],
  })

  test('keeps apart what they say in their own words', () => {
    const seen = [on(15, 'one'), on(16, 'two')]
    const catalogue = commonCatalogue(seen)
    expect(catalogue.objects[0]?.facts).toEqual({ columns: 'a' })
    for (const { major, objects } of seen) expect(expectedOn(catalogue, major)).toEqual(objects)
    expect(expectedOn(catalogue, 99)[0]?.facts).toEqual({ columns: 'a' })
  })

  test('and of a version it does not know it expects no wording, though all agree', () => {
    const catalogue = commonCatalogue([on(15, 'one'), on(16, 'one')])
    expect(expectedOn(catalogue, 16)[0]?.facts).toEqual({ columns: 'a', definition: 'one' })
    expect(expectedOn(catalogue, 99)[0]?.facts).toEqual({ columns: 'a' })
  })

  test('does not exist if they have other objects', () => {
    const other = { major: 16, objects: [object('table', 't')] }
    expect(() => commonCatalogue([on(15, 'one'), other])).toThrow(/16 has other objects/)
  })
})

describe('differences', () => {
  const table = object('table', 't')
  const column = object('column', 'c', { type: 'text' }, 't')
  const names = (expected: CatalogueObject[], found: CatalogueObject[]): string[] =>
    differences(expected, found, true).map(({ object: { kind, name } }) => `${kind} ${name}`)

  test('of a whole table are one', () => {
    expect(names([table, column], [])).toEqual(['table t'])
    expect(names([], [table, column])).toEqual(['table t'])
    expect(names([table, column], [table])).toEqual(['column c'])
  })

  test('do not count a further index unless it is unique', () => {
    const index = object('index', 'i', {}, 't')
    expect(names([table], [table, index])).toEqual([])
    expect(names([table], [table, { ...index, facts: { unique: 'yes' } }])).toEqual(['index i'])
    expect(names([table, index], [table])).toEqual(['index i'])
  })

  test('name the facts', () => {
    const found = { ...column, facts: { type: 'int', notNull: 'yes' } }
    expect(differences([column], [found], true)[0]?.changed).toEqual(['type', 'notNull'])
  })
})

test.each([
  ['1.10.0', '1.9.0', true],
  ['1.9.0', '1.10.0', false],
  ['2.0.0', '1.99.99', true],
  ['1.0.0', '1.0.0', false],
  ['1.0.0', '1.0.0-beta.1', false],
  ['1.0.1-beta.1', '1.0.0', true],
])('%s is newer than %s: %s', (version, than, newer) => {
  expect(isNewer(version, than)).toBe(newer)
})
