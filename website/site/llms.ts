/** `llms.txt`, the index of the docs for programs that read text, and `llms-full.txt` with every page in it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SidebarGroup } from './sidebar.ts'

export interface Llms {
  /** The repository. */
  readonly root: string
  readonly outDir: string
  readonly base: string
  readonly sidebar: readonly SidebarGroup[]
}

const intro = `# Holdfast

> Race-free check-then-write for TypeScript on PostgreSQL, in the transaction and the client you already have: locks,
> quotas, credits, stock, claims, leases, schedules, and work that is done once.
`

/** Also puts every page beside its HTML as Markdown: `/docs/locks.md`. */
export function writeLlmsFiles({ root, outDir, base, sidebar }: Llms): void {
  const groups = sidebar.map(({ text, items }) => {
    const pages = items.map(
      ({ text: title, path, description }) => `- [${title}](${base}${path}): ${description}`,
    )
    return `## ${text}\n\n${pages.join('\n')}\n`
  })
  writeFileSync(join(outDir, 'llms.txt'), [intro, ...groups].join('\n'))
  const pages = sidebar.flatMap(({ items }) => items)
  const full = pages.map(({ path }) => {
    const text = readFileSync(join(root, path), 'utf8')
    writePage(join(outDir, path), text)
    return `<!-- ${path} -->\n\n${text}`
  })
  writeFileSync(join(outDir, 'llms-full.txt'), [intro, ...full].join('\n\n'))
}

function writePage(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
