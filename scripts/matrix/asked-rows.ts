import { type Client, clients } from './versions.ts'

/** One client at one version. */
export interface Row {
  readonly client: Client
  readonly version: string
  /** Whether docs/drivers.md promises it. */
  readonly isListed: boolean
}

/**
 * The rows that were asked for: `kysely` is all of its listed versions, `kysely@0.27.6` that one, listed or not. A client
 * is called by its own name or that of its package. Without words, every listed row.
 */
export function askedRows(asked: readonly string[]): Row[] {
  if (asked.length === 0) return clients.flatMap((client) => listed(client))
  return asked.flatMap((word) => {
    const at = word.lastIndexOf('@')
    // The first one is that of a scope.
    const [name, version] = at > 0 ? [word.slice(0, at), word.slice(at + 1)] : [word]
    const client = clients.find((each) => namesOf(each).includes(name.toLowerCase()))
    if (client === undefined) {
      const names = clients.map((each) => each.name.toLowerCase()).join(', ')
      throw new Error(`nothing is called ${name}; there are ${names}`)
    }
    if (version === undefined) return listed(client)
    if (!/^\d+\.\d+\.\d+/.test(version)) {
      throw new Error(`${version} is no version; write all of it: ${name}@${client.versions[0]}`)
    }
    return [{ client, version, isListed: client.versions.includes(version) }]
  })
}

function listed(client: Client): Row[] {
  return client.versions.map((version) => ({ client, version, isListed: true }))
}

function namesOf({ name, packages }: Client): string[] {
  return [name.toLowerCase(), ...Object.keys(packages(''))]
}
