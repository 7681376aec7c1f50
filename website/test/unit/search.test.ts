/** The search of the site, on an index made of the Markdown; `npm run test:site` asks the one that is built. */
import { expect, test } from 'vitest'
import { readPages } from '../../../packages/holdfast/test/docs/checks/pages.ts'
import { isPage } from '../../site/pages.ts'
import { tokenize } from '../../site/search.ts'
import { indexPages } from '../support/index-pages.ts'
import { missesOf } from '../support/misses.ts'

const pages = readPages().filter(({ path }) => isPage(path))

test('each code of an error and each symptom has its page as first or second hit', () => {
  expect(missesOf(indexPages(pages))).toEqual([])
})

test('control: without their pages they are missed', () => {
  const index = indexPages(pages.filter(({ path }) => !/errors|troubleshooting/.test(path)))
  const misses = missesOf(index).join('\n')
  expect(misses).toMatch(/^LOCK_TIMEOUT: /m)
  expect(misses).toMatch(/^P2028: /m)
})

test('a code is one word, and its parts are words too', () => {
  expect(tokenize('see `LOCK_TIMEOUT` (40P01), or hf.guard')).toEqual(
    'see LOCK_TIMEOUT LOCK TIMEOUT 40P01 or hf guard'.split(' '),
  )
})
