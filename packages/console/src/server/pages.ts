import { type UiFile, uiFiles } from '../generated/ui-files.ts'
import { fixedText } from '../core/shown-text.ts'
import { answer } from '../http/answer.ts'
import { checkedBase } from '../http/base-path.ts'

/** Paths of the pages; all are the same file, which looks at the address itself. */
const pages: ReadonlySet<string> = new Set([
  '',
  'now',
  'locks',
  'ledger',
  'claims',
  'jobs',
  'schedules',
  'doctor',
  'login',
])

/** Fixed when the package was built: no path of a request ever reaches a disk. */
const files: ReadonlyMap<string, UiFile> = new Map(uiFiles.map((file) => [file.name, file]))

/** The file of a path, if it is one. Nothing in it is secret. */
export function pageAnswer(path: string, base: string | undefined): Response | undefined {
  const name = pages.has(path) ? 'index.html' : path.startsWith('assets/') ? path : undefined
  const file = name === undefined ? undefined : files.get(name)
  if (file === undefined) return undefined
  const headers = {
    'content-type': file.contentType,
    ...(file.immutable ? { 'cache-control': 'public, max-age=31536000, immutable' } : {}),
  }
  const body = file.immutable ? file.body : withBase(file.body, base)
  return answer(fixedText(body), { headers })
}

/** Relative addresses hold for pages that end in a slash; with the base they hold for all. */
function withBase(html: string, base: string | undefined): string {
  if (base === undefined) return html
  let checked: string
  try {
    checked = checkedBase(base)
  } catch {
    // Of a framework that mounts us under a pattern; what matched it is not put into a page.
    return html
  }
  return html.replaceAll('="./', `="${checked}/`)
}
