import type { Driver } from './driver.ts'
import type { EngineName } from './engine.ts'
import { holdfastError } from './errors.ts'

/** Something that people pass where a client belongs, by its shape: no client is imported for it. */
interface Kind {
  /** What it is, with its article. */
  readonly is: string
  /** What fits instead. */
  readonly use: string
  has(given: Shape): boolean
}

type Shape = Readonly<Record<PropertyKey, unknown>>

const can = (given: Shape, ...methods: readonly string[]): boolean =>
  methods.every((method) => typeof given[method] === 'function')

/** Which dialect it has is hidden; how it writes a name is not. */
function hasBackticks(given: Shape): boolean {
  const { selectFrom } = given as {
    selectFrom?(table: string): { compile(): { readonly sql: string } }
  }
  if (typeof selectFrom !== 'function') return false
  return selectFrom.call(given, 'a').compile().sql.includes('`')
}

function quotesWith(dialect: unknown): unknown {
  const { escapeName } = (dialect ?? {}) as { escapeName?(name: string): string }
  return typeof escapeName === 'function' ? escapeName.call(dialect, 'a') : undefined
}

const typeIn = (options: unknown): unknown => (options as Shape | null | undefined)?.['type']

const nameOf = (engine: unknown): unknown => (engine as Shape | null | undefined)?.['name']

