import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ownFolder } from '../core/own-folder.ts'

/** The program that proves, for whoever is not a program of ours. */
export function proverProgram(): URL {
  const folder = ownFolder()
  const root = join(folder, '..')
  // With source maps, what was built is found under the name of its source, which Node does not run in node_modules.
  const isSource = /[\\/]src[\\/]$/.test(folder) && !/[\\/]node_modules[\\/]/.test(folder)
  const file = isSource ? 'src/hunt-prover.ts' : 'dist/esm/hunt-prover.js'
  return pathToFileURL(join(root, file))
}
