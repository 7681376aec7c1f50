/** A client that Holdfast works in, as `holdfast init` knows it. */
export interface Client {
  readonly name: string
  /** The package in package.json that shows that it is used. */
  readonly package: string
  /** Others that must be there as well; the first client that fits is taken. */
  readonly needs?: readonly string[]
  readonly imports: readonly string[]
  /** Makes the client from `connectionString`, and exports it. */
  readonly body: string
  readonly driver: string
  readonly from: string
}

const pool = 'const pool = new pg.Pool({ connectionString })'

/** Those that know more than others come first: Drizzle and Kysely bring pg along. */
export const clients: readonly Client[] = [
  {
    name: 'prisma',
    package: '@prisma/client',
    imports: [
      "import { PrismaPg } from '@prisma/adapter-pg'",
      "import { PrismaClient } from '<generated>'",
    ],
    needs: ['@prisma/adapter-pg'],
    body: `export const prisma = new PrismaClient({
  adapter: new PrismaPg({ connectionString }),
})`,
    driver: 'prisma',
    from: 'fromPrisma(prisma)',
  },
  {
    name: 'drizzle',
    package: 'drizzle-orm',
    needs: ['pg'],
    imports: [
      "import { sql } from 'drizzle-orm'",
      "import { drizzle } from 'drizzle-orm/node-postgres'",
      "import pg from 'pg'",
    ],
    body: `export ${pool}\nexport const db = drizzle(pool)`,
    driver: 'drizzle',
    from: 'fromDrizzle(db, sql)',
  },
  {
    name: 'drizzle on postgres.js',
    package: 'drizzle-orm',
    needs: ['postgres'],
    imports: [
      "import { sql } from 'drizzle-orm'",
      "import { drizzle } from 'drizzle-orm/postgres-js'",
      "import postgres from 'postgres'",
    ],
    body: 'export const client = postgres(connectionString)\nexport const db = drizzle(client)',
    driver: 'drizzle',
    from: 'fromDrizzle(db, sql)',
  },
  {
    name: 'mikro-orm',
    package: '@mikro-orm/postgresql',
    imports: ["import { MikroORM } from '@mikro-orm/postgresql'"],
    body: `export const orm = await MikroORM.init({
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
    imports: ["import { DataSource } from 'typeorm'"],
    body: `export const dataSource = new DataSource({
  type: 'postgres',
  url: connectionString,
  // Your entities.
  entities: [],
})
await dataSource.initialize()`,
    driver: 'typeorm',
    from: 'fromTypeOrm(dataSource)',
  },
  {
    name: 'sequelize',
    package: 'sequelize',
    imports: ["import { Sequelize } from 'sequelize'"],
    body: "export const sequelize = new Sequelize(connectionString, { dialect: 'postgres', logging: false })",
    driver: 'sequelize',
    from: 'fromSequelize(sequelize)',
  },
  {
    name: 'kysely',
    package: 'kysely',
    needs: ['pg'],
    imports: ["import { Kysely, PostgresDialect } from 'kysely'", "import pg from 'pg'"],
    body: `/** Your tables. */
export interface Database {
  readonly account: { readonly id: string; readonly balance: number }
}

export ${pool}
export const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })`,
    driver: 'kysely',
    from: 'fromKysely(db)',
  },
  {
    name: 'knex',
    package: 'knex',
    imports: ["import knex from 'knex'"],
    body: "export const db = knex({ client: 'pg', connection: connectionString })",
    driver: 'knex',
    from: 'fromKnex(db)',
  },
  {
    name: 'postgres',
    package: 'postgres',
    imports: ["import postgres from 'postgres'"],
    body: 'export const sql = postgres(connectionString)',
    driver: 'postgres-js',
    from: 'fromPostgresJs(sql)',
  },
  {
    name: 'pg',
    package: 'pg',
    imports: ["import pg from 'pg'"],
    body: `export ${pool}`,
    driver: 'pg',
    from: 'fromPg(pool)',
  },
]
