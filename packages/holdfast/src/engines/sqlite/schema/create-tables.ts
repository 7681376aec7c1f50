import type { SqliteDriver } from '../driver.ts'
import { plain } from '../tx/transaction.ts'
import { createTables } from './tables.ts'

const present = plain("SELECT name FROM sqlite_master WHERE name LIKE 'holdfast%'")

/** Makes the tables that are missing, in one transaction; where none is, it waits for nobody. */
export async function createTablesOn<Tx>(driver: SqliteDriver<Tx>): Promise<void> {
  const there = new Set((await driver.alone.query(present)).map(({ name }) => name))
  const missing = createTables.filter(({ text }) => !there.has(nameIn(text)))
  if (missing.length === 0) return
  await driver.transaction(
    async (transaction) => {
      for (const statement of missing) await transaction.query(statement)
    },
    { scopes: [] },
  )
}

/** Of a table, or of an index. */
function nameIn(text: string): string | undefined {
  return /IF NOT EXISTS (\w+)/.exec(text)?.[1]
}
