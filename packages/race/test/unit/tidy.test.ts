/** The house rules for this package; that the checks go red is shown where they live. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkDocs } from '../../../holdfast/test/unit/tidy/doc-rules.ts'
import { checkImports } from '../../../holdfast/test/unit/tidy/import-rules.ts'
import { readLayerTable } from '../../../holdfast/test/unit/tidy/layer-table.ts'
import { parseSources, readSources } from '../../../holdfast/test/unit/tidy/source-tree.ts'
import { checkFiles } from '../../../holdfast/test/unit/tidy/text-rules.ts'

const page = readFileSync(new URL('../../../../ARCHITECTURE.md', import.meta.url), 'utf8')
const [, section = ''] = page.split('## Layers of `packages/race/src`')
const layers = readLayerTable(section)
const sources = readSources(fileURLToPath(new URL('../../src', import.meta.url)))
const allowed = new Set(['pg', 'libpg-query', 'vitest'])

test('imports only what the layer table of ARCHITECTURE.md allows', () => {
  expect(checkImports(sources, layers, allowed)).toEqual([])
})

test('the table is that of this package: a search that knows the gate is found out', () => {
  const tree = parseSources({
    'gate/open-gate.ts': '',
    'search/search.ts': `import { openGate } from '../gate/open-gate.ts'`,
  })
  expect(checkImports(tree, layers, allowed)).toHaveLength(1)
})

test('and the hunt is handed the explorer: one that imports it is found out', () => {
  const tree = parseSources({
    'hunt/prove.ts': `import { explore } from '../explore.ts'`,
    'explore.ts': '',
  })
  expect(checkImports(tree, layers, allowed)).toHaveLength(1)
})

test('files of readable size with names that say something', () => {
  expect(checkFiles(sources)).toEqual([])
})

test('every public name is documented', () => {
  expect(checkDocs(sources, ['index.ts', 'hunt.ts', 'vitest.ts', 'jest.ts'])).toEqual([])
})
