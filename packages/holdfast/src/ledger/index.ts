import { readBooks, redeclareBook } from '../engines/postgres/ledger/reads.ts'
import { adjustment, type AdjustOptions, adjustOptions } from './adjusting.ts'
import { type Audit, type AuditOptions, auditOptions } from './upkeep/audit.ts'
import {
  type AmountKind,
  type AmountOf,
  amountReader,
  amounts,
  type InTransaction,
  type OperationOptions,
  operationOptions,
  type PreparedLine,
  together,
} from './book.ts'
import { invalid } from './calendar.ts'
import { type BookDeclaration, declaredOf, hasWindows } from './declaration.ts'
import { createFollowing, type LedgerFollowing } from './reads/follow.ts'
import type { Kernel } from './kernel.ts'
import {
  type Maintained,
  maintainLedger,
  type MaintainOptions,
  maintainOptions,
} from './upkeep/maintain.ts'
import { type Amount, flags, type Key, nameText } from './operation.ts'
import {
  openAccounts,
  type Opened,
  type OpeningOptions,
  openingOptions,
  type OpeningRow,
  openingTerms,
} from './upkeep/opening.ts'
import type { LedgerReads } from './reads/reading.ts'
import { createReads } from './reads/reads.ts'
import { createReports, type LedgerReports } from './reads/reports.ts'
import { jsonAnswer, momentOf } from './stored-text.ts'
import { createSweeping, type LedgerSweeping } from './upkeep/sweeper.ts'
import { type Transfer, transferLines } from './transfer.ts'
import { bigintAmounts, type Verdict } from './verdict.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

export type { AdjustOptions } from './adjusting.ts'
export type {
  Audit,
  AuditCheck,
  AuditOptions,
  AuditProblem,
  AuditProgress,
} from './upkeep/audit.ts'
export type { BookDeclaration } from './declaration.ts'
export type {
  Followed,
  FollowedMovement,
  FollowerOptions,
  FollowHandler,
  FollowOptions,
  KnownFollower,
  LedgerFollowing,
} from './reads/follow.ts'
export type { LedgerOptions } from './kernel.ts'
export type { Maintained, MaintainOptions } from './upkeep/maintain.ts'
export type { Opened, OpeningOptions, OpeningRow } from './upkeep/opening.ts'
export type { Peek } from './reads/peek.ts'
export type {
  AccountBalance,
  CreditBalance,
  History,
  HistoryOptions,
  HoldsOptions,
  LedgerReads,
  Movement,
  MovementKind,
  OpenHold,
  ReadOptions,
} from './reads/reading.ts'
export type {
  KeyBalance,
  Keys,
  KeysOptions,
  LedgerReports,
  Usage,
  UsageBy,
  UsageOptions,
  UsageRow,
} from './reads/reports.ts'
export type { WindowBounds } from './stored-text.ts'
export type { SweepEvent } from '../core/events/event-map.ts'
export type {
  LedgerSweeping,
  Sweeper,
  SweeperOptions,
  SweepOptions,
  Swept,
} from './upkeep/sweeper.ts'
export { fellBelow, reachedShares } from './thresholds.ts'
export type { Transfer } from './transfer.ts'
export type { Accepted, Balance, LineVerdict, Refusal, Refused, Verdict } from './verdict.ts'

/** Options of `Ledger.apply`. */
export interface ApplyOptions extends OperationOptions {
  /** The lines may belong to different scopes. Holds may not. */
  readonly acrossScopes?: boolean
  /** How amounts come back; say `'bigint'` with books that count beyond 2^53. @defaultValue 'number' */
  readonly amounts?: AmountKind
}

/** A book as it was declared. */
export interface DeclaredBook {
  readonly book: string
  readonly declared: BookDeclaration
  /** When it was first used, or declared anew. */
  readonly since: Date
}

