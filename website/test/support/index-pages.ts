import MiniSearch from 'minisearch'
import { type Page, proseLines } from '../../../packages/holdfast/test/docs/checks/pages.ts'
import { githubSlug } from '../../../scripts/docs/github-slug.ts'
import { addressOf } from '../../site/pages.ts'
import { searchOptions, tokenize } from '../../site/search.ts'

interface Section {
  readonly id: string
  readonly title: string
  readonly titles: readonly string[]
  readonly text: string
}

/** What the search of the site asks. */
export interface SearchIndex {
  search(query: string): readonly { readonly id: unknown }[]
}

/** The settings with which VitePress makes its index and asks it. */
export const miniSearchOptions = {
  fields: ['title', 'titles', 'text'],
  storeFields: ['title', 'titles'],
  tokenize,
  searchOptions,
}

/** An index like the one of the built site, from the Markdown: each heading begins a section. */
export function indexPages(pages: readonly Page[]): SearchIndex {
  const index = new MiniSearch<Section>(miniSearchOptions)
  index.addAll(pages.flatMap(sectionsOf))
  return index
}

function sectionsOf(page: Page): Section[] {
  const prose = proseLines(page)
  const lines = page.text.split('\n')
  const starts = prose.flatMap((line, at) => (/^#{1,6} /.test(line) ? [at] : []))
  const titles: string[] = []
  const seen = new Map<string, number>()
  return starts.map((start, n) => {
    const [, marks = '', heading = ''] = /^(#+) (.+)$/.exec(lines[start] as string) ?? []
    const title = heading.replaceAll(/[`*]|\[|\]\([^)]*\)/g, '')
    titles.splice(marks.length - 1, Number.POSITIVE_INFINITY, title)
    const slug = githubSlug(heading)
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return {
      id: `${addressOf(page.path)}#${times === 0 ? slug : `${slug}-${times}`}`,
      title,
      titles: titles.slice(0, -1).filter(Boolean),
      text: lines.slice(start + 1, starts[n + 1]).join('\n'),
    }
  })
}
