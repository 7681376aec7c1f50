/** The house rules for this package; that the checks go red is shown where they live. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkDocs } from '../../../holdfast/test/unit/tidy/doc-rules.ts'
import { readSources } from '../../../holdfast/test/unit/tidy/source-tree.ts'
import { checkFiles, checkSql } from '../../../holdfast/test/unit/tidy/text-rules.ts'
import plugin from '../../src/index.ts'

const sources = readSources(fileURLToPath(new URL('../../src', import.meta.url)))

test('files of readable size with names that say something', () => {
  expect(checkFiles(sources)).toEqual([])
})

test('no SQL: nothing is asked of a database', () => {
  expect(checkSql(sources)).toEqual([])
})

test('every name that users import is documented', () => {
  expect(checkDocs(sources, ['index.ts'])).toEqual([])
})

test('every rule is recommended, has a page, and is named in the README', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const names = Object.keys(plugin.rules)
  expect(Object.keys(plugin.configs.recommended.rules ?? {})).toEqual(
    names.map((name) => `holdfast/${name}`),
  )
  for (const name of names) {
    const page = new URL(`../../../../docs/lint/${name}.md`, import.meta.url)
    expect({ name, hasPage: existsSync(page) }).toEqual({ name, hasPage: true })
    expect(plugin.rules[name]?.meta?.docs?.url).toContain(`docs/lint/${name}.md`)
    expect(readme).toContain(`\`${name}\``)
  }
})