/** What spans several books, and what keeps all of them true. */
export interface Ledger<Tx>
  extends LedgerReads<Tx>,
    LedgerSweeping,
    LedgerFollowing<Tx>,
    LedgerReports {
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
  apply<K extends AmountKind = 'number'>(
    lines: readonly PreparedLine[],
    options: ApplyOptions & { readonly amounts?: K },
  ): Promise<Verdict<AmountOf<K>>>
  apply<K extends AmountKind = 'number'>(
    tx: Tx,
    lines: readonly PreparedLine[],
    options: InTransaction<ApplyOptions> & { readonly amounts?: K },
  ): Promise<Verdict<AmountOf<K>>>
  /**
   * Moves an amount between accounts of any books, all legs or none; what is taken is what is given, which `audit`
   * checks again. A transfer is not refunded: it is sent back by another one.
   *
   * @example
   * await hf.ledger.transfer(
   *   { from: [await wallet.line('ann', 30)], to: [wallet.grantLine('bob', 27), fees.grantLine('house', 3)] },
   *   { operationId: payment.id, acrossScopes: true },
   * )
   * @throws OPTION_INVALID, LEDGER_SCOPES
   */
  transfer<K extends AmountKind = 'number'>(
    transfer: Transfer,
    options: ApplyOptions & { readonly amounts?: K },
  ): Promise<Verdict<AmountOf<K>>>
  transfer<K extends AmountKind = 'number'>(
    tx: Tx,
    transfer: Transfer,
    options: InTransaction<ApplyOptions> & { readonly amounts?: K },
  ): Promise<Verdict<AmountOf<K>>>
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
   * The books of the database and what they were declared as when they were first used; of several primaries those of
   * each.
   *
   * @throws SCHEMA_MISSING, TX_NESTED
   */
  books(): Promise<readonly DeclaredBook[]>
  /**
   * Declares a book anew, so that processes that declare it so are not refused any more. Those that run go on as they
   * are until they are started again. Of calendar windows, what was counted in the old ones stays there. Needs the role
   * that owns the schema.
   *
   * @example await hf.ledger.redeclare('calls', { as: 'quota', per: 'month', timeZone: 'Europe/Berlin' })
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  redeclare(
    book: string,
    declaration: BookDeclaration,
    options?: { readonly dryRun?: boolean },
  ): Promise<Redeclared>
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

const applyOptions: KnownOptions<ApplyOptions> = {
  ...operationOptions,
  acrossScopes: 'boolean',
  amounts: amounts,
}

const openOptions: KnownOptions<Parameters<Ledger<never>['open']>[2]> = {
  ...openingOptions,
  walled: 'boolean',
}

const redeclareOptions: KnownOptions<NonNullable<Parameters<Ledger<never>['redeclare']>[2]>> = {
  dryRun: 'boolean',
}

/** What a book was declared as, and what it is from now on; or would be, of a dry run. */
export interface Redeclared {
  readonly before: BookDeclaration | undefined
  readonly after: BookDeclaration
}

interface StoredBook {
  readonly book: string
  readonly declared: Readonly<Record<string, string>>
  readonly at: string
}

async function readAllBooks<Tx>(kernel: Kernel<Tx>): Promise<DeclaredBook[]> {
  const answers = await kernel.readEach(readBooks)
  return answers
    .flatMap((rows) => jsonAnswer(rows) as StoredBook[])
    .map(({ book, declared, at }) => ({
      book,
      declared: declared as unknown as BookDeclaration,
      since: momentOf(at) as Date,
    }))
}

/** @throws OPTION_INVALID */
function listOf(lines: unknown): readonly PreparedLine[] {
  if (Array.isArray(lines)) return lines as readonly PreparedLine[]
  throw invalid('lines', 'lines must be a list of what line() of a book resolves with')
}

/** What spans several books, over the kernel. */
export function createLedger<Tx>(kernel: Kernel<Tx>): Ledger<Tx> {
  const reads = createReads(kernel)
  const applyLines = async (
    tx: Tx | undefined,
    lines: readonly PreparedLine[],
    options: ApplyOptions,
  ): Promise<Verdict<AmountOf<AmountKind>>> => {
    const operation = together(listOf(lines), optionsGiven(options, applyOptions))
    try {
      return await kernel.apply(tx, operation, amountReader(options.amounts ?? 'number'))
    } finally {
      for (const { after } of lines) after?.(options.scope)
    }
  }
  return {
    ...reads,
    ...createSweeping(kernel),
    ...createFollowing(kernel),
    ...createReports(kernel),
    audit: async (given) => await kernel.audit(optionsGiven(given, auditOptions)),
    maintain: async (given) => await maintainLedger(kernel, optionsGiven(given, maintainOptions)),
    async adjust(book, key, amount, given) {
      const options = optionsGiven(given, adjustOptions)
      const operation = adjustment({ book: nameText(book, 'book') }, key, amount, options)
      const { scope } = options
      const { window } = await reads.balance(book, key, {
        amounts: 'bigint',
        ...(scope === undefined ? {} : { scope }),
      })
      const declared = await kernel.declarationOf(book)
      // The account without a window would be another one, and nobody would notice.
      if (window !== undefined || (declared !== undefined && hasWindows(declared))) {
        throw invalid('book', 'book has calendar windows: use adjust of the quota')
      }
      if (declared?.['rolling'] !== undefined) {
        throw invalid('book', 'what is booked at once would stay in a rolling window for ever')
      }
      return await kernel.apply(undefined, operation, bigintAmounts)
    },
    async open(book, rows, given) {
      const { walled = false, ...options } = optionsGiven(given, openOptions)
      const name = nameText(book, 'book')
      openingTerms(options)
      const declared = await kernel.declarationOf(name)
      if (declared !== undefined && hasWindows(declared)) {
        throw invalid('book', 'book has calendar windows: use open of the quota')
      }
      if (declared !== undefined && (declared['as'] === 'stock') !== walled) {
        throw invalid(
          'walled',
          `book is declared as ${declared['as']}: a stock, and nothing else, is walled`,
        )
      }
      return await openAccounts(
        kernel,
        { book: name, flags: walled ? flags.walled : 0 },
        rows,
        options,
      )
    },
    books: () => readAllBooks(kernel),
    async redeclare(book, declaration, given) {
      const { dryRun = false } = optionsGiven(given, redeclareOptions)
      const name = nameText(book, 'book')
      const declared = declaredOf(declaration)
      const before = (await readAllBooks(kernel)).find((each) => each.book === name)?.declared
      if (!dryRun) {
        await kernel.readEach((schema) => redeclareBook(schema, name, JSON.stringify(declared)))
      }
      return { before, after: declared as unknown as BookDeclaration }
    },
    async apply(...args: readonly unknown[]) {
      const [tx, lines, options] = (Array.isArray(args[0]) ? [undefined, ...args] : args) as [
        Tx | undefined,
        readonly PreparedLine[],
        ApplyOptions,
      ]
      return (await applyLines(tx, lines, options)) as never
    },
    async transfer(...args: readonly unknown[]) {
      const isAlone =
        args.length < 3 && typeof args[0] === 'object' && args[0] !== null && 'from' in args[0]
      const [tx, transfer, options] = (isAlone ? [undefined, ...args] : args) as [
        Tx | undefined,
        Transfer,
        ApplyOptions,
      ]
      return (await applyLines(tx, transferLines(transfer), options)) as never
    },
  }
}
