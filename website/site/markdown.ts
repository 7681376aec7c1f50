/** What the pages, which are written for GitHub, become on the site. */
import { linkOnSite } from './pages.ts'

/** The little of a token of markdown-it that is needed here. */
interface Token {
  type: string
  tag: string
  nesting: -1 | 0 | 1
  info: string
  content: string
  block: boolean
  children: Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

interface State<Env> {
  tokens: Token[]
  readonly env: Env
  readonly Token: new (type: string, tag: string, nesting: -1 | 0 | 1) => Token
}

interface MarkdownIt<Env> {
  readonly core: {
    readonly ruler: { push(name: string, rule: (state: State<Env>) => void): void }
  }
}

export interface SiteLinks<Env> {
  /** The file that is rendered, from the root of the repository. */
  sourceOf(env: Env): string
  readonly repository: string
}

/** Links between files become links between pages of the site, or to the repository. */
export function siteLinks<Env>(
  md: MarkdownIt<Env>,
  { sourceOf, repository }: SiteLinks<Env>,
): void {
  md.core.ruler.push('site-links', ({ tokens, env }) => {
    const source = sourceOf(env)
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== 'link_open') continue
      const link = linkOnSite(source, token.attrGet('href') ?? '', repository)
      if (link !== undefined) token.attrSet('href', link)
    }
  })
}

/**
 * Two or more blocks of code in a row, each under a line of bold text and nothing else, become tabs with that text as
 * their titles. Where there are no tabs they read as they stand.
 */
export function clientTabs<Env>(md: MarkdownIt<Env>): void {
  md.core.ruler.push('client-tabs', (state) => {
    const { tokens } = state
    const made: Token[] = []
    for (let at = 0; at < tokens.length; ) {
      const run = runAt(tokens, at)
      if (run.length < 2) {
        made.push(tokens[at] as Token)
        at += 1
        continue
      }
      const open = new state.Token('container_code-group_open', 'div', 1)
      const close = new state.Token('container_code-group_close', 'div', -1)
      open.block = close.block = true
      for (const { title, fence } of run) fence.info = `${fence.info} [${title}]`
      made.push(open, ...run.map(({ fence }) => fence), close)
      at = (run.at(-1) as Tab).next
    }
    state.tokens = made
  })
}

interface Tab {
  readonly title: string
  readonly fence: Token
  readonly next: number
}

function runAt(tokens: readonly Token[], start: number): Tab[] {
  const run: Tab[] = []
  for (let at = start; ; ) {
    const tab = tabAt(tokens, at)
    if (tab === undefined) return run
    run.push(tab)
    at = tab.next
  }
}

/** A paragraph of one bold text, comments of ours, and a block of code. */
function tabAt(tokens: readonly Token[], at: number): Tab | undefined {
  const [open, inline, close] = tokens.slice(at, at + 3)
  if (open?.type !== 'paragraph_open' || close?.type !== 'paragraph_close') return undefined
  const parts = (inline?.children ?? []).filter(
    ({ type, content }) => type !== 'text' || content !== '',
  )
  const [strong, text, end] = parts
  if (parts.length !== 3 || strong?.type !== 'strong_open' || end?.type !== 'strong_close') {
    return undefined
  }
  let next = at + 3
  while (tokens[next]?.type === 'html_block') next += 1
  const fence = tokens[next]
  return fence?.type === 'fence' && text !== undefined
    ? { title: text.content, fence, next: next + 1 }
    : undefined
}
