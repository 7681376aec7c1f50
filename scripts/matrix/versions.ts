/** One client at several of its versions. */
export interface Client {
  readonly name: string
  /** Files of the conformance suite, by the beginnings of their names. */
  readonly suites: readonly string[]
  /** What is installed for a version. */
  readonly packages: (version: string) => Readonly<Record<string, string>>
  /** Oldest first; the last is the one that every run of the tests has. */
  readonly versions: readonly string[]
  readonly generates?: boolean
}

const same =
  (...names: readonly string[]) =>
  (version: string): Readonly<Record<string, string>> =>
    Object.fromEntries(names.map((name) => [name, version]))

/** docs/drivers.md shows this list; a test compares them. */
export const clients: readonly Client[] = [
  {
    name: 'pg',
    suites: ['pg.test'],
    packages: same('pg'),
    versions: ['8.11.6', '8.16.3', '8.20.0', '8.21.0', '8.23.1'],
  },
  {
    name: 'postgres.js',
    suites: ['postgres-js'],
    packages: same('postgres'),
    versions: ['3.4.5', '3.4.9'],
  },
  {
    name: 'Prisma',
    suites: ['prisma'],
    packages: same('@prisma/client', '@prisma/adapter-pg', 'prisma'),
    versions: ['7.10.0'],
    generates: true,
  },
  {
    name: 'Drizzle',
    suites: ['drizzle-node-postgres', 'drizzle-postgres-js'],
    packages: same('drizzle-orm'),
    versions: ['0.44.7', '0.45.4'],
  },
  {
    name: 'Kysely',
    suites: ['kysely'],
    packages: same('kysely'),
    versions: ['0.28.18', '0.29.9'],
  },
  {
    name: 'Knex',
    suites: ['knex'],
    packages: same('knex'),
    versions: ['2.5.1', '3.3.0'],
  },
  {
    name: 'MikroORM',
    suites: ['mikro-orm'],
    packages: same('@mikro-orm/core', '@mikro-orm/postgresql'),
    versions: ['7.2.2'],
  },
  {
    name: 'Sequelize',
    suites: ['sequelize'],
    packages: same('sequelize'),
    versions: ['6.37.8'],
  },
  {
    name: 'TypeORM',
    suites: ['typeorm'],
    packages: same('typeorm'),
    versions: ['0.3.31', '1.1.1'],
  },
]
