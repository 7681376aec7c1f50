/** What the build has made, as files. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPages, root } from '../../../packages/holdfast/test/docs/checks/pages.ts'
import { addressOf, isPage } from '../../site/pages.ts'
import { builtIndex, dist } from '../support/built-site.ts'
import { missesOf } from '../support/misses.ts'

const pages = readPages().filter(({ path }) => isPage(path))
const fileOf = (path: string): string =>
  join(dist, `${addressOf(path)}.html`.replace('/.html', '/index.html'))

test('each code of an error and each symptom has its page as first or second hit', async () => {
  expect(missesOf(await builtIndex())).toEqual([])
})

test('has every page, the landing page and the reference of the API', () => {
  const files = [...pages.map(({ path }) => fileOf(path)), join(dist, 'index.html')]
  expect(files.filter((file) => !existsSync(file))).toEqual([])
  const api = readFileSync(join(dist, 'api/holdfast/locks.html'), 'utf8')
  expect(api).toContain('acquire')
  expect(api).not.toContain('/website/generated/')
})

test('anchors are those of GitHub', () => {
  const errors = readFileSync(join(dist, 'docs/errors.html'), 'utf8')
  expect(errors).toContain('id="lock_timeout"')
  expect(readFileSync(join(dist, 'docs/transactions.html'), 'utf8')).toContain(
    '/docs/errors#tx_nested',
  )
})

test('llms.txt lists every page, and llms-full.txt has them', () => {
  const list = readFileSync(join(dist, 'llms.txt'), 'utf8')
  const full = readFileSync(join(dist, 'llms-full.txt'), 'utf8')
  for (const { path, text } of pages.filter((page) => page.path !== 'docs/README.md')) {
    expect([path, list.includes(`](/${path}): `)]).toEqual([path, true])
    expect([path, full.includes(text)]).toEqual([path, true])
    expect(readFileSync(join(dist, path), 'utf8')).toBe(text)
  }
})

test('every page has its picture and its words for links', () => {
  const page = readFileSync(fileOf('docs/recipes/wallet.md'), 'utf8')
  expect(page).toMatch(/property="og:image" content="[^"]*\/preview\.png"/)
  expect(page).toMatch(/property="og:description" content="Double spend/)
  expect(existsSync(join(dist, 'preview.png'))).toBe(true)
  expect(existsSync(join(root, 'website/preview.svg'))).toBe(true)
})
