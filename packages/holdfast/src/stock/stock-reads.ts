import { type AmountKind, type AmountOf, amountReader, calledWith } from '../ledger/book.ts'
import type { Kernel } from '../ledger/kernel.ts'
import type { Key } from '../ledger/operation.ts'
import { createReads } from '../ledger/reads/reads.ts'
import type { HistoryPage, PlaceOptions, Stock, StockLevel } from './stock.ts'
import { stockPlace } from './stock-key.ts'
import { onHandOf } from './stock-verdict.ts'
import { optionsGiven } from '../core/options/known-options.ts'
import { historyOptions, levelsOptions, placeOptions } from './known-options.ts'

/** What the reads know of their stock. */
interface StockBook<K extends AmountKind, L extends string> {
  readonly book: string
  readonly home: string
  readonly kind: K
  readonly locations: readonly L[] | undefined
  keyOf(place: { readonly sku: Key; readonly location?: L | undefined }): string
}

/** The part of a stock that only looks. */
export function createStockReads<Tx, K extends AmountKind, L extends string>(
  kernel: Kernel<Tx>,
  { book, home, kind, locations, keyOf }: StockBook<K, L>,
): Pick<Stock<Tx, AmountOf<K>, L>, 'level' | 'levels' | 'history'> {
  type A = AmountOf<K>
  const reads = createReads(kernel)
  const amounts = amountReader(kind)
  const levelOf = async (
    tx: Tx | undefined,
    sku: Key,
    { location, scope = home }: PlaceOptions<L>,
  ): Promise<StockLevel<A>> => {
    const key = keyOf({ sku, location })
    const options = { scope, amounts: kind }
    const balance = await (tx === undefined
      ? reads.balance(book, key, options)
      : reads.balance(tx, book, key, options))
    return { ...balance, ...stockPlace(key), onHand: onHandOf(balance, amounts) }
  }
  return {
    async level(...args: readonly unknown[]) {
      const [tx, sku, place] = calledWith<Tx>(args)
      return await levelOf(
        tx,
        sku,
        optionsGiven(place as PlaceOptions<L> | undefined, placeOptions),
      )
    },
    async levels(...args: readonly unknown[]) {
      const [tx, sku, given] = calledWith<Tx>(args)
      const place = optionsGiven(given as Pick<PlaceOptions<L>, 'scope'> | undefined, levelsOptions)
      const levels: StockLevel<A>[] = []
      // One after the other: a transaction is one connection.
      for (const location of locations ?? [undefined]) {
        const at = location === undefined ? {} : { location }
        levels.push(await levelOf(tx, sku, { ...place, ...at }))
      }
      return levels
    },
    async history(...args: readonly unknown[]) {
      const [tx, sku, given] = calledWith<Tx>(args)
      const options = optionsGiven(
        given as (PlaceOptions<L> & HistoryPage) | undefined,
        historyOptions,
      )
      const { location, scope = home, ...page } = options
      const key = keyOf({ sku, location })
      const asked = { ...page, scope, amounts: kind }
      return await (tx === undefined
        ? reads.history(book, key, asked)
        : reads.history(tx, book, key, asked))
    },
  }
}
