import type { LeasedRows, LeaseSettings } from '../../../claims/engine.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { withOperators } from '../sql/own-operators.ts'
import { claimedPerKey, claimedRows, claimRows, seesLatest } from './claims.ts'
import { type FinishLayout, finishRows, recoverRows, statesFrom } from './finish.ts'
import { aloneOn, askingAgain } from './sending.ts'
import { turnOrder } from './turn-order.ts'
import { noteClaims } from './turns.ts'

/** Each in one statement, with turns in two. */
export function leasedRows<Tx>(
  driver: Driver<Tx>,
  { layout: given, leaseMs, perKey }: LeaseSettings,
): LeasedRows<Tx> {
  const nextTurns = turnOrder(driver, perKey)
  const layoutOn = (on: Executor): Promise<FinishLayout> => withOperators(driver, on, given)
  return {
    async claim(transaction, { limit, joined, token, holder }) {
      const on: Executor = transaction ?? aloneOn(driver)
      const layout = await layoutOn(on)
      const turns = await nextTurns(on, layout, limit)
      const sentMs = performance.now()
      if (turns === 'none') return { rows: [], sentMs }
      const lease = { token, ms: leaseMs, holder }
      const rows = await on.query(claimRows(layout, { limit, joined, turns }, lease))
      if (joined && !seesLatest(rows)) throw holdfastError('CLAIM_STALE_SNAPSHOT')
      if (turns?.rate !== undefined) {
        // Under the locks of the keys, which are held until this is committed.
        const claimed = claimedPerKey(rows)
        if (Object.keys(claimed).length > 0) await on.query(noteClaims(turns.rate, claimed))
      }
      return { rows: claimedRows(layout, rows), sentMs }
    },
    async finish(transaction, verb, items, forMs) {
      const on: Executor & { readonly doubted?: boolean } =
        transaction ?? askingAgain(driver, forMs)
      const rows = await on.query(finishRows(await layoutOn(on), verb, items, leaseMs))
      return { states: statesFrom(rows, items), doubted: !!on.doubted }
    },
    async recover(limit) {
      const on = aloneOn(driver)
      const [row] = await on.query(recoverRows(await layoutOn(on), limit))
      return { freed: Number(row?.['freed']), dead: Number(row?.['dead']) }
    },
  }
}
