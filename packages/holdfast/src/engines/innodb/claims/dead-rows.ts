import type { ClaimsEngine, DeadLayout } from '../../../claims/engine.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { askAgain } from '../../../tx/ask-again.ts'
import { isDuplicate } from '../errno.ts'
import { callFailure } from '../failure.ts'
import { anyOf } from './claims.ts'
import { type ClaimTable, claimTable } from './claim-table.ts'
import { deadFrom, findDead, listDead, lockDead, retryDead } from './dead.ts'
import { deleteRows } from './finish.ts'
import { onlyOnce, shortly } from './sending.ts'

function tableOf<Tx>(driver: Driver<Tx>, on: Executor, layout: DeadLayout): Promise<ClaimTable> {
  return claimTable(driver, on, { layout, perKey: undefined })
}

/** What is done about rows that had their last attempt. */
export const deadRows: Pick<ClaimsEngine, 'findDead' | 'changeDead'> = {
  async findDead(driver, layout, wanted) {
    const { alone, engine } = driver
    const ask = async (): ReturnType<typeof alone.query> => {
      const table = await tableOf(driver, alone, layout)
      return await alone.query(
        'key' in wanted
          ? findDead(table, layout, wanted.key)
          : listDead(table, layout, wanted.limit, wanted.after),
      )
    }
    const asking = { ...onlyOnce, codeOf: engine.codeOf, failure: callFailure }
    return deadFrom(layout, await askAgain(ask, asking))
  },
  async changeDead(driver, layout, verb, keys) {
    try {
      return await shortly(driver, onlyOnce, async (on) => {
        const table = await tableOf(driver, on, layout)
        const rows = await on.query(lockDead(table, layout, keys))
        const found = [
          ...new Set(rows.map(({ '#at': at }) => keys[Number(at)] as readonly string[])),
        ]
        if (found.length === 0) return found
        await on.query(
          verb === 'retry'
            ? retryDead(table, layout, found)
            : deleteRows(table, anyOf(found.map((key) => table.hasKey(key)))),
        )
        return found
      })
    } catch (error) {
      if (isDuplicate(error)) return 'taken'
      throw error
    }
  },
}
