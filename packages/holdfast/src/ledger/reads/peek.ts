import { peekAt } from '../../engines/postgres/ledger/reads.ts'
import type { AccountId } from '../account-id.ts'
import type { Kernel } from '../kernel.ts'
import { flags, type Line } from '../operation.ts'
import {
  jsonAnswer,
  momentOf,
  type StoredWindow,
  type WindowBounds,
  windowBounds,
} from '../stored-text.ts'
import type { AmountReader } from '../verdict.ts'

/** What an operation would find right now. */
export interface Peek<A> {
  /** The limit in force; of a rate, how much may come at once. */
  readonly limit: A
  /** That limit was set for this key by `setLimit`. */
  readonly limitIsSet: boolean
  /** What can be taken, with everything counted that has come back by now. Below zero: a debt. */
  readonly available: A
  /** What counts against the limit, without what is put aside. */
  readonly used: A
  /** What is put aside by holds. */
  readonly held: A
  /** The current calendar window, if the quota has any. */
  readonly window: WindowBounds | undefined
  /** When the cost will fit; undefined if it would be taken now, or if nothing is known to come back by itself. */
  readonly retryAt: Date | undefined
  readonly sequence: A
}

interface StoredPeek extends StoredWindow {
  readonly limit: string
  readonly available: string
  readonly held: string
  readonly retry: string | null
  readonly seq: string
  readonly pinned: boolean
}

/** Judges a line without sending it. */
export async function peek<Tx, A>(
  kernel: Kernel<Tx>,
  tx: Tx | undefined,
  account: AccountId,
  line: Partial<Line> & { readonly book: string; readonly amount: string },
  amounts: AmountReader<A>,
): Promise<Peek<A>> {
  const has = (flag: number): boolean => ((line.flags ?? 0) & flag) !== 0
  const rolling = has(flags.rolling)
  const rows = await kernel.read(
    tx,
    (schema) =>
      peekAt(schema, {
        ...account,
        amount: line.amount,
        allowance: line.allowance,
        rolling,
        unit: line.unit,
        zone: line.zone,
        everyUs: line.everyUs,
      }),
    line.book,
  )
  const stored = jsonAnswer(rows) as StoredPeek
  // What a rolling window counts are holds that nobody settles.
  const held = rolling ? '0' : stored.held
  const used = BigInt(stored.limit) - BigInt(stored.available) - BigInt(held)
  return {
    limit: amounts.read(stored.limit),
    limitIsSet: stored.pinned,
    available: amounts.read(stored.available),
    used: amounts.read(String(used)),
    held: amounts.read(held),
    window: windowBounds(stored),
    retryAt: has(flags.unchecked) ? undefined : momentOf(stored.retry),
    sequence: amounts.read(stored.seq),
  }
}
