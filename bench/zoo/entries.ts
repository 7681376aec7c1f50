import type { Entry } from './model.ts'
import { racyOrders } from './racy-orders.ts'
import { racyRows } from './racy-rows.ts'
import { racySets } from './racy-sets.ts'
import { racyValues } from './racy-values.ts'
import { safeRows } from './safe-rows.ts'
import { safeSets } from './safe-sets.ts'
import { safeValues } from './safe-values.ts'

/** Racy and safe ones in turn, so that a short run sees both. */
export const entries: readonly Entry[] = inTurn(
  [...racyRows, ...racySets, ...racyOrders, ...racyValues],
  [...safeRows, ...safeSets, ...safeValues],
)

export function entryNamed(name: string): Entry {
  const entry = entries.find((one) => one.name === name)
  if (entry === undefined) throw new Error(`the zoo has no "${name}"`)
  return entry
}

function inTurn(one: readonly Entry[], other: readonly Entry[]): Entry[] {
  const length = Math.max(one.length, other.length)
  return Array.from({ length }, (_, place) => [one[place], other[place]])
    .flat()
    .filter((entry) => entry !== undefined)
}
