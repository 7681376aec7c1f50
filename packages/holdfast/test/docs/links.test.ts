/** Links between the Markdown files of the repository, and from the sources to the docs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readSources } from '../unit/tidy/source-tree.ts'
import { checkLinks } from './checks/links.ts'
import { type Page, readPages, root } from './checks/pages.ts'

const pages = readPages()

describe('the pages', () => {
  test('link to files and headings that exist', () => {
    expect(pages.map(({ path }) => path)).toContain('README.md')
    expect(checkLinks(pages)).toEqual([])
  })

  test('are all found from the index', () => {
    const index = pages.find(({ path }) => path === 'docs/README.md')?.text ?? ''
    const unlisted = pages
      .filter(({ path }) => path.startsWith('docs/') && path !== 'docs/README.md')
      // They have an index of their own, which the house rules hold.
      .filter(({ path }) => !/^docs\/decisions\/\d/.test(path))
      .filter(({ path }) => !index.includes(`](${path.slice('docs/'.length)})`))
    expect(unlisted.map(({ path }) => path)).toEqual([])
  })

  test('are listed once', () => {
    const index = pages.find(({ path }) => path === 'docs/README.md')?.text ?? ''
    const listed = [...index.matchAll(/^\| \[[^\]]+\]\(([^)]+)\)/gm)].map(([, path]) => path)
    expect(listed.length).toBeGreaterThan(20)
    expect(listed.filter((path, at) => listed.indexOf(path) < at)).toEqual([])
  })

  test('that have commands for npx name the package that brings them', () => {
    const bare = pages.filter(
      ({ text }) => text.includes('npx holdfast ') && !text.includes('@holdfast/cli'),
    )
    expect(bare.map(({ path }) => path)).toEqual([])
  })

  test('that the sources send people to exist', () => {
    const named = [...readSources(join(root, 'packages/holdfast/src')).values()].flatMap(
      ({ text }) => text.match(/\bdocs\/[\w-]+\.md/g) ?? [],
    )
    expect(named.length).toBeGreaterThan(0)
    expect([...new Set(named)].filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})

describe('the check goes red', () => {
  const page = (text: string): Page => ({ path: 'docs/made-up.md', text })
  const other: Page = {
    path: 'docs/other.md',
    text: '# Other\n\n## `lock` it, twice\n\n## `lock` it, twice',
  }

  test.each([
    ['a file that is not there', '[a](gone.md)'],
    ['a file outside the repository', '[a](../../a.md)'],
    ['a heading that is not there', '[a](other.md#gone)'],
    ['a heading of its own page that is not there', '# A\n[a](#b)'],
    ['a heading inside a block', '```sh\n# b\n```\n[a](#b)'],
  ])('%s', (_, text) => {
    expect(checkLinks([page(text), other])).toEqual([
      expect.stringMatching(/^docs\/made-up\.md:\d+ .*: no such/),
    ])
  })

  test.each([
    '[a](other.md)',
    '[a](other.md#other)',
    '[a](other.md#lock-it-twice) [b](other.md#lock-it-twice-1)',
    '# A b\n[a](#a-b)',
    '[a](https://example.org/gone.md#b)',
    '[a](../README.md)',
    '`[a](gone.md)`',
    '```md\n[a](gone.md)\n```',
  ])('and stays green for %s', (text) => {
    expect(checkLinks([page(text), other])).toEqual([])
  })
})
