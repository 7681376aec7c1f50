import { hash } from 'node:crypto'
import { holdfastError } from '../../core/errors.ts'
import { single } from '../book.ts'
import type { Kernel } from '../kernel.ts'
import {
  type Amount,
  amountText,
  flags,
  type Key,
  kinds,
  type Line,
  nameText,
} from '../operation.ts'
import { bigintAmounts, type Refusal } from '../verdict.ts'
import { objectGiven } from '../../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'

/** What a key stands at when its history here begins. */
export interface OpeningRow {
  readonly key: Key
  /** Above zero it is credited; below, it is debited whatever the bound. Zero leaves no trace. */
  readonly balance: Amount
  /** @defaultValue the key */
  readonly scope?: string
}

/** Options of `open`. */
export interface OpeningOptions {
  /**
   * Names this import, once for all rows. The same name again skips what was opened before, so an
   * import that stopped half-way is simply run again.
   */
  readonly operationId: string
  /** Rows that are sent together, 1 to 1000. @defaultValue 500 */
  readonly batch?: number
  readonly onProgress?: (progress: Opened) => void
}

export const openingOptions: KnownOptions<OpeningOptions> = {
  operationId: 'checked',
  batch: 'checked',
  onProgress: 'function',
}

/** How far an import is, or what it came to. */
export interface Opened {
  readonly rows: number
  /** Booked by this run. */
  readonly opened: number
  /** Booked by an earlier run under the same name. */
  readonly replayed: number
  /** Their balance was zero. */
  readonly empty: number
  /** How many were refused; nothing was booked for them. */
  readonly refused: number
  /** The first hundred of them, and why: `conflict` if an earlier run had another balance. */
  readonly refusals: readonly { readonly key: string; readonly reason: Refusal }[]
}

const listed = 100

/** The options, checked. @throws OPTION_INVALID, LEDGER_NAME_INVALID */
export function openingTerms(
  given: OpeningOptions,
): Pick<OpeningOptions, 'onProgress'> & { readonly name: string; readonly batch: number } {
  const { operationId, batch = 500, ...rest } = optionsGiven(given, openingOptions)
  if (!Number.isSafeInteger(batch) || batch < 1 || batch > 1_000) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'batch', subject: 'batch must be a whole number from 1 to 1000' },
    })
  }
  return { ...rest, name: nameText(operationId, 'operationId'), batch }
}

/** Books an opening balance for every row, batch by batch; each row is an operation of its own. */
export async function openAccounts<Tx>(
  kernel: Kernel<Tx>,
  line: Pick<Line, 'book' | 'allowance' | 'unit' | 'zone' | 'flags'>,
  rows: Iterable<OpeningRow> | AsyncIterable<OpeningRow>,
  given: OpeningOptions,
): Promise<Opened> {
  const { name, batch, onProgress } = openingTerms(given)
  assertRows(rows)
  const sum = { rows: 0, opened: 0, replayed: 0, empty: 0, refused: 0 }
  const refusals: { readonly key: string; readonly reason: Refusal }[] = []
  const book = async (given: OpeningRow): Promise<void> => {
    const row = objectGiven(given, 'rows')
    sum.rows += 1
    if (row.balance === 0 || row.balance === 0n) {
      sum.empty += 1
      return
    }
    const operation = single({ ...line, ...amountOf(row.balance, line.flags) }, row.key, {
      operationId: rowId(name, nameText(row.key, 'key')),
      ...(row.scope === undefined ? {} : { scope: row.scope }),
      note: { reason: 'opening balance' },
    })
    const verdict = await kernel.apply(undefined, operation, bigintAmounts)
    if (verdict.ok) {
      sum[verdict.replayed ? 'replayed' : 'opened'] += 1
    } else {
      sum.refused += 1
      if (refusals.length < listed) refusals.push({ key: String(row.key), reason: verdict.reason })
    }
  }
  let waiting: OpeningRow[] = []
  const send = async (): Promise<void> => {
    // Sent in one turn, they travel together.
    await Promise.all(waiting.map(book))
    waiting = []
    onProgress?.({ ...sum, refusals: [...refusals] })
  }
  for await (const row of rows) {
    waiting.push(row)
    if (waiting.length >= batch) await send()
  }
  if (waiting.length > 0) await send()
  return { ...sum, refusals }
}

function amountOf(balance: Amount, bits = 0): Pick<Line, 'kind' | 'amount' | 'flags'> {
  return balance > 0
    ? { kind: kinds.opening, amount: amountText(balance, 'balance'), flags: bits }
    : {
        kind: kinds.adjust,
        amount: `-${amountText(-balance, 'balance')}`,
        flags: bits | flags.unchecked,
      }
}

/** @throws OPTION_INVALID */
export function assertRows(rows: unknown): void {
  const { [Symbol.iterator]: each, [Symbol.asyncIterator]: next } = (rows ?? {}) as Partial<
    Iterable<unknown> & AsyncIterable<unknown>
  >
  if (typeof rows === 'object' && (each !== undefined || next !== undefined)) return
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'rows', subject: 'rows must be something to go through row by row' },
  })
}

/** Ids are unique within a scope, and a scope may have many keys. */
export function rowId(name: string, key: string): string {
  const id = `${name}:${key}`
  return Buffer.byteLength(id) <= 512 ? id : `${name.slice(0, 64)}:${hash('sha256', id)}`
}
