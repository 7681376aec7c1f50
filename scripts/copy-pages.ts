/**
 * Copies the pages of the repository into the package that is about to be packed, with links that work from
 * anywhere: registries show a README far away from the files that it names.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { absoluteLinks } from './package/absolute-links.ts'
import { packageRoot } from './package/entries.ts'
import type { ReleaseManifest } from './package/release-problems.ts'

const root = new URL('../', import.meta.url)
const into = packageRoot('holdfast')
const manifest = JSON.parse(readFileSync(new URL('package.json', into), 'utf8')) as ReleaseManifest

for (const page of ['README.md', 'CHANGELOG.md']) {
  const text = readFileSync(new URL(page, root), 'utf8')
  writeFileSync(new URL(page, into), absoluteLinks(text, manifest))
}
copyFileSync(new URL('LICENSE', root), new URL('LICENSE', into))
