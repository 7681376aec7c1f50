import type { OverTable } from '../../../claims/engine.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { lockMemoryOf } from '../../../core/locks/lock-memory.ts'
import type { ClaimLayout, Turns, Waiting } from './claims.ts'
import { lockTurns, nextTurns, turnsOf } from './turns.ts'

/** Whose turn it is next, if there are turns at all; `none` if nobody has anything to do. */
export type TurnOrder = (
  on: Executor,
  layout: Waiting | ClaimLayout,
  rows: number,
) => Promise<Turns | 'none' | undefined>

/** Turns over one table. With limits, the locks of the keys are held from here. */
export function turnOrder<Tx>(driver: Driver<Tx>, perKey: OverTable['perKey']): TurnOrder {
  const limited = (perKey?.limit ?? perKey?.rate) !== undefined
  let last: string | undefined
  return async (on, layout, rows) => {
    if (perKey === undefined) return undefined
    const { column } = perKey
    const request = { column, most: rows, after: last }
    const asking = limited
      ? lockTurns(layout as ClaimLayout, request, perKey)
      : nextTurns(layout, request)
    const found = await on.query(asking)
    const keys = found.map((row) => String(row['#key']))
    if (keys.length === 0) return 'none'
    for (const { '#key': key, '#lock': lock } of limited ? found : []) {
      // For whoever looks at locks: they are hashed by the server, and show no name.
      const namespace = 'holdfast-turn'
      const name = `${namespace}:${layout.table.table}:${String(key)}`
      const id = BigInt(String(lock))
      lockMemoryOf(driver).note({ name, namespace, lock: { kind: 'bigint', id } })
    }
    last = keys.at(-1)
    return turnsOf(column, keys, rows, perKey)
  }
}
