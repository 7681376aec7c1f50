import type { CallSite } from '../../../core/locks/call-site.ts'
import { lockMemoryOf } from '../../../core/locks/lock-memory.ts'
import { orderWatchOf } from '../../../core/locks/order-watch.ts'
import type { TableName } from '../../../core/table-name.ts'
import { heldKeys, seenRows } from '../locks/lock-order.ts'
import type { LockMode } from '../../../core/locks/wanted-lock.ts'

/**
 * Tells the order watch of rows that were locked. `marker` is what the transaction holds, the rows included;
 * with nothing else in it there is no order. What does not wait cannot close a cycle.
 */
export function watchRowOrder(
  driver: object,
  marker: unknown,
  rows: {
    readonly table: TableName
    readonly mode: LockMode
    readonly waits: boolean
    readonly site: CallSite
  },
): void {
  if (typeof marker !== 'string') return
  const [watch, memory] = [orderWatchOf(driver), lockMemoryOf(driver)]
  const seen = seenRows(marker, rows.table, rows.mode, memory, watch)
  if (!rows.waits || seen.held.length === 0) return
  watch.saw(seen, rows.site, () => ({ locks: heldKeys(marker, memory), pid: undefined }))
}
