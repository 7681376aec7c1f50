import {
  closeForCopies,
  createDatabase,
  type PostgresServer,
  startPostgres,
} from '@holdfast/testkit'
import pg from 'pg'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { migrateFiles } from '../../../packages/holdfast/src/schema/migrate.ts'
import {
  ownFiles,
  type SchemaFile,
  type SchemaFiles,
} from '../../../packages/holdfast/src/schema/schema-files.ts'

/** A server for one mutant: to start another one is faster than to drop the databases of its tests. */
export interface MutantServer extends AsyncDisposable {
  readonly url: string
  /** Installs the schema with one file changed; answers the name of a database to copy, or why that cannot be. */
  install(file: string, text: string): Promise<{ database: string } | { problem: string }>
}

export async function startMutantServer(): Promise<MutantServer> {
  const server: PostgresServer = await startPostgres()
  return {
    url: server.url(),
    async install(file, text) {
      const url = await createDatabase(server.url(), 'installed')
      const pool = new pg.Pool({ connectionString: url, max: 1 })
      try {
        await migrateFiles(fromPg(pool), withText(file, text))
      } catch (error) {
        return { problem: String((error as Error).cause ?? error) }
      } finally {
        await pool.end()
      }
      return { database: await closeForCopies(url) }
    },
    [Symbol.asyncDispose]: () => server.stop('immediate'),
  }
}

/** The schema's files with another text of one. Its checksum stays: nobody is to take it for another version. */
function withText(file: string, text: string): SchemaFiles {
  const name = file.replace(/\.sql$/, '')
  const replace = (each: SchemaFile): SchemaFile => (each.name === name ? { ...each, text } : each)
  const files = ownFiles()
  return {
    ...files,
    migrations: files.migrations.map(replace),
    repeatables: files.repeatables.map(replace),
  }
}
