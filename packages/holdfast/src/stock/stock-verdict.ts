import type {
  Accepted,
  AmountReader,
  Balance,
  LineVerdict,
  Refused,
  Verdict,
} from '../ledger/verdict.ts'
import { stockPlace } from './stock-key.ts'

/** What became of one SKU of an operation, and how much of it there is. */
export interface StockLineVerdict<A> extends LineVerdict<A> {
  readonly sku: string
  readonly location: string | undefined
  /** What was asked for: the sum, if several lines named this SKU and location. */
  readonly quantity: A
  /** What is there, reserved or not. Negative: sold ahead of what is still to come. */
  readonly onHand: A
  /** How much more would have to be available; zero for a line that was not short. */
  readonly missing: A
}

/** The operation was applied, now or before. */
export interface StockAccepted<A> extends Accepted<A> {
  readonly lines: readonly StockLineVerdict<A>[]
}

/** Nothing was changed; `lines` says for every SKU whether it was short, and by how much. */
export interface StockRefused<A> extends Refused<A> {
  readonly lines: readonly StockLineVerdict<A>[]
}

/** The answer to an operation on stock. */
export type StockVerdict<A> = StockAccepted<A> | StockRefused<A>

/** A verdict with the words of stock. `asked` has the quantity of each line. */
export function stockVerdict<A>(
  verdict: Verdict<A>,
  asked: readonly (string | undefined)[],
  amounts: AmountReader<A>,
): StockVerdict<A> {
  const lines = verdict.lines.map((line, at) => {
    const quantity = BigInt(asked[at] ?? 0)
    const available = BigInt(String(line.available))
    const wanted = quantity < 0n ? -quantity : quantity
    return {
      ...line,
      ...stockPlace(line.key ?? ''),
      quantity: amounts.read(String(quantity)),
      onHand: onHandOf(line, amounts),
      missing: amounts.read(String(line.refusal === 'insufficient' ? wanted - available : 0n)),
    }
  })
  return { ...verdict, lines }
}

/** What is there, reserved or not. */
export function onHandOf<A>(balance: Balance<A>, amounts: AmountReader<A>): A {
  const { credited, debited } = balance
  return amounts.read(String(BigInt(String(credited)) - BigInt(String(debited))))
}
