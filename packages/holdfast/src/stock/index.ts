import { type Duration, durationMs } from '../core/options/duration.ts'
import { refTo } from '../ledger/account-id.ts'
import {
  type AmountKind,
  type AmountOf,
  amountReader,
  mergedLines,
  noteText,
  type PreparedLine,
  together,
} from '../ledger/book.ts'
import { invalid } from '../ledger/calendar.ts'
import { holdLine } from '../ledger/holds.ts'
import type { Kernel } from '../ledger/kernel.ts'
import {
  amountText,
  flags,
  type Key,
  type Kind,
  kinds,
  type Line,
  nameText,
  signedAmountText,
} from '../ledger/operation.ts'
import { assertRows, openAccounts, type OpeningRow } from '../ledger/upkeep/opening.ts'
import type { Verdict } from '../ledger/verdict.ts'
import type {
  AdjustOptions,
  HoldPart,
  ReserveOptions,
  ReturnOptions,
  Stock,
  StockLine,
  StockOperationOptions,
  StockOptions,
  StockWords,
  TransferOptions,
  WholeLines,
} from './stock.ts'
import { stockKey } from './stock-key.ts'
import { createStockReads } from './stock-reads.ts'
import { type StockVerdict, stockVerdict } from './stock-verdict.ts'
import { assertTexts, objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import {
  adjustOptions,
  holdPart,
  reserveOptions,
  returnOptions,
  stockOperationOptions,
  stockOptions,
  transferOptions,
  wholeLines,
} from './known-options.ts'

export type * from './stock.ts'
export type * from './stock-verdict.ts'

/** Stock over the kernel. */
export function createStock<Tx, K extends AmountKind = 'number', L extends string = string>(
  kernel: Kernel<Tx>,
  given: StockOptions<K, L>,
): Stock<Tx, AmountOf<K>, L> {
  type A = AmountOf<K>
  const options = optionsGiven(given, stockOptions as KnownOptions<typeof given>)
  assertTexts(options.locations, 'locations')
  const book = nameText(options.name, 'name')
  const home = nameText(options.scope ?? options.name, 'scope')
  const policy = { overrun: options.overrun ?? 'refuse', late: options.late ?? 'book' } as const
  const kind = (options.amounts ?? 'number') as K
  kernel.declare(book, { as: 'stock', amounts: kind })
  const amounts = amountReader(kind)
  const stickyMs = stickyTime(options.stickyFor)
  const { backorder = 0 } = options
  if (typeof backorder !== 'function') amountText(backorder, 'backorder', 0n)
  const keyOf = ({
    sku,
    location,
  }: {
    readonly sku: Key
    readonly location?: L | undefined
  }): string => stockKey(sku, declared(options.locations, location))

  const lineOf = (kind: Kind, line: StockLine<L>, rest: Partial<Line> = {}): PreparedLine => ({
    line: {
      kind,
      book,
      key: keyOf(line),
      scope: line.scope === undefined ? undefined : nameText(line.scope, 'scope'),
      amount:
        kind === kinds.adjust
          ? signedAmountText(line.quantity, 'quantity')
          : amountText(line.quantity, 'quantity'),
      flags: flags.walled,
      ...rest,
    },
  })
  /** A line that takes something, and so is told how far below zero it may go. */
  const takingLine = async (
    kind: Kind,
    line: StockLine<L>,
    rest: Partial<Line> = {},
  ): Promise<PreparedLine> => {
    const allowance =
      typeof backorder === 'function'
        ? await backorder(nameText(line.sku, 'sku'), declared(options.locations, line.location))
        : backorder
    return lineOf(kind, line, { allowance: amountText(allowance, 'backorder', 0n), ...rest })
  }
  /** For orders: what was refused stays refused, even if its webhook comes again after a delivery. */
  const sticky =
    stickyMs === undefined ? {} : { flags: flags.walled | flags.sticky, ttlMs: stickyMs }

  const apply = async (
    tx: Tx | undefined,
    lines: readonly PreparedLine[],
    rest: StockOperationOptions,
  ): Promise<StockVerdict<A>> => {
    const note = wordsOf(rest)
    const operation = together(lines, {
      operationId: nameText(rest.externalId, 'externalId'),
      scope: rest.scope ?? home,
      acrossScopes: rest.acrossScopes ?? false,
      ...(note === undefined ? {} : { note }),
    })
    const verdict = await kernel.apply(tx, operation, amounts)
    return stockVerdict(
      verdict,
      operation.lines.map(({ amount }) => amount),
      amounts,
    )
  }
  const end = (
    args: readonly unknown[],
    kind: Kind,
    part: HoldPart<L> & StockWords,
    rest: Partial<Line> = {},
  ): Promise<Verdict<A>> => {
    const [tx, holdId] = typeof args[0] === 'string' ? [undefined, args[0]] : args
    const whole = { ...holdLine(kind, book, holdId, policy), ...rest }
    const note = noteText(wordsOf(part))
    const scope = part.scope === undefined ? home : nameText(part.scope, 'scope')
    const lines =
      part.lines === undefined
        ? [{ ...whole, note }]
        : mergedLines(
            part.lines.map((line) => ({
              line: {
                ...whole,
                key: keyOf(line),
                amount:
                  line.quantity === undefined
                    ? undefined
                    : amountText(line.quantity, 'quantity', 0n),
              },
            })),
            scope,
            note,
          )
    if (lines.length === 0) throw invalid('lines', 'a part of a reservation needs a line')
    if (kind !== kinds.settle && lines.some(({ amount }) => amount !== undefined)) {
      throw invalid('quantity', 'quantity is for settle: of a line all is released or extended')
    }
    return kernel.apply(tx as Tx | undefined, { book, lines }, amounts)
  }
  const openingRows = async function* (
    rows: Iterable<StockLine<L>> | AsyncIterable<StockLine<L>>,
  ): AsyncGenerator<OpeningRow> {
    assertRows(rows)
    for await (const each of rows) {
      const row = objectGiven(each, 'rows')
      yield { key: keyOf(row), balance: row.quantity, scope: row.scope ?? home }
    }
  }
  const after = (args: readonly unknown[], at: number): unknown =>
    args[typeof args[0] === 'string' ? at : at + 1]
  const partOf = (part: unknown): HoldPart<L> & StockWords =>
    optionsGiven(part as (HoldPart<L> & StockWords) | undefined, holdPart)

  return {
    name: book,
    async receive(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, StockOperationOptions>(
        args,
        stockOperationOptions,
      )
      return await apply(
        tx,
        lines.map((line) => lineOf(kinds.credit, line)),
        rest,
      )
    },
    async issue(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, StockOperationOptions>(
        args,
        stockOperationOptions,
      )
      const taken = lines.map((line) => takingLine(kinds.debit, line, sticky))
      return await apply(tx, await Promise.all(taken), rest)
    },
    async return(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, ReturnOptions>(args, returnOptions)
      const { of } = rest
      const refund = of === undefined ? undefined : refTo(nameText(of, 'of'))
      return await apply(
        tx,
        lines.map((line) =>
          refund === undefined ? lineOf(kinds.return, line) : lineOf(kinds.refund, line, refund),
        ),
        rest,
      )
    },
    async adjust(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, AdjustOptions>(args, adjustOptions)
      if (typeof rest.reason !== 'string' || rest.reason.trim() === '') {
        throw invalid('reason', 'an adjustment needs a reason')
      }
      return await apply(
        tx,
        lines.map((line) => lineOf(kinds.adjust, line)),
        rest,
      )
    },
    async reserve(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, ReserveOptions>(args, reserveOptions)
      const ttlMs = durationMs(rest.ttl, 'ttl')
      const held = lines.map((line) => takingLine(kinds.hold, line, { ...sticky, ttlMs }))
      return await apply(tx, await Promise.all(held), rest)
    },
    async transfer(...args: readonly unknown[]) {
      const [tx, lines, rest] = calledWithLines<Tx, L, TransferOptions<L>>(args, transferOptions)
      const { from, to } = rest
      if (from === to) throw invalid('to', 'a transfer needs two locations')
      const note = { ...rest.note, transfer: { from, to } }
      // First what can fail at once: nobody would hear of the others then.
      const arriving = lines.map((line) =>
        lineOf(kinds['transfer-in'], { ...line, location: to }, sticky),
      )
      const out = lines.map((line) =>
        takingLine(
          kinds['transfer-out'],
          { ...line, location: from },
          { ...sticky, allowance: '0' },
        ),
      )
      return await apply(tx, [...(await Promise.all(out)), ...arriving], { ...rest, note })
    },
    settle: async (...args: readonly unknown[]) =>
      await end(args, kinds.settle, partOf(after(args, 1))),
    release: async (...args: readonly unknown[]) =>
      await end(args, kinds.release, partOf(after(args, 1))),
    extend: async (...args: readonly unknown[]) =>
      await end(
        args,
        kinds.extend,
        optionsGiven(after(args, 2) as WholeLines<L> | undefined, wholeLines),
        {
          ttlMs: durationMs(after(args, 1) as Duration, 'ttl'),
        },
      ),
    ...createStockReads(kernel, { book, home, kind, keyOf, locations: options.locations }),
    async open(rows, rest) {
      return await openAccounts(kernel, { book, flags: flags.walled }, openingRows(rows), rest)
    },
    line: async (line) => {
      const prepared = await takingLine(kinds.debit, line)
      return { line: { ...prepared.line, scope: prepared.line.scope ?? home } }
    },
    receiveLine(line) {
      const prepared = lineOf(kinds.credit, line)
      return { line: { ...prepared.line, scope: prepared.line.scope ?? home } }
    },
  }
}

/** `[tx, lines, options]` and `[lines, options]` are the same call, inside a transaction and outside. */
function calledWithLines<Tx, L extends string, O extends object>(
  args: readonly unknown[],
  known: KnownOptions<O>,
): readonly [tx: Tx | undefined, lines: readonly StockLine<L>[], options: O] {
  const [tx, lines, options] = Array.isArray(args[0]) ? [undefined, ...args] : args
  if (!Array.isArray(lines)) throw invalid('lines', 'lines must be a list of { sku, quantity }')
  const given = lines.map((line) => objectGiven(line as StockLine<L> | undefined, 'lines'))
  return [tx as Tx | undefined, given, optionsGiven(options as O | undefined, known)]
}

/** A misspelt location would be a new, empty one. */
function declared<L extends string>(
  locations: readonly L[] | undefined,
  location: L | undefined,
): L | undefined {
  if (locations === undefined) return location
  const [first] = locations
  if (location === undefined && locations.length === 1) return first
  if (location !== undefined && locations.includes(location)) return location
  throw invalid('location', 'location must be one of those that this stock was declared with')
}

function wordsOf(options: StockWords): Readonly<Record<string, unknown>> | undefined {
  const { source, reference, actor, reason, note } = options
  const words = { ...note, source, reference, actor, reason }
  return Object.values(words).every((word) => word === undefined) ? undefined : words
}

function stickyTime(stickyFor: Duration | false | undefined): number | undefined {
  return stickyFor === false ? undefined : durationMs(stickyFor ?? '10 min', 'stickyFor')
}
