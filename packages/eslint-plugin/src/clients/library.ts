/** The clients whose statements and transactions the rules know. */
export type Library = 'prisma' | 'drizzle' | 'kysely' | 'typeorm' | 'pg'

/** What an expression is known to be. */
export interface Known {
  readonly library: Library | 'holdfast'
  /** Whether it is surely not the handle of a transaction. */
  readonly isRoot: boolean
}

const drizzleRoots =
  /^(NodePg|PostgresJs|Neon\w*|Vercel\w*|AwsDataApi\w*|Pg(lite|Remote)|MySql2?|PlanetScale\w*)Database$/

/** What a class or a type of a package is to us. */
export function knownType(packageName: string, name: string): Known | undefined {
  if (packageName === 'kysely') {
    // `db.transaction()` of a Transaction throws: what opens one is no transaction, whatever its type says.
    if (name === 'Kysely') return { library: 'kysely', isRoot: true }
    return name === 'Transaction' ? { library: 'kysely', isRoot: false } : undefined
  }
  if (packageName === 'typeorm') {
    if (name === 'DataSource' || name === 'Connection') return { library: 'typeorm', isRoot: true }
    return /^(EntityManager|Repository|TreeRepository)$/.test(name)
      ? { library: 'typeorm', isRoot: false }
      : undefined
  }
  if (packageName === 'drizzle-orm') {
    if (drizzleRoots.test(name)) return { library: 'drizzle', isRoot: true }
    return /^(Pg|MySql)(Transaction|Database)$/.test(name)
      ? { library: 'drizzle', isRoot: false }
      : undefined
  }
  if (packageName === 'pg') {
    if (name === 'Pool') return { library: 'pg', isRoot: true }
    return name === 'PoolClient' ? { library: 'pg', isRoot: false } : undefined
  }
  if (packageName === 'holdfast') {
    return name === 'Holdfast' ? { library: 'holdfast', isRoot: true } : undefined
  }
  return undefined
}

/** `PrismaClient`, wherever it was generated to, and what applications call their subclass of it. */
export function isPrismaRootName(name: string): boolean {
  return /^(Extended|Custom|Typed)?Prisma(Client|Service)$/.test(name)
}
