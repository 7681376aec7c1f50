import type { Executor, Statement } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { asOurs } from '../../core/open-transactions.ts'
import type { SqliteDriver, SqliteTransaction } from '../../engines/sqlite/driver.ts'
import { sqlite } from '../../engines/sqlite/engine.ts'
import { unfit } from '../../engines/sqlite/file-fit.ts'
import { withSavepoint } from '../../engines/sqlite/tx/savepoint.ts'
import { files, noTimeout, takeWriter, timeout } from '../../engines/sqlite/tx/transaction.ts'
import { type SqliteConnection, SqliteConnections } from './sqlite-connection.ts'
import { ownTransaction, runOnSqlite } from './sqlite-run.ts'

/** A client of SQLite that answers at once. */
export interface SyncClient<Tx> {
  readonly name: string
  /** A new connection, by the caller's function. @throws DRIVER_HANDLE_INVALID */
  open(): SqliteConnection<Tx>
  /** A connection of the caller's. @throws DRIVER_HANDLE_INVALID */
  connectionOf(tx: Tx): SqliteConnection<Tx>
}

/** How long a statement on its own waits for who writes. */
const aloneLimitMs = 10_000

/** A driver over a client that answers at once. */
export function sqliteDriverOver<Tx extends object>({
  name,
  open,
  connectionOf,
}: SyncClient<Tx>): SqliteDriver<Tx> {
  const connections = new SqliteConnections(() => asOurs(open))
  const alone: Executor = {
    query: async ({ text, values, connectWithinMs: limitMs = aloneLimitMs }) => {
      const { writer } = connections
      const ask = (): ReturnType<SqliteConnection<Tx>['send']> =>
        connections.alone.send(text, values)
      return await writer.untilFree(ask, { attempt: false, limitMs, signal: undefined })
    },
  }
  const driver: SqliteDriver<Tx> = {
    name,
    engine: sqlite,
    // The wait for the right to write is limited here, which is all that BEGIN can wait for.
    capabilities: { connectsWithin: true },
    alone,
    join: (tx) => ownTransaction(tx) ?? joined(connectionOf(tx), tx, driver),
    transaction: (body, settings) => runOnSqlite(driver, connections, body, settings),
    writer: () => connections.writer,
    close: () => connections.close(),
  }
  return driver
}

/** A transaction that the caller has begun, or none. */
function joined<Tx extends object>(
  connection: SqliteConnection<Tx>,
  native: Tx,
  driver: SqliteDriver<Tx>,
): SqliteTransaction<Tx> {
  const query = async ({ text, values }: Statement): Promise<ReturnType<typeof connection.send>> =>
    connection.send(text, values)
  const transaction: SqliteTransaction<Tx> = {
    native,
    isOurs: false,
    budgetMs: undefined,
    state: () => (connection.isOpen && connection.isTransaction ? 'open' : 'none'),
    query,
    command: async (text) => void connection.send(text),
    nested: async (body) => withSavepoint(transaction, body),
    async takeWriter({ attempt, limitMs, by = takeWriter }) {
      assertSameFile(connection, driver)
      const ask = (): void => withoutTimeout(connection, () => connection.send(by.text))
      await driver.writer().untilFree(ask, { attempt, limitMs, signal: undefined })
    },
  }
  return transaction
}

/** Connections that were seen to be on the file of a driver. */
const onFile = /* @__PURE__ */ new WeakMap<object, string>()

/** On another file the right to write excludes nobody here. @throws ENGINE_FILE_UNFIT */
function assertSameFile<Tx extends object>(
  { native, send }: SqliteConnection<Tx>,
  driver: SqliteDriver<Tx>,
): void {
  const { file } = driver.writer()
  if (onFile.get(native) === file) return
  const main = send(files).find(({ name }) => name === 'main')
  if (main?.['file'] !== file) throw unfit('the transaction is on another file than the driver')
  onFile.set(native, file)
}

/** The caller's own limit would stop the process for as long as it is, and whoever writes here with it. */
function withoutTimeout<Tx>(connection: SqliteConnection<Tx>, run: () => unknown): void {
  const [row] = connection.send(timeout.read.text)
  const wasMs = Number(row?.['timeout'] ?? 0)
  if (wasMs > 0) connection.send(noTimeout)
  try {
    run()
  } finally {
    if (wasMs > 0) connection.send(timeout.set(wasMs))
  }
}

/** @throws DRIVER_HANDLE_INVALID */
export function assertOpen(
  open: unknown,
  by: string,
  example: string,
): asserts open is () => unknown {
  if (typeof open === 'function') return
  throw holdfastError('DRIVER_HANDLE_INVALID', {
    details: { subject: `${by} takes a function that opens the database: ${by}(${example})` },
  })
}
