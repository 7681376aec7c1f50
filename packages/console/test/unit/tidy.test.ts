/** The house rules for this package; that the checks go red is shown where they live. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkDocs } from '../../../holdfast/test/unit/tidy/doc-rules.ts'
import { checkImports } from '../../../holdfast/test/unit/tidy/import-rules.ts'
import { readLayerTable } from '../../../holdfast/test/unit/tidy/layer-table.ts'
import {
  parseSources,
  readSources,
  type SourceTree,
} from '../../../holdfast/test/unit/tidy/source-tree.ts'
import { checkFiles, checkSql } from '../../../holdfast/test/unit/tidy/text-rules.ts'

const page = readFileSync(new URL('../../../../ARCHITECTURE.md', import.meta.url), 'utf8')
const [, section = ''] = page.split('## Layers of `packages/console/src`')
const layers = readLayerTable(section)
const folder = fileURLToPath(new URL('../../src', import.meta.url))
// The browser side is another program; what the build makes of it is read by nobody.
const sources: SourceTree = new Map([
  ...[...readSources(folder)].filter(([path]) => !/^(ui|generated)\//.test(path)),
  ...parseSources({ 'generated/ui-files.ts': '' }),
])
const allowed = new Set(['pg', 'mysql2', 'holdfast'])

test('imports only what the layer table of ARCHITECTURE.md allows', () => {
  expect(checkImports(sources, layers, allowed)).toEqual([])
})

test('the table is that of this package: an answer that knows the history is found out', () => {
  const tree = parseSources({
    'watch/history.ts': '',
    'http/answer.ts': `import { History } from '../watch/history.ts'`,
  })
  expect(checkImports(tree, layers, allowed)).toHaveLength(1)
})

test('files of readable size with names that say something', () => {
  expect(checkFiles(sources)).toEqual([])
})

test('no SQL: what is asked of a database is asked through the library', () => {
  expect(checkSql(sources)).toEqual([])
})

test('every public name is documented', () => {
  expect(checkDocs(sources, ['index.ts'])).toEqual([])
})
