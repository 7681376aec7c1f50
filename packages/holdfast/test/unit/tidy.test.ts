/**
 * The house rules, as a test. The first half holds the sources to them; the second half shows that
 * each rule can go red, because a checker that never complains proves nothing.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import { checkDocs } from './tidy/doc-rules.ts'
import { checkImports } from './tidy/import-rules.ts'
import { type Layer, readLayerTable } from './tidy/layer-table.ts'
import { parseSources, readSources } from './tidy/source-tree.ts'
import { checkFiles, checkSql } from './tidy/text-rules.ts'

function read(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

const manifest = readManifest(packageRoot('holdfast'))
const dependencies = new Set(Object.keys(manifest.dependencies ?? {}))
const entries = entriesOf(manifest).map(({ source }) => source.replace('src/', ''))
const layers = readLayerTable(read('../../../../ARCHITECTURE.md'))
const sources = readSources(fileURLToPath(new URL('../../src', import.meta.url)))

describe('the sources', () => {
  test('import only what the layer table of ARCHITECTURE.md allows', () => {
    expect(checkImports(sources, layers, dependencies)).toEqual([])
  })

  test('contain SQL text only where it belongs', () => {
    expect(checkSql(sources)).toEqual([])
  })

  test('are files of readable size with names that say something', () => {
    expect(checkFiles(sources)).toEqual([])
  })

  test('document every name they export to the public', () => {
    expect(checkDocs(sources, entries)).toEqual([])
  })
})

describe('the layer table', () => {
  const table = (row: string): string =>
    `| layer | room | holds | may import |\n|-|-|-|-|\n| 0 | \`core/\` | x | nothing |\n${row}\n\nend`

  test('is read from the document', () => {
    const rows = table('| 1 | `a/ b/` | x | core; never each other |')
    expect(readLayerTable(rows)).toMatchObject([
      { number: 0, rooms: ['core/'], mayImport: new Set() },
      { number: 1, rooms: ['a/', 'b/'], mayImport: new Set(['core']) },
    ])
    const [, , face] = readLayerTable(
      `${rows.replace('\n\nend', '')}\n| 2 | \`index.ts\` | x | core, types of layer 1 |`,
    )
    expect(face).toMatchObject({ mayImportTypesOf: new Set(['a', 'b']) })
  })

  test.each([
    ['is missing', 'no table here'],
    ['has a row without a room', table('| 1 | core | x | nothing |')],
    ['names a room that is not above', table('| 1 | `tx/` | x | corn |')],
  ])('is refused when it %s', (_, markdown) => {
    expect(() => readLayerTable(markdown)).toThrow(/table/)
  })
})

describe('the checks go red', () => {
  const imports = (texts: Record<string, string>, rules: readonly Layer[] = layers): string[] =>
    checkImports(parseSources(texts), rules, new Set(['allowed']))
  const rooms = { 'core/a.ts': '', 'tx/index.ts': '', 'locks/b.ts': '', 'rows/c.ts': '' }

  test.each([
    ['a room that imports its neighbour', 'locks/b.ts', `import { c } from '../rows/c.ts'`],
    ['even if only for types', 'locks/b.ts', `import type { C } from '../rows/c.ts'`],
    ['or in a re-export', 'core/a.ts', `export * from '../tx/index.ts'`],
    ['or at run time', 'core/a.ts', `const tx = await import('../tx/index.ts')`],
    ['or inside a type', 'core/a.ts', `type Tx = import('../tx/index.ts').Tx`],
    ['a third party', 'core/a.ts', `import { Pool } from 'pg'`],
    ['a scoped third party', 'core/a.ts', `import type { X } from '@prisma/client'`],
    ['a file outside', 'core/a.ts', `import { x } from '../../test/x.ts'`],
    ['a missing extension', 'locks/b.ts', `import { a } from '../core/a'`],
    ['a file in no room', 'attic/d.ts', ''],
  ])('imports: %s', (_, path, text) => {
    expect(imports({ ...rooms, [path]: text })).toEqual([expect.stringContaining(`${path}:1 `)])
  })

  test('imports: what is allowed stays green', () => {
    const text = `import { a } from '../core/a.ts'\nimport 'node:fs'\nimport { x } from 'allowed/sub'`
    expect(imports({ ...rooms, 'locks/b.ts': text })).toEqual([])
    const typesOnly = readLayerTable(
      '| layer | room | holds | may import |\n|-|-|-|-|\n' +
        '| 3 | `locks/` | x | nothing |\n| 4 | `observe/` | x | types of layer 3 |',
    )
    const observe = (importing: string): string[] =>
      imports({ 'locks/b.ts': '', 'observe/o.ts': importing }, typesOnly)
    expect(observe(`import { type B } from '../locks/b.ts'`)).toEqual([])
    expect(observe(`import { b } from '../locks/b.ts'`)).toHaveLength(1)
  })

  test.each([
    `'SELECT 1'`,
    `'SELECT true'`,
    '`WITH held AS MATERIALIZED (${inner})`',
    '`SELECT pg_try_advisory_xact_lock(${key})`',
    '`WITH a AS (SELECT x FROM y) TABLE a`',
    '`INSERT INTO ${table} VALUES (1)`',
    `'UPDATE t SET a = 1'`,
    `'DELETE FROM t'`,
    `'BEGIN'`,
    `'BEGIN ISOLATION LEVEL SERIALIZABLE'`,
    `'COMMIT'`,
    `'ROLLBACK;'`,
    '`SAVEPOINT ${name}`',
    `'ROLLBACK TO SAVEPOINT here'`,
    `'LOCK TABLE t IN SHARE MODE'`,
    `'SET LOCAL lock_timeout = 1'`,
  ])('SQL text: %s', (literal) => {
    const text = `query(${literal})`
    expect(checkSql(parseSources({ 'tx/run.ts': text }))).toHaveLength(1)
    expect(checkSql(parseSources({ 'engines/postgres/run.ts': text }))).toEqual([])
  })

  test.each([
    `if (command === 'ROLLBACK') throw error // SELECT 1`,
    `throw new Error('the server answered COMMIT with ROLLBACK')`,
    `const hint = 'Use SELECT … FOR UPDATE, or set a SAVEPOINT before it'`,
    `type Tag = 'BEGIN' | 'COMMIT'`,
  ])('SQL text: prose stays green: %s', (text) => {
    expect(checkSql(parseSources({ 'tx/run.ts': text }))).toEqual([])
  })

  test.each(['core/utils.ts', 'core/lock-manager.ts', 'common/a.ts', 'core/lockKey.ts'])(
    'names: %s',
    (path) => {
      expect(checkFiles(parseSources({ [path]: '' }))).toHaveLength(1)
    },
  )

  test('size: a file that is too long', () => {
    expect(checkFiles(parseSources({ 'core/a.ts': '\n'.repeat(400) }))).toEqual([])
    expect(checkFiles(parseSources({ 'core/a.ts': '\n'.repeat(401) }))).toHaveLength(1)
  })

  test.each([
    ['a function', 'export function bare(): void {}'],
    ['a constant', 'export const bare = 1'],
    ['a re-export', `export { bare } from './deep.ts'`],
    ['a renamed re-export', `export { other as bare } from './deep.ts'`],
    ['an import that is exported', `import { bare } from './deep.ts'\nexport { bare }`],
    ['everything of a file', `export * from './deep.ts'`],
    ['a local name', `const bare = 1\nexport { bare }`],
  ])('docs: %s', (_, text) => {
    const deep = 'export const bare = 1, other = 2\n/** Good. */ export const told = 1'
    const tree = parseSources({ 'index.ts': text, 'deep.ts': deep })
    expect(checkDocs(tree, ['index.ts'])).toContainEqual(
      expect.stringContaining('exports bare without a JSDoc comment'),
    )
  })

  test('docs: what is told stays green, and a missing entry point does not', () => {
    const text = `export { told } from './deep.ts'\n/** All. */\nexport * as deep from './deep.ts'`
    const tree = parseSources({ 'index.ts': text, 'deep.ts': '/** Good. */ export const told = 1' })
    expect(checkDocs(tree, ['index.ts'])).toEqual([])
    expect(checkDocs(tree, ['gone.ts'])).toHaveLength(1)
  })
})