/** The first that fits is it, so those that have what others have as well come first. */
const kinds: Readonly<Record<ClientKind, Kind>> = {
  holdfast: {
    is: 'a Holdfast',
    use: 'pass the driver that it was made from',
    has: (given) => can(given, 'guard', 'tryGuard', 'close'),
  },
  driver: {
    is: 'a driver of Holdfast',
    use: 'pass it to createHoldfast',
    has: (given) =>
      typeof nameOf(given['engine']) === 'string' && can(given, 'join', 'transaction'),
  },
  prismaMysql: {
    is: 'a Prisma client for MariaDB and MySQL',
    use: 'there is no driver for it: use fromMysql2 or fromMariadb with a pool of your own',
    has: (given) => kinds.prisma.has(given) && given['_activeProvider'] === 'mysql',
  },
  prismaSqlite: {
    is: 'a Prisma client for SQLite',
    use: 'a write on the client itself would become part of the open transaction, and be rolled back with it: use fromBetterSqlite3, fromKyselySqlite or fromDrizzleSqlite',
    has: (given) => kinds.prisma.has(given) && given['_activeProvider'] === 'sqlite',
  },
  prisma: {
    is: 'a Prisma client',
    use: 'use fromPrisma',
    has: (given) => can(given, '$transaction', '$queryRawUnsafe'),
  },
  kyselyMysql: {
    is: 'a Kysely instance for MariaDB and MySQL',
    use: 'use fromKyselyMysql of holdfast/drivers/kysely-mysql',
    has: (given) => kinds.kysely.has(given) && hasBackticks(given),
  },
  kysely: {
    is: 'a Kysely instance',
    use: 'use fromKysely',
    has: (given) => typeof given['isTransaction'] === 'boolean' && can(given, 'executeQuery'),
  },
  typeormMysql: {
    is: 'a TypeORM DataSource for MariaDB and MySQL',
    use: 'use fromTypeOrmMysql of holdfast/drivers/typeorm-mysql',
    has: (given) =>
      kinds.typeorm.has(given) && /^(?:mysql|mariadb)$/.test(String(typeIn(given['options']))),
  },
  typeormSqlite: {
    is: 'a TypeORM DataSource for SQLite',
    use: 'its transactions share one connection, so that one ends the other: use fromBetterSqlite3, fromKyselySqlite or fromDrizzleSqlite',
    has: (given) =>
      kinds.typeorm.has(given) && /sql(?:ite|js)/.test(String(typeIn(given['options']))),
  },
  typeorm: {
    is: 'a TypeORM DataSource',
    use: 'use fromTypeOrm',
    has: (given) => can(given, 'createQueryRunner', 'transaction', 'getRepository'),
  },
  drizzleMysql: {
    is: 'a Drizzle database for MariaDB and MySQL',
    use: 'use fromDrizzleMysql of holdfast/drivers/drizzle-mysql',
    has: (given) => kinds.drizzle.has(given) && quotesWith(given['dialect']) === '`a`',
  },
  drizzle: {
    is: 'a Drizzle database',
    use: 'use fromDrizzle(db, sql)',
    has: (given) => 'dialect' in given && can(given, 'execute', 'transaction', 'select'),
  },
  bunSql: {
    is: "Bun's own SQL client",
    use: 'it does not show what Holdfast has to see of a transaction: use postgres.js or pg, which run on Bun as well',
    has: (given) => can(given, 'unsafe', 'begin', 'beginDistributed', 'commitDistributed'),
  },
  nodeSqlite: {
    is: 'a connection of node:sqlite',
    use: 'use fromNodeSqlite(() => new DatabaseSync(path)): guards need connections that nobody else uses',
    has: (given) => can(given, 'prepare', 'exec', 'location', 'applyChangeset'),
  },
  betterSqlite3: {
    is: 'a connection of better-sqlite3',
    use: 'use fromBetterSqlite3(() => new Database(path)): guards need connections that nobody else uses',
    has: (given) => can(given, 'prepare', 'exec', 'pragma', 'transaction'),
  },
  neonHttp: {
    is: "Neon's client for HTTP",
    use: 'no transaction stays open between its requests: use fromPg with the Pool of @neondatabase/serverless',
    has: (given) => can(given, 'unsafe', 'query', 'transaction') && !can(given, 'begin'),
  },
  postgresJs: {
    is: 'the sql of postgres.js',
    use: 'use fromPostgresJs',
    has: (given) => can(given, 'unsafe', 'begin'),
  },
  knex: {
    is: 'a Knex instance',
    use: 'use fromKnex',
    has: (given) => can(given, 'raw', 'transaction') && 'client' in given,
  },
  sequelize: {
    is: 'a Sequelize instance',
    use: 'use fromSequelize',
    has: (given) => can(given, 'getQueryInterface', 'transaction'),
  },
  mikroOrm: {
    is: 'a MikroORM instance',
    use: 'use fromMikroOrm(orm.em)',
    has: (given) => 'em' in given && 'config' in given && can(given, 'connect'),
  },
  mikroOrmManager: {
    is: 'an entity manager of MikroORM',
    use: 'use fromMikroOrm',
    has: (given) => can(given, 'getTransactionContext', 'transactional'),
  },
  pglite: {
    is: 'a PGlite',
    use: 'it is one session, so that its locks exclude nobody: use a PostgreSQL server',
    has: (given) => can(given, 'execProtocol', 'transaction'),
  },
  duckdb: {
    is: 'a DuckDB',
    use: 'it has no locks, and no second process can open its file: a mutex of your own is enough; see docs/other-databases.md',
    has: (given) =>
      can(given, 'runAndReadAll', 'streamAndRead') ||
      (can(given, 'connect', 'closeSync') && !can(given, 'query')),
  },
  mssql: {
    is: 'a pool of SQL Server',
    use: 'Holdfast has no engine for it: use sp_getapplock; see docs/other-databases.md',
    has: (given) => can(given, 'request', 'batch', 'transaction') && 'connected' in given,
  },
  mongodb: {
    is: 'a client of MongoDB',
    use: 'Holdfast has no engine for it: use a unique index, or a conditional update; see docs/other-databases.md',
    has: (given) =>
      can(given, 'startSession', 'db') || can(given, 'collection', 'listCollections', 'command'),
  },
  d1: {
    is: 'a D1 database',
    use: 'no transaction of it stays open: use a unique index, or a conditional update; see docs/other-databases.md',
    has: (given) => can(given, 'prepare', 'batch', 'exec', 'withSession'),
  },
  pgPool: {
    is: 'a pg.Pool',
    use: 'use fromPg',
    has: (given) => typeof given['totalCount'] === 'number' && can(given, 'connect', 'query'),
  },
  pgClient: {
    is: 'a single pg.Client',
    use: 'use fromPg with a pg.Pool: guards at the same time need connections of their own',
    has: (given) => 'connectionParameters' in given && can(given, 'connect', 'query'),
  },
  pgModule: {
    is: 'the module pg',
    use: 'use fromPg(new pg.Pool())',
    has: (given) => can(given, 'Pool', 'Client'),
  },
}

/** A client by the name of its driver. */
export type ClientKind =
  | 'holdfast'
  | 'driver'
  | 'prisma'
  | 'prismaMysql'
  | 'prismaSqlite'
  | 'kysely'
  | 'kyselyMysql'
  | 'typeorm'
  | 'typeormMysql'
  | 'typeormSqlite'
  | 'drizzle'
  | 'drizzleMysql'
  | 'bunSql'
  | 'nodeSqlite'
  | 'betterSqlite3'
  | 'neonHttp'
  | 'postgresJs'
  | 'knex'
  | 'sequelize'
  | 'mikroOrm'
  | 'mikroOrmManager'
  | 'pglite'
  | 'duckdb'
  | 'mssql'
  | 'mongodb'
  | 'd1'
  | 'pgPool'
  | 'pgClient'
  | 'pgModule'

