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

/** The part of Knex's instance we use. */
export interface KnexDatabase {
  transaction(
    body: (trx: unknown) => Promise<unknown>,
    config?: { readonly isolationLevel?: Isolation },
  ): PromiseLike<unknown>
}

/** `Knex.Transaction` of a Knex instance. */
export type KnexTransactionOf<Db> = Db extends {
  transaction(body: (trx: infer Trx) => Promise<unknown>, ...rest: never): unknown
}
  ? Trx
  : never

/** A client of `pg`, as Knex takes it from its pool. */
interface Connection extends PgConnection {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: Row[] }>
  end(ended: () => void): unknown
  /** Of a pool of `pg`. */
  readonly release?: unknown
}

/** What an instance or a transaction runs its statements with. That of a transaction has one connection. */
interface KnexClient {
  readonly dialect?: unknown
  readonly driverName?: unknown
  readonly pool?: { readonly max?: unknown }
  acquireConnection(): Promise<Connection>
  releaseConnection(connection: Connection): unknown
  query(connection: unknown, query: unknown): Promise<unknown>
  stream(connection: unknown, query: unknown, ...rest: unknown[]): Promise<unknown>
}

/** What an instance is inside of its types. */
interface KnexInside {
  readonly client: KnexClient
}

/** An instance in a transaction. */
interface KnexTransaction extends KnexInside {
  readonly isTransaction?: boolean
  readonly executionPromise: PromiseLike<unknown>
  isCompleted(): boolean
  commit(value?: unknown): unknown
  rollback(error?: unknown): unknown
  /** Where its own methods are. */
  readonly context: { transaction(...args: unknown[]): PromiseLike<unknown> }
}

/**
 * Holdfast on Knex with its PostgreSQL dialect. A caller's transaction is what `knex.transaction()` gives, nested ones
 * included.
 *
 * @example
 * const hf = createHoldfast(fromKnex(knex))
 * await knex.transaction(async (trx) => { await hf.locks.acquire(trx, key) })
 *
 * @throws DRIVER_HANDLE_INVALID if it is no Knex instance, or one with another dialect
 */
