import { readFileSync } from 'node:fs'

/** Of this package, never of the application's. The build puts the answer in the place of this module. */
export function packageVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