function kindOf(given: unknown): ClientKind | undefined {
  if ((typeof given !== 'object' && typeof given !== 'function') || given === null) return undefined
  const all = Object.entries(kinds) as [ClientKind, Kind][]
  try {
    return all.find(([, { has }]) => has(given as Shape))?.[0]
  } catch {
    // Somebody's own object that does not like to be looked at.
    return undefined
  }
}

/**
 * For a function that takes the client of one library: says what it was given instead. `fits` is its own look at what it
 * needs of it, since wrappers of a client are as good; whatever is known to be something else is refused all the same.
 *
 * @throws DRIVER_HANDLE_INVALID
 */
export function assertClient(
  given: unknown,
  wanted: { readonly kind?: ClientKind; readonly by: string; readonly is: string },
  fits: boolean,
): void {
  const kind = kindOf(given)
  if (kind === undefined ? fits : kind === wanted.kind) return
  throw refused(given, `${wanted.by} takes ${wanted.is}`, kind)
}

const unfit: readonly (ClientKind | undefined)[] = [
  'bunSql',
  'neonHttp',
  'nodeSqlite',
  'betterSqlite3',
]

/**
 * For a driver of an ORM: refuses one that was put on a client that no driver fits.
 *
 * @throws DRIVER_HANDLE_INVALID
 */
export function assertBeneath(client: unknown, by: string): void {
  const kind = kindOf(client)
  if (unfit.includes(kind)) throw refused(client, `${by} needs pg or postgres.js beneath`, kind)
}

/** Where what a function offers is for the other products: the function of the same name, or else the first one. */
const elsewhere: Readonly<
  Record<
    EngineName,
    {
      readonly is: string
      readonly migrate: string
      readonly from: string
      readonly driver: string
    }
  >
> = {
  postgres: {
    is: 'PostgreSQL',
    from: 'holdfast',
    migrate: 'holdfast/schema',
    driver: 'fromPg(pool)',
  },
  innodb: {
    is: 'MariaDB and MySQL',
    from: 'holdfast/mysql',
    migrate: 'holdfast/mysql',
    driver: 'fromMysql2(pool)',
  },
  sqlite: {
    is: 'SQLite',
    from: 'holdfast/sqlite',
    migrate: 'holdfast/sqlite',
    driver: 'fromNodeSqlite(() => new DatabaseSync(path))',
  },
}

/** For something that is made over a driver; `engine` is whose it is, or any. @throws DRIVER_HANDLE_INVALID, ENGINE_MISMATCH */
export function assertDriver(
  given: unknown,
  by: string,
  wanted: EngineName | 'any' = 'postgres',
): asserts given is Driver<unknown> {
  const { engine, alone, join, transaction } = (given ?? {}) as Partial<Driver<unknown>>
  const isKnown = Object.hasOwn(elsewhere, engine?.name ?? '') && typeof alone === 'object'
  if (!isKnown || typeof join !== 'function' || typeof transaction !== 'function') {
    const { driver } = elsewhere[wanted === 'any' ? 'postgres' : wanted]
    throw refused(given, `${by} takes a driver, as ${driver} makes one`, kindOf(given))
  }
  const name = engine?.name ?? 'postgres'
  if (wanted === 'any' || name === wanted) return
  const { is, from, migrate } = elsewhere[name]
  const use = by.startsWith('migrate')
    ? `import migrate from ${migrate}`
    : `import createHoldfast from ${from}`
  const subject = `${by} is for ${elsewhere[wanted].is}, and this driver for ${is}: ${use}`
  throw holdfastError('ENGINE_MISMATCH', { details: { subject, use } })
}

/** Never the value: a connection string has a password in it. */
function refused(given: unknown, takes: string, kind: ClientKind | undefined): Error {
  const { is, use } = kind === undefined ? plainKind(given) : kinds[kind]
  return holdfastError('DRIVER_HANDLE_INVALID', {
    details: { subject: `${takes}; this is ${is}: ${use}`, given: is, use },
  })
}

function plainKind(given: unknown): Pick<Kind, 'is' | 'use'> {
  if (given === undefined || given === null)
    return { is: String(given), use: 'look whether it is made before it is passed' }
  if (typeof given === 'string')
    return {
      is: 'a text',
      use: 'of a connection string make a pool: new Pool({ connectionString })',
    }
  if (typeof (given as PromiseLike<unknown>).then === 'function')
    return { is: 'a promise', use: 'await it first' }
  if (typeof given === 'function')
    return { is: 'a function', use: 'pass an instance of the client' }
  if (typeof given !== 'object') return { is: `a ${typeof given}`, use: 'pass a client' }
  return { is: 'an object of another kind', use: 'see docs/drivers.md for the clients' }
}
