import {
  aloneOnTaken,
  asOurs,
  assertClient,
  assertNoOptions,
  cameToRest,
  ConnectionWatch,
  type Driver,
  type Held,
  holdfastError,
  isBusy,
  type Isolation,
  type Leash,
  leashedClient,
  noteTaken,
  type PgConnection,
  pgCancel,
  pgTransactionState,
  postgres,
  type Row,
  runInCallback,
  type Transaction,
  type TransactionState,
  watchTaking,
  withSavepoint,
} from './kit.ts'

/** Sequelize's spelling of the isolation levels. */
type SequelizeIsolation = Uppercase<Isolation>

/** The part of a Sequelize instance we use. */
export interface SequelizeDatabase {
  transaction(
    options: { readonly isolationLevel?: never },
    body: (transaction: never) => PromiseLike<unknown>,
  ): Promise<unknown>
}

/** The `Transaction` of a Sequelize instance. */
export type SequelizeTransactionOf<Db> = Db extends {
  transaction(options?: never): Promise<infer Tx>
}
  ? Tx
  : never

/** A client of `pg`, as Sequelize takes it from its pool. */
interface Connection extends PgConnection {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: Row[] }>
}

interface ConnectionManager {
  readonly pool?: object
  getConnection(options?: { readonly useMaster: true }): Promise<Connection>
  releaseConnection(connection: Connection): unknown
  destroyConnection(connection: Connection): Promise<void>
}

/** What an instance is inside of its types. */
interface SequelizeInside {
  readonly connectionManager: ConnectionManager
  readonly options: {
    readonly dialect?: unknown
    readonly native?: unknown
    readonly pool?: { readonly max?: unknown }
  }
  getDialect(): string
}

/** What a transaction is inside of its types. */
interface SequelizeTransaction {
  connection?: Connection | undefined
  finished?: unknown
  /** Those that were opened inside of it. */
  readonly savepoints: readonly SequelizeTransaction[]
  commit(): Promise<void>
  rollback(): Promise<void>
  cleanup(): void
  forceCleanup(): Promise<void>
}

/**
 * Holdfast on Sequelize 6 with its PostgreSQL dialect. A caller's transaction is the `Transaction` that
 * `sequelize.transaction()` gives, nested ones included. In a body pass it to every call as `{ transaction: tx }`,
 * unless you have CLS.
 *
 * @example
 * const hf = createHoldfast(fromSequelize(sequelize))
 * await sequelize.transaction(async (transaction) => { await hf.locks.acquire(transaction, key) })
 *
 * @throws DRIVER_HANDLE_INVALID if it is no Sequelize 6, or one with another dialect
 */
