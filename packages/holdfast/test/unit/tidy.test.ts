/**
 * The house rules, as a test. The first half holds the sources to them; the second half shows that
 * each rule can go red, because a checker that never complains proves nothing.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import {
  entriesOf,
  packageRoot,
  packages,
  readManifest,
} from '../../../../scripts/package/entries.ts'
import { checkCircles } from './tidy/circle-rules.ts'
import { checkDocs } from './tidy/doc-rules.ts'
import { checkImports } from './tidy/import-rules.ts'
import { checkMap, checkReadme, checkRecords, readRecords } from './tidy/map-rules.ts'
import { type Layer, readLayerTable } from './tidy/layer-table.ts'
import { parseSources, readSources } from './tidy/source-tree.ts'
import { checkFiles, checkFolders, checkSql } from './tidy/text-rules.ts'

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

describe('of every package, the sources', () => {
  const folders = [...packages.map(packageRoot), new URL('../../../../testkit/', import.meta.url)]
  const trees = folders.map((folder) => {
    const path = fileURLToPath(new URL('src', folder))
    return [path.split(/[\\/]/).at(-2), readSources(path, /\.tsx?$/)] as const
  })

  test.each(trees)('of %s import each other in no circle', (_, tree) => {
    expect(checkCircles(tree)).toEqual([])
  })

  test.each(trees)('of %s are in folders of at most twenty', (_, tree) => {
    expect(checkFolders(tree.keys())).toEqual([])
  })
})

test('README.md begins with the bug and the fix, and is short', () => {
  expect(checkReadme(read('../../../../README.md'))).toEqual([])
})

describe('the map', () => {
  test('is read in ten minutes', () => {
    expect(checkMap(read('../../../../ARCHITECTURE.md'))).toEqual([])
  })

  test('has a record of every decision', () => {
    expect(
      checkRecords(readRecords(new URL('../../../../docs/decisions/', import.meta.url))),
    ).toEqual([])
  })
})

describe('the layer table', () => {
  const table = (row: string): string =>
    `| layer | folder | holds | may import |\n|-|-|-|-|\n| 0 | \`core/\` | x | nothing |\n${row}\n\nend`

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
      '| layer | folder | holds | may import |\n|-|-|-|-|\n' +
        '| 3 | `locks/` | x | nothing |\n| 4 | `observe/` | x | types of layer 3 |',
    )
    const observe = (importing: string): string[] =>
      imports({ 'locks/b.ts': '', 'observe/o.ts': importing }, typesOnly)
    expect(observe(`import { type B } from '../locks/b.ts'`)).toEqual([])
    expect(observe(`import { b } from '../locks/b.ts'`)).toHaveLength(1)
  })

  test.each([
    ['of two', { 'a.ts': `import { b } from './b.ts'`, 'b.ts': `import { a } from './a.ts'` }],
    [
      'of types',
      { 'a.ts': `import type { B } from './b.ts'`, 'b.ts': `import { a } from './a.ts'` },
    ],
    [
      'of three, one by a re-export and one at run time',
      {
        'a.ts': `export * from './b.ts'`,
        'b.ts': `import { c } from './c.ts'`,
        'c.ts': `const { a } = await import('./a.ts')`,
      },
    ],
    ['inside a type', { 'a.ts': `type B = import('./b.ts').B`, 'b.ts': `import './a.ts'` }],
    ['of one', { 'a.ts': `import { a } from './a.ts'` }],
  ])('circles: one %s', (_, texts) => {
    const files = Object.keys(texts)
    const way = [...files, 'a.ts'].join(' → ')
    expect(checkCircles(parseSources(texts))).toEqual([`a.ts:1 is in a circle of imports: ${way}`])
  })

  test('circles: two ways to the same file are none, and who imports into one is not in it', () => {
    const diamond = {
      'a.ts': `import './b.ts'\nimport './c.ts'`,
      'b.ts': `import './d.ts'`,
      'c.ts': `import './d.ts'`,
      'd.ts': '',
    }
    expect(checkCircles(parseSources(diamond))).toEqual([])
    const circle = { ...diamond, 'd.ts': `import './e.ts'`, 'e.ts': `import './d.ts'` }
    expect(checkCircles(parseSources(circle))).toEqual([
      'd.ts:1 is in a circle of imports: d.ts → e.ts → d.ts',
    ])
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

  test('size: a folder that has too many files, whatever is in the folders below', () => {
    const files = (count: number): string[] =>
      Array.from({ length: count }, (_, at) => `core/${at}.ts`)
    expect(checkFolders([...files(20), 'core/locks/a.ts', 'index.ts'])).toEqual([])
    expect(checkFolders(files(21))).toEqual(['core/ has 21 files, more than 20'])
  })

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

  test('the map: one that is too long, or explains too many words', () => {
    const words = (count: number): string =>
      `# A\n\n## Words\n\n| word | meaning |\n|-|-|\n${'| **a**, **b** | x |\n'.repeat(count)}`
    expect(checkMap(words(20))).toEqual([])
    expect(checkMap(words(21))).toEqual([expect.stringContaining('42 words')])
    expect(checkMap('\n'.repeat(250))).toEqual([])
    expect(checkMap('\n'.repeat(251))).toEqual([expect.stringContaining('251 lines')])
  })

  test('README: one that is long, or shows the fix on the second screen', () => {
    const page = (between: number): string =>
      `# A\n\n\`\`\`ts\nx\n\`\`\`\n${'\n'.repeat(between)}\`\`\`diff\nx\n\`\`\`\n`
    expect(checkReadme(page(10))).toEqual([])
    expect(checkReadme(page(10) + '\n'.repeat(200))).toEqual([expect.stringContaining('lines')])
    expect(checkReadme(page(30))).toEqual([expect.stringContaining('the bug and')])
  })

  test('records of decisions: a gap, a missing part, one that nobody finds, one that is too long', () => {
    const record = '# 1. A\n\n## Context\n\nx\n\n## Decision\n\nx\n\n## Consequence\n\nx\n'
    const index = '[A](0001-a.md) [B](0002-b.md) [C](0003-c.md)'
    const good = {
      'README.md': index,
      '0001-a.md': record,
      '0002-b.md': record.replace('1.', '2.'),
    }
    expect(checkRecords(good)).toEqual([])
    for (const wrong of [
      { ...good, '0004-d.md': record.replace('1.', '4.'), 'README.md': `${index} (0004-d.md)` },
      { ...good, '0002-b.md': record },
      { ...good, '0002-b.md': record.replace('1.', '2.').replace('## Context', '## Why') },
      { ...good, 'README.md': '[A](0001-a.md)' },
      { ...good, '0002-b.md': `${record.replace('1.', '2.')}${'x\n'.repeat(60)}` },
    ])
      expect(checkRecords(wrong)).toHaveLength(1)
  })

  test('docs: what is told stays green, and a missing entry point does not', () => {
    const text = `export { told } from './deep.ts'\n/** All. */\nexport * as deep from './deep.ts'`
    const tree = parseSources({ 'index.ts': text, 'deep.ts': '/** Good. */ export const told = 1' })
    expect(checkDocs(tree, ['index.ts'])).toEqual([])
    expect(checkDocs(tree, ['gone.ts'])).toHaveLength(1)
  })
})
