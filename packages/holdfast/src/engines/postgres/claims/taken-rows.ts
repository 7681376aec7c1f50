import type { OverTable, TakenRows } from '../../../claims/engine.ts'
import type { Driver } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { withOperators } from '../sql/own-operators.ts'
import { claimedRows, seesLatest, takeRows } from './claims.ts'
import { finishTaken, statesFrom } from './finish.ts'
import { turnOrder } from './turn-order.ts'

/** The lock on the row is the claim. */
export function takenRows<Tx>(
  driver: Driver<Tx>,
  { layout: given, perKey }: OverTable,
): TakenRows<Tx> {
  const nextTurns = turnOrder(driver, perKey)
  return {
    async take(transaction, limit) {
      const layout = await withOperators(driver, transaction, given)
      const turns = await nextTurns(transaction, layout, limit)
      if (turns === 'none') return []
      const rows = await transaction.query(takeRows(layout, { limit, joined: true, turns }))
      if (!seesLatest(rows)) throw holdfastError('CLAIM_STALE_SNAPSHOT')
      return claimedRows(layout, rows)
    },
    async finish(transaction, keys) {
      const layout = await withOperators(driver, transaction, given)
      return statesFrom(await transaction.query(finishTaken(layout, keys)), keys)
    },
  }
}
