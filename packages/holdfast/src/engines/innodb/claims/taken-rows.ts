import type { OverTable, TakenRows } from '../../../claims/engine.ts'
import type { Driver } from '../../../core/driver.ts'
import { claimedRow, takeRows } from './claims.ts'
import { finishTaken, lookUpTaken } from './finish.ts'
import { inBatches, inLevels } from './in-levels.ts'
import { KnownTable } from './known-table.ts'
import { notOffered } from './leased-rows.ts'

/** The lock on the row is the claim. */
export function takenRows<Tx>(driver: Driver<Tx>, settings: OverTable): TakenRows<Tx> {
  if (settings.perKey !== undefined) throw notOffered('perKey')
  const { layout } = settings
  const known = new KnownTable(driver, settings)
  return {
    async take(transaction, limit) {
      return await known.use(async (tableOn) => {
        const table = await tableOn(transaction)
        const rows = await inLevels(transaction, table, layout, limit, (level, most) =>
          takeRows(table, layout, level, most),
        )
        return rows.map((row) => claimedRow(layout, row))
      })
    },
    async finish(transaction, keys) {
      return await known.use(async (tableOn) => {
        const table = await tableOn(transaction)
        const kept = new Set<readonly string[]>()
        for (const some of inBatches(keys)) {
          const rows = await transaction.query(lookUpTaken(table, layout, some))
          const found = new Set(rows.map(({ '#at': at }) => some[Number(at)] as readonly string[]))
          if (found.size > 0) await transaction.query(finishTaken(table, layout, [...found]))
          for (const key of found) kept.add(key)
        }
        return keys.map((key) => (kept.has(key) ? 'kept' : 'lost'))
      })
    },
  }
}
