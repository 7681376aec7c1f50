import type { Driver, Isolation, Row, Transaction, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { isClientTimeout } from '../core/sql-state.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import { runInCallback } from './parts/callback-transaction.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { leashedPrisma } from './orm/prisma-leash.ts'
import { aloneOnTaken, noteTaken, type Taking, watchRoot } from './parts/root-client.ts'
import { hearPool, unlessHeard } from './parts/sync-wait.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { postgres } from '../engines/postgres/engine.ts'

/** Prisma's spelling of the isolation levels. */
type PrismaIsolation = 'ReadCommitted' | 'RepeatableRead' | 'Serializable'

interface PrismaTransactionOptions {
  readonly timeout?: number
  readonly isolationLevel?: PrismaIsolation
}

/** The part of Prisma's client and of its transaction client that runs statements. */
interface PrismaHandle {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>
  $executeRawUnsafe(text: string, ...values: unknown[]): PromiseLike<number>
}

/** The part of a Prisma client we use; extended clients have it too. */
export interface PrismaClientLike extends PrismaHandle {
  $transaction(
    body: (tx: unknown) => Promise<unknown>,
    options?: PrismaTransactionOptions,
  ): Promise<unknown>
}

/** The transaction client of a Prisma client, its extensions included. */
export type PrismaTransactionOf<Client> = Client extends {
  $transaction(body: (tx: infer Tx) => Promise<unknown>, ...rest: never): unknown
}
  ? Tx
  : never

/** Settings of `fromPrisma`. */
export interface PrismaOptions {
  /**
   * The `timeout` your interactive transactions run with. Prisma's timer also runs while a lock is
   * waited for, so Holdfast ends its waits before it; it opens its own transactions with it.
   * @defaultValue the client's `transactionOptions.timeout`, or Prisma's 5_000
   */
  readonly transactionTimeoutMs?: number
}

const prismaOptions: KnownOptions<PrismaOptions> = {
  transactionTimeoutMs: 'checked',
}

/** Prisma 7.5 and later mark their transaction clients with this. */
const scopeContext: symbol = Symbol.for('prisma.client.transaction.scope_context')
const prismaTimeoutMs = 5_000
/** What is left of Prisma's timer when a lock wait ends: to report it and to roll back. */
const marginMs = 250

/**
 * Holdfast on Prisma 7 with a driver adapter for PostgreSQL. A caller's transaction is what
 * `prisma.$transaction(async (tx) => …)` hands to its callback; extended clients work as well.
 *
 * @example
 * const hf = createHoldfast(fromPrisma(prisma))
 * await prisma.$transaction(async (tx) => { await hf.locks.acquire(tx, key) })
 */
export function fromPrisma<Client extends PrismaClientLike>(
  prisma: Client,
  given: PrismaOptions = {},
): Driver<PrismaTransactionOf<Client>> {
  assertPrisma(prisma)
  const options = optionsGiven(given, prismaOptions)
  type Tx = PrismaTransactionOf<Client>
  const usualMs = options.transactionTimeoutMs ?? configuredTimeoutMs(prisma) ?? prismaTimeoutMs
  if (!Number.isFinite(usualMs) || usualMs <= 0) {
    throw holdfastError('OPTION_INVALID', {
      details: {
        option: 'transactionTimeoutMs',
        subject: 'transactionTimeoutMs must be a number of milliseconds above 0',
      },
    })
  }
  hearPool(poolOf(prisma))
  const root = watchRoot(poolOf(prisma))
  const join = (tx: Tx, timeoutMs: number): Transaction<Tx> => {
    const handle = assertHandle(tx)
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: budgetOf(timeoutMs),
      state: () => prismaState(handle),
      query: async (statement) => run(handle, statement.text, statement.values),
      command: async (text) => {
        await handle.$executeRawUnsafe(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  return {
    name: 'prisma',
    engine: postgres,
    capabilities: {},
    root: () => root,
    alone: {
      query: ({ text, values }) =>
        unlessHeard(() => asOurs(() => aloneOnTaken(() => run(prisma, text, values)))),
    },
    join: (tx) => join(tx, usualMs),
    async transaction(body, { isolation, timeoutMs = usualMs, marked = false }) {
      if (prismaState(prisma) !== 'none') throw holdfastError('TX_NESTED')
      const taking: Taking = { client: undefined }
      return runInCallback({
        open: async (callback) =>
          asOurs(() =>
            noteTaken(taking, () =>
              prisma.$transaction(callback as (tx: unknown) => Promise<void>, {
                timeout: timeoutMs,
                ...(isolation === undefined ? {} : { isolationLevel: spelling[isolation] }),
              }),
            ),
          ),
        join: (tx) => ({ ...join(tx, timeoutMs), cancel: pgCancel(taking.client) }),
        body,
        masksCommit: false,
        hidesCommit: true,
        marked,
        endedBy,
        hold: (tx, leash) => ({ native: leashedPrisma(tx as object, leash) as Tx }),
      })
    },
  }
}

const spelling: Record<Isolation, PrismaIsolation> = {
  'read committed': 'ReadCommitted',
  'repeatable read': 'RepeatableRead',
  serializable: 'Serializable',
}

/**
 * Prisma sends the statements of one tick as a batch. If one of them fails, it does not run those
 * after it and answers them with `undefined` instead of an error (seen in 7.10).
 */
async function run(
  handle: PrismaHandle,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  const rows = (await handle.$queryRawUnsafe(text, ...values)) as readonly Row[] | undefined
  if (rows === undefined) throw holdfastError('TX_ROLLED_BACK')
  return rows
}

/**
 * Prisma can end a transaction by itself: a nested one that fails in a nested one commits the outermost (seen in
 * 7.10). Then it refuses everything else, by the same code as when its timer has run out.
 */
function endedBy(error: unknown): 'committed' | 'rolled back' | undefined {
  if (!isClientTimeout(error)) return undefined
  const message = String((error as Error).message)
  if (/on a committed transaction/.test(message)) return 'committed'
  return /on a transaction that was rolled back/.test(message) ? 'rolled back' : undefined
}

/** Half of a short timeout, all but the margin of a long one. */
function budgetOf(timeoutMs: number): number {
  return Math.ceil(timeoutMs - Math.min(marginMs, timeoutMs / 2))
}

/** What the client was constructed with. Not public: without it, Prisma's own default holds. */
function configuredTimeoutMs(prisma: object): number | undefined {
  const { _engineConfig: config } = prisma as {
    readonly _engineConfig?: { readonly transactionOptions?: { readonly timeout?: unknown } }
  }
  const timeout = config?.transactionOptions?.timeout
  return typeof timeout === 'number' ? timeout : undefined
}

/** The pool that the adapter was given. One that it makes itself is out of reach. */
function poolOf(prisma: object): unknown {
  const { _engineConfig: config } = prisma as {
    readonly _engineConfig?: { readonly adapter?: { readonly externalPool?: unknown } }
  }
  return config?.adapter?.externalPool
}

/**
 * The mark tells a transaction client from the root client, extended or not. An ended transaction
 * keeps its mark and refuses every query by itself (P2028).
 */
function prismaState(handle: object): TransactionState {
  if ((handle as Record<symbol, unknown>)[scopeContext] !== undefined) return 'open'
  // Before 7.5 there was no mark, and no `$transaction` on a transaction client either.
  return '$transaction' in handle ? 'none' : 'unknown'
}

function assertPrisma(prisma: unknown): void {
  const wanted = { kind: 'prisma', by: 'fromPrisma', is: 'a PrismaClient' } as const
  const { $queryRawUnsafe: query, $executeRawUnsafe: execute } = (prisma ??
    {}) as Partial<PrismaHandle>
  assertKind(prisma, wanted, typeof query === 'function' && typeof execute === 'function')
}

function assertHandle(tx: unknown): PrismaHandle {
  const handle = tx as Partial<PrismaHandle> | null | undefined
  if (
    typeof handle?.$queryRawUnsafe !== 'function' ||
    typeof handle.$executeRawUnsafe !== 'function'
  ) {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'Prisma transaction client expected' },
    })
  }
  return handle as PrismaHandle
}
