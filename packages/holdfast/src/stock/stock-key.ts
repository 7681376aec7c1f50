import { nameText } from '../ledger/operation.ts'

/** Where a quantity is: a SKU, at a location if the stock has any. */
export interface StockPlace {
  readonly sku: string
  readonly location: string | undefined
}

/**
 * The key of a place: `mug`, or `mug@santiago`. An `@` or `~` inside of a name is written `~1` or
 * `~0`, so that no two places share a key.
 */
export function stockKey(sku: unknown, location: unknown): string {
  const name = escaped(nameText(sku, 'sku'))
  const key = location === undefined ? name : `${name}@${escaped(nameText(location, 'location'))}`
  // Both together must fit as well.
  return nameText(key, 'key')
}

/** The place of a key that `stockKey` made. */
export function stockPlace(key: string): StockPlace {
  const [sku = '', location] = key.split('@').map(unescaped)
  return { sku, location }
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('@', '~1')
}

function unescaped(name: string): string {
  return name.replaceAll('~1', '@').replaceAll('~0', '~')
}
