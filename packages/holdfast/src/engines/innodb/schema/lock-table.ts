import type { Statement } from '../../../core/driver.ts'
import { tableText, Texts } from '../sql/text.ts'

/** Where the names of locks are: in the database of the connection unless another one is chosen. */
export function lockTable(database: string | undefined): string {
  return names.of('holdfast_lock', database === undefined ? '' : `.${database}`, () => {
    const name = { table: 'holdfast_lock' }
    return tableText(database === undefined ? name : { ...name, schema: database })
  })
}

const names = /* @__PURE__ */ new Texts()

/**
 * One row for each name that was ever locked. Holders write it, and so exclude each other until COMMIT. `seq` counts
 * them, by which a snapshot that is older than the last one is found out; `stamp` says which acquisition it was;
 * `conn` and `since` (microseconds) say who has it. The name is text, so that the server's own views show it.
 */
export function createLockTable(database: string | undefined): Statement {
  const text = `CREATE TABLE IF NOT EXISTS ${lockTable(database)} (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq BIGINT NOT NULL,
  stamp BIGINT NOT NULL,
  conn BIGINT NOT NULL,
  since BIGINT NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB`
  return { text, values: [] }
}
