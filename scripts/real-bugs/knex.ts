import type { RealBug } from './real-bug.ts'

interface Knex {
  readonly migrate: { list(config: { directory: string }): Promise<unknown> }
  destroy(): Promise<void>
}

type CreateKnex = (config: { client: 'pg'; connection: string }) => Knex

/** What each of two deployments does that start at the same time and look at the migrations. */
async function listMigrations(load: NodeJS.Require, url: string, directory: string): Promise<void> {
  const createKnex = load('knex') as CreateKnex
  const knex = createKnex({ client: 'pg', connection: url })
  try {
    await knex.migrate.list({ directory })
  } finally {
    await knex.destroy()
  }
}

/**
 * `knex_migrations_lock` must hold exactly one row: with two, no later run can take the lock. Here
 * the tables exist and the row does not yet.
 */
const prepare: RealBug['prepare'] = async (load, url, scratch) => {
  // Knex makes its own tables, and the lock row with them.
  await listMigrations(load, url, scratch)
  return {
    seed: 'DELETE FROM knex_migrations_lock',
    flow: (reach) => listMigrations(load, reach.url, scratch),
    check: 'SELECT count(*) = 1 AS holds FROM knex_migrations_lock',
  }
}

export const knexBugs: readonly RealBug[] = [
  {
    release: 'knex@0.95.11',
    scene: 'migrate.list() twice, the lock row missing',
    known: 'race',
    prepare,
  },
]
