import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fromNodeSqlite } from '../../../packages/holdfast/src/drivers/node-sqlite.ts'
import { migrate } from '../../../packages/holdfast/src/sqlite.ts'

/** A file in WAL mode that processes write to, and a connection that looks on. */
export interface SqliteFile extends AsyncDisposable {
  readonly path: string
  readonly db: DatabaseSync
  /** The first column of the only row. */
  number(sql: string, ...values: (string | number)[]): number
}

export async function openSqliteFile(tables: readonly string[]): Promise<SqliteFile> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-stress-sqlite-'))
  const path = join(folder, 'stress.db')
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 10000')
  const driver = fromNodeSqlite(() => new DatabaseSync(path))
  await migrate(driver)
  driver.close()
  for (const table of tables) db.exec(table)
  return {
    path,
    db,
    number: (sql, ...values) => Number(Object.values(db.prepare(sql).get(...values) ?? {})[0]),
    async [Symbol.asyncDispose]() {
      db.close()
      await rm(folder, { recursive: true })
    },
  }
}
