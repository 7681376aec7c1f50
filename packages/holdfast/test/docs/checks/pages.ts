import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository. */
export const root: string = fileURLToPath(new URL('../../../../../', import.meta.url))

/** One Markdown file. */
export interface Page {
  /** From the root of the repository, with forward slashes. */
  readonly path: string
  readonly text: string
}

/** One fenced block. */
export interface Block {
  readonly page: string
  /** Line of the first line of code, from 1. */
  readonly line: number
  readonly language: string
  /** What follows the language on the fence: `run`, … */
  readonly flags: readonly string[]
  /** Comments of the form `<!-- name: value -->` on the lines right above the fence. */
  readonly notes: ReadonlyMap<string, string>
  readonly code: string
  /** What it prints, if a block with `<!-- printed: above -->` follows it. */
  readonly printed?: string
}

const skipped = new Set(['node_modules', 'dist', 'generated', '.git'])

/** Every Markdown file of the repository; what is in `packages/*` itself is copied there. */
export function readPages(folder = root): Page[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry): Page[] => {
    const full = join(folder, entry.name)
    const path = relative(root, full).replaceAll('\\', '/')
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : readPages(full)
    const isCopied = /^packages\/[^/]+\/(?:docs\/|[^/]+$)/.test(path) && entry.name !== 'AGENTS.md'
    if (!entry.name.endsWith('.md') || isCopied) return []
    return [{ path, text: readFileSync(full, 'utf8') }]
  })
}

/** Pages whose code is shown to users, and so is checked. */
export function isForUsers({ path }: Page): boolean {
  return (
    path === 'README.md' ||
    /^(?:docs|examples|packages\/holdfast\/(?:skills|AGENTS))[/.]/.test(path)
  )
}

/** Pages of which each block stands alone: what it uses, it declares or imports, and nothing is added for the check. */
export function standsAlone({ path }: Pick<Page, 'path'>): boolean {
  return path === 'README.md' || path.startsWith('docs/recipes/') || isQuickStart({ path })
}

/** Pages that are done block by block in an empty folder: see quick-starts.test.ts. */
export function isQuickStart({ path }: Pick<Page, 'path'>): boolean {
  return path.startsWith('docs/start/')
}

const notePattern = /^<!-- ([a-z]+): (.+) -->$/
const fencePattern = /^```(\S*)\s*(.*)$/

/** The fenced blocks of a page. Only fences at the start of a line count, which is all we write. */
export function blocksOf({ path, text }: Page): Block[] {
  const lines = text.split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const [, language, flags = ''] = fencePattern.exec(lines[at] as string) ?? []
    if (language === undefined) continue
    const end = lines.indexOf('```', at + 1)
    if (end === -1) throw new Error(`${path}:${at + 1} opens a block that never ends`)
    blocks.push({
      page: path,
      line: at + 2,
      language,
      flags: flags.split(' ').filter((flag) => flag !== ''),
      notes: notesAbove(lines, at),
      code: lines.slice(at + 1, end).join('\n'),
    })
    at = end
  }
  return blocks.map((block, at) => {
    const next = blocks[at + 1]
    return next?.notes.get('printed') === 'above' ? { ...block, printed: next.code } : block
  })
}

function notesAbove(lines: readonly string[], fence: number): Map<string, string> {
  const notes = new Map<string, string>()
  for (let at = fence - 1; at >= 0; at -= 1) {
    const [, name, value] = notePattern.exec(lines[at] as string) ?? []
    if (name === undefined || value === undefined) break
    notes.set(name, value)
  }
  return notes
}

/** The page without its code, line by line, so that nothing in code is taken for prose. */
export function proseLines({ text }: Page): string[] {
  let inside = false
  return text.split('\n').map((line) => {
    if (line.startsWith('```')) {
      inside = !inside
      return ''
    }
    return inside ? '' : line
  })
}
