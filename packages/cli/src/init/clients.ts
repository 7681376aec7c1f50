/** One import of the file that is written. */
export interface Import {
  readonly from: string
  readonly names?: readonly string[]
  /** The module as a whole, under this name. */
  readonly whole?: string
  /** What that is in CommonJS: an object, a function, which no namespace can be, or one with a `default`. */
  readonly is?: 'object' | 'function' | 'default'
}

/** How the file is written. */
export interface Dialect {
  /** With types. */
  readonly typed: boolean
  /** It may wait while it is loaded, which CommonJS cannot. */
  readonly awaits: boolean
}

/** A client that Holdfast works in, as `holdfast init` knows it. */
export interface Client {
  /** What `--client` calls it. */
  readonly name: string
  /** The package in package.json that shows that it is used. */
  readonly package: string
  /** Others that must be there as well; the first client that fits is taken. */
  readonly needs?: readonly string[]
  /** What it loads by itself and does not bring along. */
  readonly also?: readonly string[]
  readonly imports: readonly Import[]
  /** Makes the client from `connectionString`, and exports it. */
  readonly body: (dialect: Dialect) => string
  readonly driver: string
  readonly from: string
}

const pg: Import = { from: 'pg', whole: 'pg', is: 'object' }
const postgres: Import = { from: 'postgres', whole: 'postgres', is: 'function' }
const pool = 'export const pool = new pg.Pool({ connectionString })'

/** Those that know more than others come first: Drizzle and Kysely bring pg along. */
export const clients: readonly Client[] = [
  {
    name: 'prisma',
    package: '@prisma/client',
    imports: [
      { from: '@prisma/adapter-pg', names: ['PrismaPg'] },
      { from: '<generated>', names: ['PrismaClient'] },
      pg,
    ],
    needs: ['@prisma/adapter-pg'],
    // The adapter has a pg of its own, which strict installers do not show to the project.
    also: ['pg'],
    body: () => `${pool}
export const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })`,
    driver: 'prisma',
    from: 'fromPrisma(prisma)',
  },
  {
    name: 'drizzle',
    package: 'drizzle-orm',
    needs: ['pg'],
    imports: [
      { from: 'drizzle-orm', names: ['sql'] },
      { from: 'drizzle-orm/node-postgres', names: ['drizzle'] },
      pg,
    ],
    body: () => `${pool}\nexport const db = drizzle({ client: pool })`,
    driver: 'drizzle',
    from: 'fromDrizzle(db, sql)',
  },
  {
    name: 'drizzle-postgres-js',
    package: 'drizzle-orm',
    needs: ['postgres'],
    imports: [
      { from: 'drizzle-orm', names: ['sql'] },
      { from: 'drizzle-orm/postgres-js', names: ['drizzle'] },
      postgres,
    ],
    body: () =>
      'export const client = postgres(connectionString)\nexport const db = drizzle({ client })',
    driver: 'drizzle',
    from: 'fromDrizzle(db, sql)',
  },
  {
    name: 'mikro-orm',
    package: '@mikro-orm/postgresql',
    imports: [{ from: '@mikro-orm/postgresql', names: ['MikroORM'] }],
    body: ({ awaits }) => `export const orm = ${awaits ? 'await MikroORM.init' : 'new MikroORM'}({
  clientUrl: connectionString,
  // Your entities.
  entities: [],
  discovery: { warnWhenNoEntities: false },
})`,
    driver: 'mikro-orm',
    from: 'fromMikroOrm(orm.em)',
  },
  {
    name: 'typeorm',
    package: 'typeorm',
    also: ['pg'],
    imports: [{ from: 'typeorm', names: ['DataSource'] }],
    body: ({ awaits }) => `export const dataSource = new DataSource({
  type: 'postgres',
  url: connectionString,
  // Your entities.
  entities: [],
})
${awaits ? 'await dataSource.initialize()' : '/** Wait for it where your program starts. */\nexport const ready = dataSource.initialize()'}`,
    driver: 'typeorm',
    from: 'fromTypeOrm(dataSource)',
  },
  {
    name: 'sequelize',
    package: 'sequelize',
    also: ['pg'],
    imports: [{ from: 'sequelize', names: ['Sequelize'] }],
    body: () =>
      "export const sequelize = new Sequelize(connectionString, { dialect: 'postgres', logging: false })",
    driver: 'sequelize',
    from: 'fromSequelize(sequelize)',
  },
  {
    name: 'kysely',
    package: 'kysely',
    needs: ['pg'],
    imports: [{ from: 'kysely', names: ['Kysely', 'PostgresDialect'] }, pg],
    body: ({ typed }) => `${typed ? tables : ''}${pool}
export const db = new Kysely${typed ? '<Database>' : ''}({ dialect: new PostgresDialect({ pool }) })`,
    driver: 'kysely',
    from: 'fromKysely(db)',
  },
  {
    name: 'knex',
    package: 'knex',
    also: ['pg'],
    imports: [{ from: 'knex', whole: 'knex', is: 'default' }],
    body: () => "export const db = knex({ client: 'pg', connection: connectionString })",
    driver: 'knex',
    from: 'fromKnex(db)',
  },
  {
    name: 'postgres',
    package: 'postgres',
    imports: [postgres],
    body: () => 'export const sql = postgres(connectionString)',
    driver: 'postgres-js',
    from: 'fromPostgresJs(sql)',
  },
  {
    name: 'pg',
    package: 'pg',
    imports: [pg],
    body: () => pool,
    driver: 'pg',
    from: 'fromPg(pool)',
  },
]

const tables = `/** Your tables. */
export interface Database {
  readonly account: { readonly id: string; readonly balance: number }
}

`
