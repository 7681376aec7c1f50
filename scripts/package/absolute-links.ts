import { posix } from 'node:path'
import type { ReleaseManifest } from './release-problems.ts'

export interface Copied {
  /** Where the page is in the repository. @defaultValue a page at its root */
  readonly page?: string
  /** Whether what a link leads to is copied as well, to the same place. @defaultValue nothing is */
  readonly isCopied?: (path: string) => boolean
}

/** Links and pictures of a page of the repository, at the tag of the version, unless they lead to what is copied with it. */
export function absoluteLinks(
  markdown: string,
  { repository, version }: Pick<ReleaseManifest, 'repository' | 'version'>,
  { page = '', isCopied = () => false }: Copied = {},
): string {
  const base = (repository?.url ?? '').replace(/^git\+/, '').replace(/\.git$/, '')
  return markdown.replaceAll(
    /(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)/g,
    (link, picture: string, text: string, target: string) => {
      const [file = '', ...anchor] = target.split(/(?=#)/)
      const path = posix.join(posix.dirname(page), file)
      if (isCopied(path)) return link
      const kind = picture === '' ? 'blob' : 'raw'
      return `${picture}[${text}](${base}/${kind}/v${version}/${path}${anchor.join('')})`
    },
  )
}
