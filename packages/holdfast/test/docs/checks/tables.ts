import { type Page, proseLines } from './pages.ts'

/** The rows of the page's table whose header begins with `first`, cell by cell. */
export function tableOf(page: Page, first: string): string[][] {
  const lines = proseLines(page)
  const start = lines.findIndex((line) => cellsOf(line)[0] === first)
  if (start === -1) throw new Error(`${page.path} has no table that begins with "${first}"`)
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'))
  return lines.slice(start + 2, end === -1 ? undefined : end).map(cellsOf)
}

function cellsOf(line: string): string[] {
  if (!line.startsWith('|')) return []
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim())
}

/** The text between the first pair of backticks. */
export function codeIn(cell: string): string {
  return /`([^`]+)`/.exec(cell)?.[1] ?? ''
}
