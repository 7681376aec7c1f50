import {
  type Driver,
  primariesOf,
  type Row,
  type Statement,
  type Transaction,
} from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { isTraced, type Span, traced } from '../core/tracing.ts'
import { UnderWay } from '../core/under-way.ts'
import { type LedgerCalls, ledgerCalls } from '../engines/postgres/ledger.ts'
import { askAgain, resolveMs } from '../tx/ask-again.ts'
import { queryJoined, schemaMissing } from '../tx/call-function.ts'
import { assertNotNested } from '../tx/run.ts'
import { type AdjustOptions, adjustment } from './adjusting.ts'
import { answersOf, type LineAnswer } from './answer.ts'
import { type Audit, type AuditOptions, auditLedger } from './audit.ts'
import { Combiner, type CombinerOptions, sendAlone } from './combiner.ts'
import type { OperationOptions, PreparedLine } from './book.ts'
import { together } from './book.ts'
import { heardSince, kindName, tellAnswered, tellFailed } from './ledger-events.ts'
import { type Maintained, type MaintainOptions, maintainLedger } from './maintain.ts'
import { type Amount, flags, type Key, nameText, type Operation } from './operation.ts'
import { type Opened, type OpeningOptions, type OpeningRow, openAccounts } from './opening.ts'
import type { LedgerReads } from './reading.ts'
import { createReads } from './reads.ts'
import { type Request, requestOf, statementFor } from './request.ts'
import { createSweeping, type LedgerSweeping } from './sweeper.ts'
import {
  type AmountReader,
  bigintAmounts,
  numberAmounts,
  type Verdict,
  verdictOf,
} from './verdict.ts'

export type { AdjustOptions } from './adjusting.ts'
export type { Audit, AuditCheck, AuditOptions, AuditProblem, AuditProgress } from './audit.ts'
export type { Maintained, MaintainOptions } from './maintain.ts'
export type { Opened, OpeningOptions, OpeningRow } from './opening.ts'
export type { Peek } from './peek.ts'
export type {
  AccountBalance,
  History,
  HistoryOptions,
  HoldsOptions,
  LedgerReads,
  Movement,
  MovementKind,
  OpenHold,
  ReadOptions,
} from './reading.ts'
export type { WindowBounds } from './stored-text.ts'
export type { SweepEvent } from '../core/event-map.ts'
export type {
  LedgerSweeping,
  Sweeper,
  SweeperOptions,
  SweepOptions,
  Swept,
} from './sweeper.ts'
export type { Accepted, Balance, LineVerdict, Refusal, Refused, Verdict } from './verdict.ts'

