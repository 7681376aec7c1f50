/** The sidebar is the index of the docs, `docs/README.md`: each heading a group, each row of its table a page. */
import { posix } from 'node:path'
import { addressOf } from './pages.ts'

export interface SidebarPage {
  readonly text: string
  readonly link: string
  /** The file, from the root of the repository. */
  readonly path: string
  readonly description: string
}

export interface SidebarGroup {
  readonly text: string
  readonly items: readonly SidebarPage[]
}

/** `index` is the text of `docs/README.md`. */
export function sidebarOf(index: string): SidebarGroup[] {
  const [, ...sections] = index.split(/^## /m)
  const groups = sections.map((section) => ({
    text: section.slice(0, section.indexOf('\n')).trim(),
    items: [...section.matchAll(/^\| \[(.+?)\]\(([^)]+)\) \| (.+?) \|$/gm)].map(
      ([, text = '', target = '', description = '']) => {
        const path = posix.join('docs', target)
        return { text: text.replaceAll('`', ''), link: addressOf(path), path, description }
      },
    ),
  }))
  return groups.filter(({ items }) => items.length > 0)
}

/** The records of decisions, which the sidebar has as one page; `index` is the text of `docs/decisions/README.md`. */
export function decisionRecords(index: string): SidebarGroup {
  const rows = [...index.matchAll(/^\| (\d+) \| \[(.+?)\]\(([^)]+)\) \|$/gm)]
  const items = rows.map(([, number = '', title = '', target = '']) => {
    const path = posix.join('docs/decisions', target)
    const text = title.replaceAll('`', '')
    return { text, link: addressOf(path), path, description: `decision ${number}` }
  })
  return { text: 'Decisions', items }
}
