/** Something that people pass where a client belongs, by its shape: no client is imported for it. */
export interface Kind {
  /** What it is, with its article. */
  readonly is: string
  /** What fits instead. */
  readonly use: string
  has(given: Shape): boolean
}

export type Shape = Readonly<Record<PropertyKey, unknown>>

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

/** PostgreSQL writes names as SQLite does, but can also undo changes of tables. */
function isSqliteAdapter(given: Shape): boolean {
  const { getExecutor } = given as {
    getExecutor?(): { readonly adapter?: Readonly<Record<string, unknown>> }
  }
  if (typeof getExecutor !== 'function') return false
  const { adapter } = getExecutor.call(given)
  return adapter?.['supportsReturning'] === true && adapter['supportsTransactionalDdl'] === false
}

function quotesWith(dialect: unknown): unknown {
  const { escapeName } = (dialect ?? {}) as { escapeName?(name: string): string }
  return typeof escapeName === 'function' ? escapeName.call(dialect, 'a') : undefined
}

const typeIn = (options: unknown): unknown => (options as Shape | null | undefined)?.['type']

const nameOf = (engine: unknown): unknown => (engine as Shape | null | undefined)?.['name']

/** The first that fits is it, so those that have what others have as well come first. */
export const kinds: Readonly<Record<ClientKind, Kind>> = {
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
  kyselySqlite: {
    is: 'a Kysely instance for SQLite',
    use: 'use fromKyselySqlite of holdfast/drivers/kysely-sqlite',
    has: (given) => kinds.kysely.has(given) && isSqliteAdapter(given),
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
  typeormManager: {
    is: 'an EntityManager of TypeORM',
    use: 'pass the DataSource itself',
    has: (given) => can(given, 'getRepository', 'transaction', 'query') && 'connection' in given,
  },
  drizzleMysql: {
    is: 'a Drizzle database for MariaDB and MySQL',
    use: 'use fromDrizzleMysql of holdfast/drivers/drizzle-mysql',
    has: (given) => kinds.drizzle.has(given) && quotesWith(given['dialect']) === '`a`',
  },
  drizzleSqlite: {
    is: 'a Drizzle database for SQLite',
    use: 'use fromDrizzleSqlite of holdfast/drivers/drizzle-sqlite',
    has: (given) => 'dialect' in given && can(given, 'run', 'all', 'transaction', 'select'),
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
  mysqlModule: {
    is: 'the module of a client for MariaDB and MySQL',
    use: 'use fromMysql2(createPool({ uri })) with the one of mysql2/promise, or fromMariadb(createPool(uri))',
    has: (given) => can(given, 'createPool', 'createConnection'),
  },
  mysqlCluster: {
    is: 'a cluster of pools for MariaDB and MySQL',
    use: 'its connections lead to several servers, and a lock on one excludes nobody on the others: pass a pool of the primary',
    // Of `mysql2`, with promises and without, and what `of()` gives; and of `mariadb`.
    has: (given) =>
      typeof (given['poolCluster'] ?? given['poolNamespace'] ?? given['_cluster']) === 'object' ||
      can(given, 'getConnection', 'add', 'remove', 'of') ||
      (can(given, 'getConnection', 'query', 'execute', 'batch') && !can(given, 'end')),
  },
  mariadbCallbackPool: {
    is: 'a pool of mariadb/callback',
    use: 'use fromMariadb with a pool of mariadb, whose calls give promises',
    has: (given) =>
      kinds.mariadbPool.has(given) && (given['getConnection'] as Shape)['length'] === 1,
  },
  mariadbPool: {
    is: 'a pool of mariadb',
    use: 'use fromMariadb',
    has: (given) => can(given, 'getConnection', 'execute', 'totalConnections'),
  },
  mysql2CallbackPool: {
    is: 'a pool of mysql2 without promises',
    use: 'use fromMysql2(pool.promise())',
    has: (given) => can(given, 'getConnection', 'execute', 'promise'),
  },
  mysql2Pool: {
    is: 'a pool of mysql2/promise',
    use: 'use fromMysql2',
    has: (given) => can(given, 'getConnection', 'execute', 'releaseConnection'),
  },
  mysqlPool: {
    is: 'a pool of the old client mysql',
    use: 'it prepares nothing, so that values would become text: use fromMysql2 with a pool of mysql2/promise',
    has: (given) =>
      can(given, 'getConnection', 'query', 'acquireConnection') && !can(given, 'execute'),
  },
  mysqlConnection: {
    is: 'a single connection to MariaDB or MySQL',
    use: 'use fromMysql2 or fromMariadb with a pool: guards at the same time need connections of their own',
    has: (given) => can(given, 'beginTransaction', 'query', 'commit', 'changeUser'),
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
  | 'kyselySqlite'
  | 'typeorm'
  | 'typeormMysql'
  | 'typeormSqlite'
  | 'typeormManager'
  | 'drizzle'
  | 'drizzleMysql'
  | 'drizzleSqlite'
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
  | 'mysqlModule'
  | 'mysqlCluster'
  | 'mariadbCallbackPool'
  | 'mariadbPool'
  | 'mysql2CallbackPool'
  | 'mysql2Pool'
  | 'mysqlPool'
  | 'mysqlConnection'
