import type { ClaimedRow, FinishState, OverTable, TakenRows } from '../../../claims/engine.ts'
import type { Driver } from '../../../core/driver.ts'
import { affectedBy } from '../driver.ts'
import { takeShare } from './claims.ts'
import { finishTaken } from './finish.ts'
import { seeing } from './layout.ts'
import { holdFile } from './leased-rows.ts'
import { TurnOrder } from './turns.ts'

/** The right to write to the file is the claim of all of its rows. */
export function takenRows<Tx>(driver: Driver<Tx>, settings: OverTable): TakenRows<Tx> {
  const { layout: given, perKey } = settings
  const layoutOn = seeing(given)
  const turns = perKey === undefined ? undefined : new TurnOrder(perKey)
  return {
    async take(transaction, limit) {
      await holdFile(driver, transaction, settings)
      const layout = await layoutOn(transaction)
      const shares = (await turns?.shares(transaction, layout, limit)) ?? [{ limit }]
      const rows: ClaimedRow[] = []
      for (const share of shares) rows.push(...(await takeShare(transaction, layout, share)))
      return rows
    },
    async finish(transaction, keys) {
      await holdFile(driver, transaction, settings)
      const layout = await layoutOn(transaction)
      const states: FinishState[] = []
      for (const key of keys) {
        const changed = await transaction.query(finishTaken(layout, key))
        states.push(affectedBy(changed) > 0 ? 'kept' : 'lost')
      }
      return states
    },
  }
}
