/**
 * `node --import` this to run code that imports `holdfast` by name without a build: every entry
 * point of package.json leads to its source, as tsconfig's `paths` does for types.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  readonly name: string
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>
}

const sources = new Map(
  Object.entries(manifest.exports).flatMap(([entry, target]) => {
    if (typeof target === 'string') return []
    const source = target.default.replace('./dist/', './src/').replace(/\.js$/, '.ts')
    return [[`${manifest.name}${entry.slice(1)}`, new URL(source, root).href]]
  }),
)

registerHooks({
  resolve(specifier, context, nextResolve) {
    const url = sources.get(specifier)
    return url === undefined ? nextResolve(specifier, context) : { url, shortCircuit: true }
  },
})
