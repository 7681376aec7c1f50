import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The version of a package that tests load; not all packages export their package.json. */
function installedVersion(name: string): string {
  for (let at = import.meta.dirname; dirname(at) !== at; at = dirname(at)) {
    const file = join(at, 'node_modules', name, 'package.json')
    if (!existsSync(file)) continue
    return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version
  }
  throw new Error(`${name} is not installed`)
}

/** Whether it is older than a version, of which what follows a hyphen does not count. */
export function isOlder(name: string, than: string): boolean {
  const numbers = (version: string): number[] =>
    (version.split('-')[0] as string).split('.').map(Number)
  const wanted = numbers(than)
  const found = numbers(installedVersion(name))
  const at = wanted.findIndex((each, place) => each !== found[place])
  return at !== -1 && (found[at] ?? 0) < (wanted[at] as number)
}
