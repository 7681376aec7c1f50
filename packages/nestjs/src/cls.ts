import type { Holdfast } from 'holdfast'
import { UsageError } from 'holdfast/errors'
import type { RunOptions } from 'holdfast/tx'
import type { AmbientTransactions } from './ambient.ts'
import { HOLDFAST } from './tokens.ts'

/** The part of a `TransactionHost` of `@nestjs-cls/transactional` that is used. */
export interface ClsTransactionHost {
  readonly tx: unknown
  isTransactionActive(): boolean
  // oxlint-disable-next-line typescript/no-explicit-any -- overloaded there, by what the adapter takes
  withTransaction(propagation: any, options: any, body: () => Promise<any>): Promise<any>
}

/** Its class, by which the one of this application is found. */
export interface ClsTransactionHosts {
  getInstance(connectionName?: string): ClsTransactionHost
}

/** Says to our adapter that the transaction is open already. */
const openAlready = Symbol('holdfast.nestjs.open')

type AdapterOptions<Tx> = RunOptions & { readonly [openAlready]?: Tx }

/**
 * The transactions of `@nestjs-cls/transactional`: `@Guarded` and `@Once` join a method under `@Transactional()`, and
 * `TransactionHost.tx` is the transaction that they open. For the latter, register `clsAdapter` there.
 *
 * @example HoldfastModule.forRoot({ driver, ambient: clsTransactions(TransactionHost) })
 */
export function clsTransactions<Tx>(
  hosts: ClsTransactionHosts,
  connectionName?: string,
): AmbientTransactions<Tx> {
  // Asked for late: it is made of the Holdfast that this is a setting of.
  const host = (): ClsTransactionHost => hosts.getInstance(connectionName)
  return {
    find: () => (host().isTransactionActive() ? (host().tx as Tx) : undefined),
    async run(tx, body) {
      // Known already: a savepoint of most clients has the handle of its transaction.
      if (host().isTransactionActive() && host().tx === tx) return await body()
      const options: AdapterOptions<Tx> = { [openAlready]: tx }
      const done: unknown = await host().withTransaction('REQUIRES_NEW', options, async () => {
        // Another adapter has opened a transaction of its own, in which nothing is locked.
        if (host().tx !== tx) throw wrongAdapter()
        return await body()
      })
      return done as Awaited<ReturnType<typeof body>>
    },
  }
}

/** What an adapter of `@nestjs-cls/transactional` is. */
export interface ClsAdapter<Tx> {
  readonly connectionToken: symbol
  readonly optionsFactory: (hf: Holdfast<Tx>) => {
    wrapWithTransaction(
      options: RunOptions,
      body: () => Promise<unknown>,
      setTx: (tx?: Tx) => void,
    ): Promise<unknown>
    getFallbackInstance(): Tx
  }
}

/**
 * An adapter for `@nestjs-cls/transactional` whose transactions are those of Holdfast: `@Transactional()` opens them with
 * its retries and its answers to unknown outcomes, and takes the options of `hf.transaction`.
 *
 * @param fallback what `TransactionHost.tx` is outside of a transaction, such as the pool; left out, that is refused
 * @example new ClsPluginTransactional({ adapter: clsAdapter<PoolClient>() })
 */
export function clsAdapter<Tx>(fallback?: () => Tx): ClsAdapter<Tx> {
  return {
    connectionToken: HOLDFAST,
    optionsFactory: (hf) => ({
      async wrapWithTransaction(given: AdapterOptions<Tx>, body, setTx) {
        const { [openAlready]: open, ...options } = given
        if (open !== undefined) {
          setTx(open)
          return await body()
        }
        return await hf.transaction(async (tx) => {
          setTx(tx)
          return await body()
        }, options)
      },
      getFallbackInstance() {
        if (fallback !== undefined) return fallback()
        const subject =
          'TransactionHost.tx: no transaction is open here; read it under @Transactional() or @Guarded, or pass clsAdapter(() => pool)'
        throw new UsageError('TX_HANDLE_ENDED', { details: { subject } })
      },
    }),
  }
}

function wrongAdapter(): Error {
  const subject =
    'register clsAdapter() with ClsPluginTransactional, so that it knows this transaction'
  return new UsageError('OPTION_INVALID', { details: { option: 'ambient', subject } })
}