export function fromSequelize<Db extends SequelizeDatabase>(
  sequelize: Db,
): Driver<SequelizeTransactionOf<Db>>
export function fromSequelize<Db extends SequelizeDatabase>(
  sequelize: Db,
  given?: object,
): Driver<SequelizeTransactionOf<Db>> {
  type Tx = SequelizeTransactionOf<Db>
  const { connectionManager: connections, options } = assertPostgres(sequelize)
  assertNoOptions(given, 'fromSequelize')
  const join = (tx: Tx): Transaction<Tx> => {
    const handle = assertHandle(tx)
    const run = async (text: string, values?: readonly unknown[]): Promise<Row[]> => {
      const { connection } = handle
      // Sequelize leaves it there when it has given the connection back.
      if (connection === undefined || sequelizeState(handle) === 'none')
        throw holdfastError('TX_HANDLE_ENDED')
      return (
        await (values === undefined ? connection.query(text) : connection.query(text, [...values]))
      ).rows
    }
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: undefined,
      state: () => sequelizeState(handle),
      cancel: pgCancel(handle.connection),
      query: async ({ text, values }) => run(text, values),
      command: async (text) => {
        await run(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  const size = options.pool?.max ?? 5
  const root = watchTaking(
    connections,
    'getConnection',
    (connection: Connection, destroy: boolean) =>
      destroy
        ? connections.destroyConnection(connection)
        : connections.releaseConnection(connection),
  )
  return {
    name: 'sequelize',
    engine: postgres,
    capabilities: { pool: typeof size === 'number' ? { of: connections, size } : undefined },
    root: () => root,
    alone: {
      // Not by `sequelize.query()`, which with CLS runs it in the transaction around it.
      query: async ({ text, values }) =>
        asOurs(() => aloneOnTaken(() => runAlone(connections, text, values))),
    },
    join,
    async transaction(body, { isolation, marked = false }) {
      return runInCallback({
        open: async (callback) => {
          const level = isolation === undefined ? {} : { isolationLevel: spell(isolation) }
          return asOurs(() =>
            noteTaken({ client: undefined }, () => sequelize.transaction(level as never, callback)),
          )
        },
        join,
        body,
        masksCommit: false,
        marked,
        watch: (native) => {
          const { connection } = native as SequelizeTransaction
          return connection && new ConnectionWatch(connection)
        },
        hold,
      })
    },
  }
}

async function runAlone(
  connections: ConnectionManager,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  const connection = await connections.getConnection({ useMaster: true })
  const watch = new ConnectionWatch(connection, false)
  try {
    const { rows } = await connection.query(text, [...values])
    watch.assertSynced()
    return rows
  } finally {
    watch.stop()
    // One that was lost has left the pool by itself.
    if (!watch.lost) connections.releaseConnection(connection)
  }
}

/** Whoever runs statements of this transaction, or of one inside of it, takes the client from it. */
function hold<Tx>(native: Tx, leash: Leash): Held<Tx> {
  const transaction = native as SequelizeTransaction
  const { connection } = transaction
  if (connection === undefined) return { native }
  const leashed = leashedClient(connection, leash)
  const { commit, rollback, cleanup, forceCleanup } = transaction
  /** The pool knows the connection itself. */
  const withPlain = <T>(give: () => T): T => {
    transaction.connection = connection
    try {
      return give()
    } finally {
      transaction.connection = leashed
    }
  }
  // Sequelize takes a transaction for over as soon as it was told to end it, and closes its connection if it cannot.
  transaction.commit = async () => {
    leash.assertMayEnd()
    await commit.call(transaction)
  }
  transaction.rollback = async () => {
    leash.assertMayEnd()
    await rollback.call(transaction)
  }
  // Both give the connection to whoever comes next. After the body it is Sequelize's own to do.
  const assertOver = (): void => {
    if (leash.isHeld) leash.assertMayRelease()
  }
  transaction.cleanup = () => {
    assertOver()
    withPlain(() => cleanup.call(transaction))
  }
  transaction.forceCleanup = async () => {
    assertOver()
    await withPlain(() => forceCleanup.call(transaction))
  }
  transaction.connection = leashed
  return {
    native,
    busy: () => isBusy(connection) || transaction.savepoints.some(isOpen),
    // Sequelize notes the end of it before it has sent anything, and what it sent was refused.
    settle: () => {
      transaction.finished = undefined
    },
    rest: () => cameToRest(connection),
  }
}

/** A nested transaction, or one inside of that, has not been ended. */
function isOpen({ finished, savepoints }: SequelizeTransaction): boolean {
  return finished === undefined || savepoints.some(isOpen)
}

function sequelizeState({ connection, finished }: SequelizeTransaction): TransactionState {
  if (connection === undefined || finished !== undefined) return 'none'
  return pgTransactionState(connection)
}

function spell(isolation: Isolation): SequelizeIsolation {
  return isolation.toUpperCase() as SequelizeIsolation
}

function assertHandle(tx: unknown): SequelizeTransaction {
  const { commit, rollback, savepoints } = (tx ?? {}) as Partial<SequelizeTransaction>
  if (
    typeof commit !== 'function' ||
    typeof rollback !== 'function' ||
    !Array.isArray(savepoints)
  ) {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'Sequelize transaction expected' },
    })
  }
  return tx as SequelizeTransaction
}

function assertPostgres(sequelize: unknown): SequelizeInside {
  const is = "Sequelize 6 with dialect 'postgres'"
  assertClient(sequelize, { kind: 'sequelize', by: 'fromSequelize', is }, false)
  const given = (sequelize ?? {}) as Partial<SequelizeInside>
  const isSix = typeof given.connectionManager?.getConnection === 'function'
  if (!isSix || given.getDialect?.() !== 'postgres' || given.options?.native === true) {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: {
        subject: "Sequelize 6 with dialect 'postgres', and not its native client, expected",
      },
    })
  }
  return sequelize as SequelizeInside
}
