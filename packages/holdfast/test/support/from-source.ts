/**
 * `node --import` this to run code that imports our packages by name without a build: every entry
 * point of their package.json leads to its source, as tsconfig's `paths` does for types. With `HOLDFAST_BUILT=1` it does
 * nothing: a run of all tests has just built the packages, and what is built loads in a fifth of the time.
 */
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { sourcesByName } from '../../../../scripts/package/entries.ts'

if (process.env['HOLDFAST_BUILT'] !== '1') {
  const sources = sourcesByName()
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const file = sources.get(specifier)
      if (file === undefined) return nextResolve(specifier, context)
      return { url: pathToFileURL(file).href, shortCircuit: true }
    },
  })
}
