/** The house rules for this package; that the checks go red is shown where they live. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { checkDocs } from '../../../holdfast/test/unit/tidy/doc-rules.ts'
import { readSources } from '../../../holdfast/test/unit/tidy/source-tree.ts'
import { checkFiles, checkSql } from '../../../holdfast/test/unit/tidy/text-rules.ts'

const sources = readSources(fileURLToPath(new URL('../../src', import.meta.url)))

test('files of readable size with names that say something', () => {
  expect(checkFiles(sources)).toEqual([])
})

test('no SQL: what is asked of a database is asked through the library', () => {
  expect(checkSql(sources)).toEqual([])
})

test('every name that users import is documented', () => {
  expect(checkDocs(sources, ['index.ts'])).toEqual([])
})
