/** What can be said about the site without building it; the build itself is `npm run docs:build`. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  blocksOf,
  proseLines,
  readPages,
  root,
} from '../../../packages/holdfast/test/docs/checks/pages.ts'
import { addressOf, isPage, linkOnSite, rewrites } from '../../site/pages.ts'
import { sequenceDiagram } from '../../site/sequence-diagram.ts'
import { repository } from '../../site/repository.ts'
import { sidebarOf } from '../../site/sidebar.ts'
import { broken } from '../../site/what-broke.ts'

const pages = readPages().filter(({ path }) => isPage(path))
const sidebar = sidebarOf(readFileSync(join(root, 'docs/README.md'), 'utf8'))
const listed = sidebar.flatMap(({ items }) => items)

const groups = [
  'Start',
  'Recipes',
  'Guides',
  'Concepts',
  'Reference',
  'Operate',
  'Scale out',
  'Race explorer and hunt',
  'Project',
]

describe('the sidebar', () => {
  test('has these groups', () => {
    expect(sidebar.map(({ text }) => text)).toEqual(groups)
  })

  test('has every page once', () => {
    // Records of decisions are listed on a page of their own.
    const isListed = (path: string): boolean =>
      path !== 'docs/README.md' && !/^docs\/decisions\/\d/.test(path)
    const others = pages.map(({ path }) => path).filter(isListed)
    expect(listed.map(({ path }) => path).toSorted()).toEqual(others.toSorted())
  })
})

describe('the pages', () => {
  test('have addresses of their own', () => {
    const addresses = [...pages.map(({ path }) => path), 'website/index.md'].map(addressOf)
    expect(new Set(addresses).size).toBe(addresses.length)
  })

  test('have nothing outside of code that Vue would take for its own', () => {
    const tags = pages.flatMap((page) => {
      const prose = proseLines(page)
        .join('\n')
        .replaceAll(/`[^`]*`/g, '')
      return (prose.match(/\{\{|<(?!!--|br>)[a-z/][^>\n]*>?/gi) ?? []).map(
        (tag) => `${page.path} ${tag}`,
      )
    })
    expect(tags).toEqual([])
  })

  test('that the cards of the landing page lead to exist', () => {
    const addresses = new Set(pages.map(({ path }) => addressOf(path)))
    expect(broken.filter(({ link }) => !addresses.has(link))).toEqual([])
  })
})

test('nothing of the theme asks another server', () => {
  const theme = join(root, 'website/.vitepress/theme')
  const texts = readdirSync(theme).map((file) => readFileSync(join(theme, file), 'utf8'))
  expect(texts.join('\n').match(/(?:https?:)?\/\/[\w-]+\.\w+/g)).toBeNull()
})

test.each([
  ['docs/locks.md', 'rows.md#order', '/docs/rows#order'],
  ['docs/race/hunt.md', '../lint/README.md', '/docs/lint/'],
  ['docs/README.md', '../README.md', '/'],
  ['website/index.md', '../docs/recipes/README.md', '/docs/recipes/'],
  ['docs/nestjs.md', '../CHANGELOG.md', '/CHANGELOG'],
  [
    'docs/nestjs.md',
    '../examples/nestjs/README.md',
    `${repository}/blob/main/examples/nestjs/README.md`,
  ],
  [
    'docs/schedules.md',
    '../examples/reconciliation',
    `${repository}/tree/main/examples/reconciliation`,
  ],
  [
    'docs/metrics.md',
    'observe/prometheus-alerts.yml',
    `${repository}/blob/main/docs/observe/prometheus-alerts.yml`,
  ],
  ['website/generated/holdfast/locks.md', 'rows.md#lock', '/api/holdfast/rows#lock'],
  ['docs/locks.md', '#keys', undefined],
  ['docs/locks.md', 'https://example.org', undefined],
])('a link of %s to %s', (page, target, link) => {
  expect(linkOnSite(page, target, repository)).toBe(link)
})

test('a README is the index of its folder', () => {
  expect(rewrites('docs/lint/README.md')).toBe('docs/lint/index.md')
  expect(rewrites('docs/locks.md')).toBe('docs/locks.md')
  expect(rewrites('website/index.md')).toBe('index.md')
})

test('sequence diagrams of the pages are drawn as lists', () => {
  const diagrams = pages.flatMap(blocksOf).filter(({ language }) => language === 'mermaid')
  const drawn = diagrams
    .map(({ code }) => sequenceDiagram(code))
    .filter((html) => html !== undefined)
  expect(drawn).toHaveLength(2)
  expect(drawn[0]).toContain(
    '<span class="visually-hidden">request A to PostgreSQL: </span>BEGIN</li>',
  )
  expect(() => sequenceDiagram('sequenceDiagram\nloop for ever')).toThrow(/not understood/)
})
