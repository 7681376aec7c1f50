import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseSpec, type Spec } from './parse-spec.ts'

const folder = join(import.meta.dirname, 'specs')

/** A spec of the folder `specs`; `long/…` are those that take minutes to permute. */
export function readSpec(name: string): Spec {
  return parseSpec(basename(name), readFileSync(join(folder, `${name}.spec`), 'utf8'))
}

export function listSpecs(): string[] {
  const files = globSync('**/*.spec', { cwd: folder })
  return files.map((file) => file.slice(0, -'.spec'.length)).toSorted()
}
