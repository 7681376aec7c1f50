import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Whom a server runs as. Absent: as ourselves. */
export interface ServiceAccount {
  readonly uid: number
  readonly gid: number
}

const run = promisify(execFile)

async function idOf(flag: '-u' | '-g', name: string): Promise<number> {
  const { stdout } = await run('id', [flag, name])
  return Number(stdout)
}

/**
 * PostgreSQL and PgBouncer refuse to run as root. As root we hand them to the user `postgres`, or
 * to `nobody` where that user does not exist; as anyone else we run them as ourselves.
 */
export async function serviceAccount(): Promise<ServiceAccount | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const missing: unknown[] = []
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: await idOf('-u', name), gid: await idOf('-g', name) }
    } catch (error) {
      missing.push(error)
    }
  }
  throw new AggregateError(missing, 'running as root, and neither user postgres nor nobody exists')
}