/** Settings of the ledger. */
export interface LedgerOptions extends CombinerOptions {
  /** Where its tables are. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** The kernel: applies operations, in a transaction of their own or in the caller's. */
export interface Kernel<Tx> {
  /** Operations that were asked for outside of a caller's transaction, and have no answer yet. */
  readonly underWay: UnderWay
  /** Applies one operation. With `tx` it becomes part of that transaction, and is never coalesced. */
  apply<A>(tx: Tx | undefined, operation: Operation, amounts: AmountReader<A>): Promise<Verdict<A>>
  /** Applies one operation that has a statement of its own, which answers like `apply`. */
  send<A>(
    tx: Tx | undefined,
    operation: Operation,
    ask: (schema: string, request: Request) => Statement,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>>
  /** Looks at everything in one snapshot. */
  audit(options: AuditOptions): Promise<Audit>
  /** Runs a statement that answers a question, in a transaction of its own or in the caller's. */
  read(tx: Tx | undefined, ask: (schema: string) => Statement): Promise<readonly Row[]>
  /** Runs a statement that is about a whole server, on every primary in turn. */
  readEach(ask: (schema: string) => Statement): Promise<readonly (readonly Row[])[]>
}

/** Options of `Ledger.apply`. */
export interface ApplyOptions extends OperationOptions {
  /** The lines may belong to different scopes. Holds may not. */
  readonly acrossScopes?: boolean
}

/** What spans several books, and what keeps all of them true. */
export interface Ledger<Tx> extends LedgerReads<Tx>, LedgerSweeping {
  /**
   * Applies lines of several books or keys together or not at all, under one operation id: a key's
   * and its team's and its organisation's limit, a day's and a month's.
   *
   * @example
   * const verdict = await hf.ledger.apply(
   *   [await daily.line(userId, 1), await monthly.line(userId, 1)],
   *   { operationId: request.id, scope: userId },
   * )
   * if (!verdict.ok) console.log(`blocked by ${verdict.book}`)
   * @throws LEDGER_SCOPES
   */
  apply(lines: readonly PreparedLine[], options: ApplyOptions): Promise<Verdict<number>>
  apply(tx: Tx, lines: readonly PreparedLine[], options: ApplyOptions): Promise<Verdict<number>>
  /**
   * Corrects a balance, up or down, by a movement that says why; booked whatever the balance, but
   * never through a wall. For a book without calendar windows: quotas have an `adjust` of their own.
   *
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN
   */
  adjust(book: string, key: Key, amount: Amount, options: AdjustOptions): Promise<Verdict<bigint>>
  /**
   * Imports balances that existed before: each row becomes one movement of the kind `opening`. May be
   * run again under the same `operationId` after it stopped half-way. For books without calendar
   * windows; quotas have an `open` of their own. Say `walled` if the book is a stock.
   *
   * @throws OPTION_INVALID, LEDGER_AMOUNT_INVALID, LEDGER_NAME_INVALID, LEDGER_OUTCOME_UNKNOWN
   */
  open(
    book: string,
    rows: Iterable<OpeningRow> | AsyncIterable<OpeningRow>,
    options: OpeningOptions & { readonly walled?: boolean },
  ): Promise<Opened>
  /**
   * Checks every account in one snapshot: movements follow from each other without a gap, balances
   * are what they left, no bound was crossed, holds, grants and operation ids add up. Changes nothing.
   * Needs the role that owns the schema.
   *
   * @example const { found, problems } = await hf.ledger.audit({ onProgress: console.log })
   * @throws SCHEMA_MISSING, TX_NESTED
   */
  audit(options?: AuditOptions): Promise<Audit>
  /**
   * Makes partitions for the months to come and, if asked to, drops what is older than it has to be
   * kept. Run it every month. Needs the role that owns the schema.
   *
   * @throws OPTION_INVALID, SCHEMA_MISSING
   */
  maintain(options?: MaintainOptions): Promise<Maintained>
}

/** What spans several books, over the kernel. */
export function createLedger<Tx>(kernel: Kernel<Tx>): Ledger<Tx> {
  const reads = createReads(kernel)
  return {
    ...reads,
    ...createSweeping(kernel),
    audit: (options = {}) => kernel.audit(options),
    maintain: (options = {}) => maintainLedger(kernel, options),
    async adjust(book, key, amount, options) {
      const operation = adjustment({ book: nameText(book, 'book') }, key, amount, options)
      const { scope } = options
      const { window } = await reads.balance(book, key, {
        amounts: 'bigint',
        ...(scope === undefined ? {} : { scope }),
      })
      // The account without a window would be another one, and nobody would notice.
      if (window !== undefined) {
        throw holdfastError('OPTION_INVALID', {
          details: {
            option: 'book',
            subject: 'book has calendar windows: use adjust of the quota',
          },
        })
      }
      return await kernel.apply(undefined, operation, bigintAmounts)
    },
    open: (book, rows, { walled = false, ...options }) =>
      openAccounts(
        kernel,
        { book: nameText(book, 'book'), flags: walled ? flags.walled : 0 },
        rows,
        options,
      ),
    async apply(...args: readonly unknown[]) {
      const [tx, lines, options] = (Array.isArray(args[0]) ? [undefined, ...args] : args) as [
        Tx | undefined,
        readonly PreparedLine[],
        ApplyOptions,
      ]
      const operation = together(lines, options)
      try {
        return await kernel.apply(tx, operation, numberAmounts)
      } finally {
        for (const { after } of lines) after?.(options.scope)
      }
    },
  }
}

/** The kernel over a driver. */
export function createKernel<Tx>(driver: Driver<Tx>, options: LedgerOptions = {}): Kernel<Tx> {
  const schema = options.schema ?? 'holdfast'
  const forMs = resolveMs(options)
  const calls = ledgerCalls(schema)
  const joining = { sure: calls, unsure: ledgerCalls(schema, true) }
  const submit = submitting(driver, calls, options)
  const underWay = new UnderWay()
  const alone = <T>(ask: () => Promise<T>): Promise<T> => {
    // A second connection could wait for what this transaction holds, for ever.
    assertNotNested(driver)
    return underWay.during(ask)
  }
  const apply = async <A>(
    tx: Tx | undefined,
    request: Request,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>> => {
    try {
      const answers =
        tx === undefined
          ? await alone(() => submit(request))
          : await toldOf(request, () => applyJoined(driver, joining, tx, request))
      return verdictOf(request, answers, amounts)
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
  const send = async <A>(
    tx: Tx | undefined,
    request: Request,
    ask: (schema: string, request: Request) => Statement,
    amounts: AmountReader<A>,
  ): Promise<Verdict<A>> => {
    const statement = ask(schema, request)
    try {
      const sent = async (): Promise<LineAnswer[]> =>
        (await sendAlone(driver.alone, statement, [1], forMs))[0] ?? []
      const answers =
        tx === undefined
          ? await alone(() => toldOf(request, sent, false))
          : await toldOf(request, async () =>
              answersIn(await joined(driver, tx).query(statement), request),
            )
      return verdictOf(request, answers, amounts)
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
  return {
    underWay,
    async apply(tx, operation, amounts) {
      const request = requestOf(operation)
      if (!isTraced()) return await apply(tx, request, amounts)
      return await tracedOperation(operation, () => apply(tx, request, amounts))
    },
    async send(tx, operation, ask, amounts) {
      const request = requestOf(operation)
      if (!isTraced()) return await send(tx, request, ask, amounts)
      return await tracedOperation(operation, () => send(tx, request, ask, amounts))
    },
    async audit(auditOptions) {
      const began = performance.now()
      try {
        const audit = await auditLedger(driver, schema, auditOptions)
        if (channels.ledgerAudited.hasSubscribers) {
          const { accounts, found } = audit
          const durationMs = performance.now() - began
          channels.ledgerAudited.publish({ accounts, found, durationMs })
        }
        return audit
      } catch (error) {
        throw schemaMissing(error) ?? error
      }
    },
    async read(tx, ask) {
      try {
        if (tx === undefined) {
          assertNotNested(driver)
          const look = (): Promise<readonly Row[]> => driver.alone.query(ask(schema))
          return await askAgain(look, { forMs, unknown: 'CONNECTION_LOST' })
        }
        return await joined(driver, tx).query(ask(schema))
      } catch (error) {
        throw schemaMissing(error) ?? error
      }
    },
    async readEach(ask) {
      try {
        assertNotNested(driver)
        const answers: (readonly Row[])[] = []
        for (const { alone } of primariesOf(driver)) answers.push(await alone.query(ask(schema)))
        return answers
      } catch (error) {
        throw schemaMissing(error) ?? error
      }
    },
  }
}

/** One combiner for each primary: what goes into one statement has to be on one server. */
function submitting<Tx>(
  { shards, alone }: Driver<Tx>,
  calls: LedgerCalls,
  options: LedgerOptions,
): (request: Request) => Promise<LineAnswer[]> {
  const single = new Combiner(alone, calls, options)
  if (shards === undefined) return (request) => single.submit(request)
  const combiners = new Map<string, Combiner>()
  return (request) =>
    shards.routed(request.buckets, (primary, executor) => {
      const known = combiners.get(primary) ?? new Combiner(executor, calls, options)
      combiners.set(primary, known)
      return known.submit(request)
    })
}

/** One operation that is sent by itself, and who listens is told. */
async function toldOf(
  request: Request,
  ask: () => Promise<LineAnswer[]>,
  isJoined = true,
): Promise<LineAnswer[]> {
  const since = heardSince()
  if (since === 0) return await ask()
  try {
    const answers = await ask()
    tellAnswered([{ request, since }], [answers], since, isJoined)
    return answers
  } catch (error) {
    tellFailed([{ request, since }], error, since, isJoined)
    throw error
  }
}

async function tracedOperation<A>(
  { book, lines }: Operation,
  apply: () => Promise<Verdict<A>>,
): Promise<Verdict<A>> {
  const kind = kindName(lines[0]?.kind)
  const subject = () => ({
    target: `${kind} ${book}`,
    attributes: {
      'holdfast.book': book,
      'holdfast.kind': kind,
      'holdfast.ledger.lines': lines.length,
    },
  })
  return await traced('ledger', subject, async (span: Span | undefined) => {
    const verdict = await apply()
    span?.set({
      'holdfast.outcome': verdict.ok ? (verdict.replayed ? 'replayed' : 'accepted') : 'refused',
      'holdfast.reason': verdict.ok ? undefined : verdict.reason,
    })
    return verdict
  })
}

async function applyJoined<Tx>(
  driver: Driver<Tx>,
  { sure, unsure }: { readonly sure: LedgerCalls; readonly unsure: LedgerCalls },
  tx: Tx,
  request: Request,
): Promise<LineAnswer[]> {
  const rows = await queryJoined(driver, tx, 'LEDGER_OUTSIDE_TRANSACTION', (marked) =>
    statementFor(marked ? unsure : sure, [request]),
  )
  return answersIn(rows, request)
}

function answersIn([row]: readonly Row[], { operation }: Request): LineAnswer[] {
  return answersOf(row?.['answer'], [operation.lines.length])[0] ?? []
}

function joined<Tx>(driver: Driver<Tx>, tx: Tx): Transaction<Tx> {
  const transaction = driver.join(tx)
  if (transaction.state() === 'none') throw holdfastError('LEDGER_OUTSIDE_TRANSACTION')
  return transaction
}
