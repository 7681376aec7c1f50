import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { githubSlug } from '../../../../../scripts/docs/github-slug.ts'
import { type Page, proseLines, root } from './pages.ts'

/** Every relative link must lead to a file, and every anchor to a heading of that file. */
export function checkLinks(pages: readonly Page[]): string[] {
  const anchors = new Map(pages.map((page) => [page.path, anchorsOf(page)]))
  return pages.flatMap((page) =>
    linksOf(page).flatMap(({ target, line }) => {
      if (/^[a-z]+:/.test(target)) return []
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page.path : posix.join(posix.dirname(page.path), file)
      const report = (problem: string): string[] => [`${page.path}:${line} ${target}: ${problem}`]
      if (path.startsWith('..') || (!anchors.has(path) && !existsSync(join(root, path)))) {
        return report('no such file')
      }
      if (anchor === undefined) return []
      return anchors.get(path)?.has(anchor) === true ? [] : report('no such heading')
    }),
  )
}

function linksOf(page: Page): { target: string; line: number }[] {
  return proseLines(page).flatMap((text, at) =>
    [...text.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => ({
      target: target as string,
      line: at + 1,
    })),
  )
}

/** The anchors GitHub makes of a page's headings. */
function anchorsOf(page: Page): Set<string> {
  const anchors = new Set<string>()
  for (const line of proseLines(page)) {
    const [, heading] = /^#{1,6} (.+)$/.exec(line) ?? []
    if (heading === undefined) continue
    const slug = githubSlug(heading)
    let unique = slug
    for (let n = 1; anchors.has(unique); n += 1) unique = `${slug}-${n}`
    anchors.add(unique)
  }
  return anchors
}
