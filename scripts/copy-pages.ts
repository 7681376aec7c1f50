/**
 * Copies the pages of the repository into the package as it is packed, with links that work from
 * anywhere: registries show a README far away from the files that it names. The docs are there for coding agents, which
 * read what is installed; their links to each other stay as they are.
 */
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
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
rmSync(new URL('docs/', into), { recursive: true, force: true })
const docs = globSync('docs/**/*.md', { cwd: fileURLToPath(root) }).map((path) =>
  path.replaceAll('\\', '/'),
)
const isCopied = (path: string): boolean => docs.includes(path)
for (const page of docs) {
  const copy = new URL(page, into)
  mkdirSync(new URL('.', copy), { recursive: true })
  const text = readFileSync(new URL(page, root), 'utf8')
  writeFileSync(copy, absoluteLinks(text, manifest, { page, isCopied }))
}
copyFileSync(new URL('LICENSE', root), new URL('LICENSE', into))
