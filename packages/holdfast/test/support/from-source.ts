/**
 * `node --import` this to run code that imports our packages by name without a build: every entry
 * point of their package.json leads to its source, as tsconfig's `paths` does for types.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

interface Manifest {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

const packages = ['../../', '../../../race/', '../../../console/'].map(
  (path) => new URL(path, import.meta.url),
)

const sources = new Map(packages.flatMap(sourcesOf))

function sourcesOf(root: URL): [string, string][] {
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as Manifest
  return Object.entries(manifest.exports).flatMap(([entry, target]): [string, string][] => {
    if (typeof target === 'string') return []
    const source = target.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')
    return [[`${manifest.name}${entry.slice(1)}`, new URL(source, root).href]]
  })
}

registerHooks({
  resolve(specifier, context, nextResolve) {
    const url = sources.get(specifier)
    return url === undefined ? nextResolve(specifier, context) : { url, shortCircuit: true }
  },
})
