import { Failed, Misuse, notFound } from '../command.ts'
import { type Client, clients } from './clients.ts'

/** Clients of databases that Holdfast does not work on. */
const elsewhere = [
  'mysql2',
  'mysql',
  'mariadb',
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
    throw unsupported(`package.json has ${foreign.join(', ')} and no client of PostgreSQL`)
  }
  const fitting = clients.filter((each) =>
    [each.package, ...(each.needs ?? [])].every((name) => installed.has(name)),
  )
  // What another one uses is no choice of its own.
  const used = new Set(fitting.flatMap(({ needs = [], also = [] }) => [...needs, ...also]))
  const [client, ...others] = fitting.filter((each) => !used.has(each.package))
  if (client !== undefined) return { client, others }
  throw notFound(
    'package.json names no client for PostgreSQL that is known here.',
    `Install one, or name it with --client: ${names}. Prisma needs @prisma/adapter-pg as well, Drizzle and Kysely need pg.`,
  )
}

/** The project is one of another database. */
export function unsupported(why: string): Failed {
  return new Failed({
    code: 'DATABASE_UNSUPPORTED',
    message: `Holdfast works only on PostgreSQL: ${why}. Nothing was written.`,
    next: 'If the project has a PostgreSQL database as well, name its client: --client pg.',
  })
}