export function fromKnex<Db extends KnexDatabase>(knex: Db): Driver<KnexTransactionOf<Db>>
export function fromKnex<Db extends KnexDatabase>(
  knex: Db,
  given?: object,
): Driver<KnexTransactionOf<Db>> {
  type Tx = KnexTransactionOf<Db>
  const { client } = assertPostgres(knex)
  assertNoOptions(given, 'fromKnex')
  const root = watchTaking(client, 'acquireConnection', giveBackTo(client))
  const join = (tx: Tx): Transaction<Tx> => {
    const trx = assertHandle(tx)
    const run = async (text: string, values?: readonly unknown[]): Promise<Row[]> => {
      const connection = await connectionOf(trx)
      return (
        await (values === undefined ? connection.query(text) : connection.query(text, [...values]))
      ).rows
    }
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: undefined,
      state: () => knexState(trx),
      cancel: async () => await pgCancel(await trx.client.acquireConnection())?.(),
      query: async ({ text, values }) => run(text, values),
      command: async (text) => {
        await run(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  return {
    name: 'knex',
    engine: postgres,
    capabilities: { pool: poolOf(client) },
    root: () => root,
    alone: {
      // Not by `knex.raw()`, which writes the values into the message of an error.
      query: async ({ text, values }) =>
        asOurs(() => aloneOnTaken(() => runAlone(client, text, values))),
    },
    join,
    async transaction(body, { isolation, marked = false }) {
      if (knexState(knex as never) !== 'none') throw holdfastError('TX_NESTED')
      let connection: Connection | undefined
      return runInCallback({
        open: async (callback) =>
          await asOurs(() =>
            noteTaken({ client: undefined }, () =>
              knex.transaction(
                async (trx) => {
                  // Knex runs it also where BEGIN has failed, and has rejected by then.
                  if ((trx as KnexTransaction).isCompleted()) return
                  connection = await (trx as KnexTransaction).client.acquireConnection()
                  await callback(trx as Tx)
                },
                isolation === undefined ? undefined : { isolationLevel: isolation },
              ),
            ),
          ).then(undefined, plainly),
        join,
        body,
        masksCommit: false,
        marked,
        watch: () => connection && new ConnectionWatch(connection),
        hold: (native, leash) => hold(native, connection as Connection, leash),
      })
    },
  }
}

/** Knex asks a connection whether it is still good when it is taken the next time. One of a pool of `pg` it closes itself. */
function giveBackTo(client: KnexClient): (connection: Connection, destroy: boolean) => void {
  return (connection, destroy) => {
    if (destroy) {
      Object.assign(connection, { __knex__disposed: 'a transaction was left open on it' })
      if (connection.release === undefined) connection.end(() => undefined)
    }
    client.releaseConnection(connection)
  }
}

async function runAlone(
  client: KnexClient,
  text: string,
  values: readonly unknown[],
): Promise<Row[]> {
  const connection = await client.acquireConnection()
  const watch = new ConnectionWatch(connection, false)
  try {
    const { rows } = await connection.query(text, [...values])
    watch.assertSynced()
    return rows
  } finally {
    watch.stop()
    client.releaseConnection(connection)
  }
}

const prefix = /^(?:BEGIN[^;]*|COMMIT|ROLLBACK);? - /

/** Without the text of Knex's own statement, which it puts before what `pg` has said. */
function plainly(error: unknown): never {
  if (error instanceof Error) error.message = error.message.replace(prefix, '')
  throw error
}

/** Knex believes in its transaction until it is told otherwise; the connection knows. */
async function connectionOf(trx: KnexTransaction): Promise<Connection> {
  if (trx.isCompleted()) throw holdfastError('TX_HANDLE_ENDED')
  const connection = await trx.client.acquireConnection()
  if (pgTransactionState(connection) === 'none') throw holdfastError('TX_HANDLE_ENDED')
  return connection
}

/**
 * The client is made for this transaction alone, and those of nested ones take their connection from it. So whatever
 * the body sends meets the leash, and Knex's own BEGIN, COMMIT and ROLLBACK, which name the connection itself, do too.
 */
function hold<Tx>(native: Tx, connection: Connection, leash: Leash): Held<Tx> {
  const trx = native as KnexTransaction
  const { client, commit, rollback } = trx
  const { query, stream } = client
  const leashed = leashedClient(connection, leash)
  client.acquireConnection = async () => leashed
  client.query = async (given, sent) => {
    const text = textOf(sent)
    if (given === leashed || !isEnding(text)) assertBody(leash)
    leash.assertMay(text, pgTransactionState(connection) === 'failed')
    return query.call(client, connection, sent)
  }
  client.stream = async (_, sent, ...rest) => {
    try {
      assertBody(leash)
      leash.assertMay(textOf(sent))
    } catch (error) {
      // Knex leaves it to its client to tell whoever reads, once there is a connection.
      const [rows] = rest as [{ destroy(error: unknown): void }?]
      rows?.destroy(error)
      throw error
    }
    return stream.call(client, connection, sent, ...rest)
  }
  // Knex takes a transaction for over as soon as it was told to end it, and gives its connection back.
  trx.commit = async (value) => {
    leash.assertMayEnd()
    return await commit(value)
  }
  trx.rollback = async (error) => {
    leash.assertMayEnd()
    return await rollback(error)
  }
  countNested(trx, leash)
  return { native, busy: () => isBusy(connection), rest: () => cameToRest(connection) }
}

function textOf(sent: unknown): string | undefined {
  const text = typeof sent === 'string' ? sent : (sent as { readonly sql?: unknown }).sql
  return typeof text === 'string' ? text : undefined
}

function isEnding(text: string | undefined): boolean {
  return text === 'COMMIT;' || text === 'ROLLBACK'
}

/** Before Knex itself says that the transaction is complete, without a code. */
function assertBody(leash: Leash): void {
  if (!leash.isHeld) throw holdfastError('TX_HANDLE_ENDED')
}

/** A transaction inside of ours is under way until it is over, also while it sends nothing. */
function countNested({ context }: KnexTransaction, leash: Leash): void {
  const { transaction } = context
  context.transaction = (...args) => {
    leash.sent()
    const [body, ...rest] = args
    const counted = (inner: KnexTransaction): void => {
      countNested(inner, leash)
      const over = (): void => leash.answered()
      inner.executionPromise.then(over, over)
    }
    if (typeof body !== 'function')
      return transaction.apply(context, args).then(
        (inner) => {
          counted(inner as KnexTransaction)
          return inner
        },
        (error: unknown) => {
          leash.answered()
          throw error
        },
      )
    return transaction.call(
      context,
      (inner: KnexTransaction) => {
        counted(inner)
        return (body as (inner: KnexTransaction) => unknown)(inner)
      },
      ...rest,
    )
  }
}

/** A transaction that is over refuses by itself. */
function knexState(handle: KnexTransaction): TransactionState {
  return handle.isTransaction === true && !handle.isCompleted() ? 'open' : 'none'
}

/** Of the pool that Knex makes; one that was given to it does not say how large it is. */
function poolOf(client: KnexClient): { of: object; size: number } | undefined {
  const { pool } = client
  return typeof pool?.max === 'number' ? { of: pool, size: pool.max } : undefined
}

function isKnex(given: unknown): given is KnexTransaction {
  const { raw, client } = (given ?? {}) as { readonly raw?: unknown; readonly client?: KnexClient }
  return typeof raw === 'function' && typeof client?.acquireConnection === 'function'
}

function assertHandle(tx: unknown): KnexTransaction {
  if (!isKnex(tx)) {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'Knex transaction expected' },
    })
  }
  return tx
}

function assertPostgres(knex: unknown): KnexInside {
  const wanted = { kind: 'knex', by: 'fromKnex', is: "Knex with client 'pg'" } as const
  assertClient(knex, wanted, isKnex(knex))
  const handle = assertHandle(knex)
  const { dialect, driverName = 'pg' } = handle.client
  // Others speak nearly the same, and lock otherwise.
  if (dialect !== 'postgresql' || driverName !== 'pg') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: "Knex with client 'pg' expected" },
    })
  }
  return handle
}
