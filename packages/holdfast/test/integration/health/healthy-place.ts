import { type PostgresServer, type PostgresVersion, startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import type { Driver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { examine, type HealthFinding, type HealthOptions } from '../../../src/health/index.ts'
import { grants, migrate } from '../../../src/schema/index.ts'
import { hostileIfAsked } from '../../support/hostile-database.ts'

/** A database where all is well: the schema, and a role `app` with its privileges and timeouts. */
export interface HealthyPlace {
  readonly url: string
  readonly pool: pg.Pool
  readonly driver: Driver<pg.PoolClient>
  look(options?: HealthOptions): Promise<readonly HealthFinding[]>
  /** Runs statements one by one, on a connection that knows the latest settings. */
  run(sql: string): Promise<void>
  close(): Promise<void>
}

/** A server as production has it: what tests turn off to be quick is on again. */
export function healthyServer(
  version?: PostgresVersion,
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresServer> {
  return startPostgres({
    ...(version === undefined ? {} : { version }),
    settings: { fsync: undefined, max_prepared_transactions: '5', ...settings },
  })
}

/** Settings that `doctor` asks for, here given to the application's role. */
const makeRole = `
DO $$ BEGIN
  IF to_regrole('app') IS NULL THEN CREATE ROLE app LOGIN; END IF;
END $$;
ALTER ROLE app SET statement_timeout = '30s';
ALTER ROLE app SET lock_timeout = '5s';
ALTER ROLE app SET idle_in_transaction_session_timeout = '1min'`

/** The place on a server that is up; a database of its own. */
export async function healthyPlace(server: PostgresServer): Promise<HealthyPlace> {
  const url = await hostileIfAsked(await server.createDatabase())
  const place = openPlace(url)
  await migrate(place.driver)
  await place.pool.query(makeRole)
  await place.pool.query(grants({ role: 'app' }))
  return place
}

/** A place as it is, at any address. */
export function openPlace(url: string, max = 4): HealthyPlace {
  const pool = new pg.Pool({ connectionString: url, max })
  // Backends are ended on purpose.
  pool.on('error', () => undefined)
  const driver = fromPg(pool)
  return {
    url,
    pool,
    driver,
    look: (options = {}) => examine(driver, { role: 'app', ...options }),
    async run(sql) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        for (const statement of statementsOf(sql)) await client.query(statement)
      } finally {
        await client.end()
      }
    },
    close: () => pool.end(),
  }
}

/** ALTER SYSTEM, and what builds CONCURRENTLY, must come alone; bodies of functions stay whole. */
function statementsOf(sql: string): string[] {
  return sql.includes('$$') ? [sql] : sql.split(/;\s*/).filter((statement) => statement !== '')
}
