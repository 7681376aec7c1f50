import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newestProgram, type ServerProgram, serversFolder } from './server-binaries.ts'

/** Servers with InnoDB; see scripts/install-engines.sh. */
export type InnodbServerName = 'mariadb-10' | 'mariadb-11' | 'mysql-9'

export const innodbServerNames: readonly InnodbServerName[] = [
  'mariadb-10',
  'mariadb-11',
  'mysql-9',
]

/** What the tests of this run start if it is installed: MariaDB 10.11, or with `HOLDFAST_ENGINES=all` each of them. */
export const innodbServersOfRun: readonly InnodbServerName[] =
  process.env['HOLDFAST_ENGINES'] === 'all' ? innodbServerNames : innodbServerNames.slice(0, 1)

/** How a server is run. */
export interface InnodbBinaries extends ServerProgram {
  readonly name: InnodbServerName
  readonly isMariadb: boolean
  /** Messages, and for MariaDB the tables of its own. */
  readonly share: string
}

/** Nothing if it is not installed here. */
export function innodbBinaries(name: InnodbServerName): InnodbBinaries | undefined {
  if (name === 'mariadb-10') {
    const file = '/usr/sbin/mariadbd'
    const share = '/usr/share/mysql'
    return existsSync(file) ? { name, isMariadb: true, file, lead: [], share } : undefined
  }
  const isMariadb = name === 'mariadb-11'
  const program = newestProgram(name, isMariadb ? 'mariadbd' : 'mysqld')
  if (program === undefined) return undefined
  const share = join(serversFolder(), name, 'usr/share', isMariadb ? 'mariadb' : 'mysql')
  return { name, isMariadb, ...program, share }
}

/** What makes the tables of MariaDB's own, for a server that is started with `--bootstrap`. */
export function mariadbTables({ share }: InnodbBinaries): string {
  const read = (part: string): string => {
    const files = ['mariadb', 'mysql'].map((brand) => join(share, `${brand}_${part}.sql`))
    const file = files.find((each) => existsSync(each))
    if (file === undefined) throw new Error(`none of ${files.join(', ')} is there`)
    return readFileSync(file, 'utf8')
  }
  return [
    'CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n',
    ...['system_tables', 'performance_tables', 'system_tables_data', 'sys_schema'].map(read),
  ].join('\n')
}
