import {
  innodbBinaries,
  type InnodbServer,
  innodbServersOfRun,
  startInnodb,
} from '@holdfast/testkit'
import type { TestProject } from 'vitest/node'

/** A server that tests of this project share; each file makes databases of its own in it. */
export interface SharedInnodb {
  readonly name: string
  readonly url: string
}

declare module 'vitest' {
  interface ProvidedContext {
    innodbServers: readonly SharedInnodb[]
  }
}

/** A MariaDB 10.11; with HOLDFAST_ENGINES=all one of each product and version that is installed. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers: InnodbServer[] = []
  for (const name of innodbServersOfRun) {
    if (innodbBinaries(name) === undefined)
      process.stderr.write(`!!! ${name} is not installed, so its tests do not run\n`)
    else servers.push(await startInnodb(name))
  }
  const shared = servers.map((server) => ({ name: server.name, url: server.url() }))
  project.provide('innodbServers', shared)
  return async () => {
    await Promise.all(servers.map((server) => server.stop()))
  }
}
