/** Which Markdown files of the repository are pages of the site, and at which address. */
import { posix } from 'node:path'

/** Pages outside of `docs/`. */
const alsoPages = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']

/** Globs of what is no page; `readPages` of the tests of the docs sees the same files. */
export const notPages: readonly string[] = [
  '{AGENTS,README,LICENSE}.md',
  '{bench,examples,faults,generated,packages,scripts,testkit}/**',
  '.*/**',
  'website/README.md',
]

/** Whether a file, named from the root of the repository, is a page of the site. */
export function isPage(path: string): boolean {
  return (path.startsWith('docs/') && path.endsWith('.md')) || alsoPages.includes(path)
}

/** The reference of the API, which the build writes. */
function isOfApi(path: string): boolean {
  return path.startsWith('website/generated/') && path.endsWith('.md')
}

/** Source file to source file that VitePress is to take it for: a README is the index of its folder. */
export function rewrites(path: string): string {
  if (path === 'website/index.md') return 'index.md'
  return path.replace(/^website\/generated\//, 'api/').replace(/(^|\/)README\.md$/, '$1index.md')
}

/** The address of a page on the site, without base. */
export function addressOf(path: string): string {
  if (path === 'README.md') return '/'
  return `/${rewrites(path)}`.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')
}

/**
 * What a link of a page becomes on the site: the address of a page, or, for any other file of the repository, its
 * address there. Undefined if it stays as it is.
 */
export function linkOnSite(page: string, target: string, repository: string): string | undefined {
  if (/^(?:[a-z]+:|\/|#)/.test(target)) return undefined
  const [file = '', anchor] = target.split('#')
  const path = posix.join(posix.dirname(page), file)
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (path === 'README.md' || isPage(path) || isOfApi(path)) return addressOf(path) + hash
  return `${repository}/${/\.\w+$/.test(path) ? 'blob' : 'tree'}/main/${path}${hash}`
}
