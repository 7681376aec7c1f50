import type { RealBug } from './real-bug.ts'

interface RunnerOptions {
  readonly databaseUrl: string
  readonly dir: string
  readonly migrationsTable: string
  readonly direction: 'up'
  readonly count: number
  readonly log: () => void
}

type Runner = (options: RunnerOptions) => Promise<unknown>

/** Ends well, also when it is told that another runner is at work: that is what it promises. */
async function migrate(load: NodeJS.Require, databaseUrl: string, dir: string): Promise<void> {
  const { default: run } = load('node-pg-migrate') as { default: Runner }
  try {
    await run({
      databaseUrl,
      dir,
      migrationsTable: 'pgmigrations',
      direction: 'up',
      count: Number.POSITIVE_INFINITY,
      log: () => {},
    })
  } catch (error) {
    if (!(error instanceof Error && error.message === 'Another migration is already running')) {
      throw error
    }
  }
}

/** The first run on an empty database makes the table `pgmigrations`; two first runs meet there. */
const prepare: RealBug['prepare'] = async (load, _, scratch) => {
  return {
    seed: 'DROP TABLE IF EXISTS pgmigrations',
    flow: (reach) => migrate(load, reach.url, scratch),
    check: `SELECT to_regclass('pgmigrations') IS NOT NULL AS holds`,
  }
}

const scene = 'first run on an empty database, twice'

export const nodePgMigrateBugs: readonly RealBug[] = [
  { release: 'node-pg-migrate@5.10.0', scene, known: 'race', prepare },
  { release: 'node-pg-migrate@6.0.0', scene, known: 'race-free', prepare },
]
