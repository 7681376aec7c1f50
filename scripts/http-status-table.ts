import { type ErrorCode, errorCodes } from '../packages/holdfast/src/errors.ts'
import { statusOf } from '../packages/holdfast/src/http/index.ts'

/** Which code is which status, as docs/http.md shows it between its two marks. */
export function statusTable(): string {
  const rows = new Map<string, string[]>()
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    const { status, again } = statusOf(code)
    const unknown = errorCodes[code].class === 'UnknownOutcomeError'
    const told = unknown ? '`outcome`' : status < 500 ? '`code`' : ''
    const head = `| ${status} | ${again ? 'yes' : 'no'} | ${told} |`
    rows.set(head, [...(rows.get(head) ?? []), `\`${code}\``])
  }
  const lines = [...rows]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([head, codes]) => `${head} ${codes.toSorted().join(', ')} |`)
  return [
    '| status | `Retry-After` | in the body | codes |',
    '| --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
}

/** The page with the table between its two marks. */
export function withStatusTable(page: string): string {
  const [from, to] = ['<!-- statuses -->\n', '<!-- /statuses -->']
  const [start, end] = [page.indexOf(from), page.indexOf(to)]
  if (start === -1 || end < start) throw new Error('docs/http.md has no place for the table')
  return `${page.slice(0, start)}${from}\n${statusTable()}\n\n${page.slice(end)}`
}
