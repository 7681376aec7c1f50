import type { Driver } from './driver.ts'
import type { EngineName } from './engine.ts'
import { type ClientKind, type Kind, kinds, type Shape } from './clients/client-kinds.ts'
import { holdfastError } from './errors.ts'

export type { ClientKind } from './clients/client-kinds.ts'

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
  wanted: {
    readonly kind?: ClientKind
    readonly by: string
    readonly is: string
    /** Of which product the client is; PostgreSQL if nothing is said. */
    readonly engine?: EngineName
  },
  fits: boolean,
): void {
  const kind = kindOf(given)
  if (kind === undefined ? fits : kind === wanted.kind) return
  throw refused(given, `${wanted.by} takes ${wanted.is}`, kind, wanted.engine)
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

/** The products: how they are called, and where what is for them is. */
const elsewhere: Readonly<
  Record<
    EngineName,
    {
      readonly is: string
      /** The page about what is offered. */
      readonly page: string
      readonly has: 'has' | 'have'
      readonly from: string
      readonly driver: string
      /** What to make of a text, which is an address or a path. */
      readonly ofText: string
    }
  >
> = {
  postgres: {
    is: 'PostgreSQL',
    from: 'holdfast',
    page: 'README.md',
    has: 'has',
    driver: 'fromPg(pool)',
    ofText: 'of a connection string make a pool: new Pool({ connectionString })',
  },
  innodb: {
    is: 'MariaDB and MySQL',
    from: 'holdfast/mysql',
    page: 'mysql.md',
    has: 'have',
    driver: 'fromMysql2(pool)',
    ofText: 'of a connection string make a pool: createPool({ uri }) of mysql2/promise',
  },
  sqlite: {
    is: 'SQLite',
    from: 'holdfast/sqlite',
    page: 'sqlite.md',
    has: 'has',
    driver: 'fromNodeSqlite(() => new DatabaseSync(path))',
    ofText: 'of a path make a driver: fromNodeSqlite(() => new DatabaseSync(path))',
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
    const of = wanted === 'any' ? 'postgres' : wanted
    const takes = `${by} takes a driver, as ${elsewhere[of].driver} makes one`
    throw refused(given, takes, kindOf(given), of)
  }
  const name = engine?.name ?? 'postgres'
  if (wanted === 'any' || name === wanted) return
  const { is } = elsewhere[name]
  const use = useElsewhere(by, name)
  const subject = `${by} is for ${elsewhere[wanted].is}, and this driver for ${is}: ${use}`
  throw holdfastError('ENGINE_MISMATCH', { details: { subject, use } })
}

/** Functions of their own beside those of createHoldfast, and where they are. What is missing there is not offered. */
const ownFunctions: Readonly<Record<string, Partial<Readonly<Record<EngineName, string>>>>> = {
  migrate: { postgres: 'holdfast/schema', innodb: 'holdfast/mysql', sqlite: 'holdfast/sqlite' },
  inspect: { postgres: 'holdfast/schema' },
  examine: { postgres: 'holdfast/health', innodb: 'holdfast/mysql' },
  createObserver: { postgres: 'holdfast/observe', innodb: 'holdfast/mysql' },
  createInterventions: { postgres: 'holdfast/observe', innodb: 'holdfast/mysql' },
  startRecorder: { postgres: 'holdfast/observe' },
}

/** What there is for the product of a driver. */
function useElsewhere(by: string, engine: EngineName): string {
  const [name = by] = by.split(' ')
  const own = Object.hasOwn(ownFunctions, name) ? ownFunctions[name] : undefined
  if (own === undefined) return `import createHoldfast from ${elsewhere[engine].from}`
  const from = own[engine]
  if (from !== undefined) return `import ${name} from ${from}`
  const { is, page, has } = elsewhere[engine]
  return `${is} ${has} no ${name}: see docs/${page}`
}

/** Never the value: a connection string has a password in it. */
function refused(
  given: unknown,
  takes: string,
  kind: ClientKind | undefined,
  engine: EngineName = 'postgres',
): Error {
  const { is, use } = kind === undefined ? plainKind(given, engine) : kinds[kind]
  return holdfastError('DRIVER_HANDLE_INVALID', {
    details: { subject: `${takes}; this is ${is}: ${use}`, given: is, use },
  })
}

function plainKind(given: unknown, engine: EngineName): Pick<Kind, 'is' | 'use'> {
  if (given === undefined || given === null)
    return { is: String(given), use: 'look whether it is made before it is passed' }
  if (typeof given === 'string') return { is: 'a text', use: elsewhere[engine].ofText }
  if (typeof (given as PromiseLike<unknown>).then === 'function')
    return { is: 'a promise', use: 'await it first' }
  if (typeof given === 'function') {
    const opening = `pass it to a driver: ${elsewhere.sqlite.driver}`
    return {
      is: 'a function',
      use: engine === 'sqlite' ? opening : 'pass an instance of the client',
    }
  }
  if (typeof given !== 'object') return { is: `a ${typeof given}`, use: 'pass a client' }
  return { is: 'an object of another kind', use: 'see docs/drivers.md for the clients' }
}
