import type { ReleaseManifest } from './release-problems.ts'

/** Links and pictures of a page at the root of the repository, at the tag of the version. */
export function absoluteLinks(
  markdown: string,
  { repository, version }: Pick<ReleaseManifest, 'repository' | 'version'>,
): string {
  const base = (repository?.url ?? '').replace(/^git\+/, '').replace(/\.git$/, '')
  return markdown.replaceAll(
    /(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)/g,
    (_, picture: string, text: string, path: string) =>
      `${picture}[${text}](${base}/${picture === '' ? 'blob' : 'raw'}/v${version}/${path})`,
  )
}
