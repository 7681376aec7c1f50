import { type Client, clients } from './clients.ts'
import { Failed, Misuse, notFound } from '../failure.ts'

/** Clients of MariaDB and MySQL that there is a driver for. */
const ofMysql = ['mysql2', 'mariadb']

/** Clients of databases that `init` writes no file for. */
const elsewhere = [
  ...ofMysql,
  'mysql',
  'better-sqlite3',
  'sqlite3',
  'mssql',
  'tedious',
  'oracledb',
  'mongodb',
  'mongoose',
  '@libsql/client',
  '@planetscale/database',
  '@mikro-orm/mysql',
  '@mikro-orm/mariadb',
  '@mikro-orm/sqlite',
  '@mikro-orm/better-sqlite',
  '@mikro-orm/libsql',
  '@mikro-orm/mssql',
  '@mikro-orm/mongodb',
  '@prisma/adapter-better-sqlite3',
  '@prisma/adapter-libsql',
  '@prisma/adapter-mariadb',
  '@prisma/adapter-mssql',
  '@prisma/adapter-planetscale',
  '@prisma/adapter-d1',
]

/** Whoever has one of these talks to PostgreSQL. */
const postgres = ['pg', 'postgres', '@prisma/adapter-pg', '@mikro-orm/postgresql']

/** A client that fits the project, and those that would have fitted as well. */
export interface Choice {
  readonly client: Client
  readonly others: readonly Client[]
}

/** The client that was named, or the one that knows most of those that are installed. @throws Failed, Misuse */
export function chooseClient(installed: ReadonlySet<string>, wanted: string | undefined): Choice {
  const names = clients.map(({ name }) => name).join(', ')
  if (wanted !== undefined) {
    const client = clients.find(({ name }) => name === wanted)
    if (client === undefined) throw new Misuse(`--client is one of: ${names}.`)
    return { client, others: [] }
  }
  const foreign = elsewhere.filter((name) => installed.has(name))
  if (foreign.length > 0 && !postgres.some((name) => installed.has(name))) {
    const client = ofMysql.find((name) => installed.has(name))
    if (client !== undefined) throw written(client)
    throw unsupported(`package.json has ${foreign.join(', ')} and no client of PostgreSQL`)
  }
  const fitting = clients.filter((each) => fits(each, installed))
  // What another one uses is no choice of its own.
  const used = new Set(fitting.flatMap(({ needs = [], also = [] }) => [...needs, ...also]))
  const [client, ...others] = fitting.filter((each) => !used.has(each.package))
  if (client !== undefined) return { client, others }
  throw notFound(
    [
      'package.json names no client for PostgreSQL that is known here.',
      ...passedOver(installed),
    ].join('\n'),
    `Install one, or name it with --client: ${names}. Prisma needs @prisma/adapter-pg as well, Drizzle and Kysely need pg.`,
  )
}

function fits({ package: name, needs = [] }: Client, installed: ReadonlySet<string>): boolean {
  return [name, ...needs].every((each) => installed.has(each))
}

/** Dialects of others, which no file is written for. */
const dialects: Readonly<Record<string, readonly string[]>> = {
  kysely: ['kysely-postgres-js', 'kysely-neon', '@neondatabase/serverless', 'kysely-pglite'],
}

/** What is said of clients that are installed without what they need here. */
export function passedOver(installed: ReadonlySet<string>): string[] {
  return [...new Set(clients.map((each) => each.package))].flatMap((name) => {
    const ways = clients.filter((each) => each.package === name)
    if (!installed.has(name) || ways.some((each) => fits(each, installed))) return []
    const needed = ways.map(({ needs = [] }) => needs.join(' and ')).join(' or ')
    const other = (dialects[name] ?? []).find((each) => installed.has(each))
    const why = other === undefined ? '' : `: a file on ${other} is not written by init`
    return [
      `package.json has ${name} and not ${needed}, so ${name} was passed over${why}. To take it on ${needed}, add --client ${ways[0]?.name}.`,
    ]
  })
}

/** There is less of Holdfast on these, and its file is written by hand. */
function written(client: string): Failed {
  const driver = client === 'mariadb' ? 'fromMariadb' : 'fromMysql2'
  return new Failed({
    code: 'DATABASE_UNSUPPORTED',
    message: `package.json has ${client} and no client of PostgreSQL, which is what init writes a file for. Nothing was written.`,
    next: `On MariaDB and MySQL import createHoldfast and migrate from holdfast/mysql, and ${driver} from holdfast/drivers/${client}; docs/mysql.md has the file. If the project has a PostgreSQL database as well, name its client: --client pg.`,
  })
}

/** The project is one of another database. */
export function unsupported(why: string): Failed {
  return new Failed({
    code: 'DATABASE_UNSUPPORTED',
    message: `Holdfast works on PostgreSQL, and with mysql2 and mariadb on MariaDB and MySQL: ${why}. Nothing was written.`,
    next: 'If the project has a PostgreSQL database as well, name its client: --client pg.',
  })
}
