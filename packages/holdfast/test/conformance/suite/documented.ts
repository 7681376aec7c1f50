import { readFileSync } from 'node:fs'

const root = new URL('../../../../../', import.meta.url)

/** A client's row of the first table in docs/drivers.md. */
export interface DocumentedClient {
  /** As far as the page says it: `8.23`. */
  readonly version: string
  /** `guard, acquire` */
  readonly roundTrips: string
}

export function documentedClient(name: string): DocumentedClient {
  const page = readFileSync(new URL('docs/drivers.md', root), 'utf8')
  for (const line of page.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim())
    const [, label = '', , , roundTrips = ''] = cells
    const [, client = '', version = '', rest = ''] =
      /^\[([\w.]+)\]\(#\w+\) ([\d.]+)(.*)$/.exec(label) ?? []
    const on = / on [\w-]+$/.exec(rest)?.[0] ?? ''
    if (`${client}${on}` === name) return { version, roundTrips }
  }
  throw new Error(`docs/drivers.md has no row for ${name}`)
}

/** The version of a package that the tests run with. */
export function installedVersion(name: string): string {
  const manifest = readFileSync(new URL(`node_modules/${name}/package.json`, root), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}
