import type { Driver } from './driver.ts'
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
    has: (given) => nameOf(given['engine']) === 'postgres' && can(given, 'join', 'transaction'),
  },
  prisma: {
    is: 'a Prisma client',
    use: 'use fromPrisma',
    has: (given) => can(given, '$transaction', '$queryRawUnsafe'),
  },
  kysely: {
    is: 'a Kysely instance',
    use: 'use fromKysely',
    has: (given) => typeof given['isTransaction'] === 'boolean' && can(given, 'executeQuery'),
  },
  typeorm: {
    is: 'a TypeORM DataSource',
    use: 'use fromTypeOrm',
    has: (given) => can(given, 'createQueryRunner', 'transaction', 'getRepository'),
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
  | 'kysely'
  | 'typeorm'
  | 'drizzle'
  | 'bunSql'
  | 'neonHttp'
  | 'postgresJs'
  | 'knex'
  | 'sequelize'
  | 'mikroOrm'
  | 'mikroOrmManager'
  | 'pglite'
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

const unfit: readonly (ClientKind | undefined)[] = ['bunSql', 'neonHttp']

/**
 * For a driver of an ORM: refuses one that was put on a client that no driver fits.
 *
 * @throws DRIVER_HANDLE_INVALID
 */
export function assertBeneath(client: unknown, by: string): void {
  const kind = kindOf(client)
  if (unfit.includes(kind)) throw refused(client, `${by} needs pg or postgres.js beneath`, kind)
}

/** @throws DRIVER_HANDLE_INVALID */
export function assertDriver(given: unknown, by: string): asserts given is Driver<unknown> {
  const { engine, alone, join, transaction } = (given ?? {}) as Partial<Driver<unknown>>
  const isDriver = engine?.name === 'postgres' && typeof alone === 'object'
  if (isDriver && typeof join === 'function' && typeof transaction === 'function') return
  throw refused(given, `${by} takes a driver, as fromPg(pool) makes one`, kindOf(given))
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
