import type { ClaimsEngine } from '../../../claims/engine.ts'
import type { Driver, Row, Statement } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { withOperators } from '../sql/own-operators.ts'
import { changeDead, type DeadLayout, deadFrom, findDead, listDead } from './dead.ts'
import { aloneOn } from './sending.ts'

const uniqueViolation = '23505'

/** What is done about rows that had their last attempt, each in one statement. */
export const deadRows: Pick<ClaimsEngine, 'findDead' | 'changeDead'> = {
  async findDead(driver, layout, wanted) {
    const rows = await ask(driver, layout, (fitting) =>
      'key' in wanted
        ? findDead(fitting, wanted.key)
        : listDead(fitting, wanted.limit, wanted.after),
    )
    return deadFrom(layout, rows)
  },
  async changeDead(driver, layout, verb, keys) {
    try {
      const rows = await ask(driver, layout, (fitting) => changeDead(fitting, verb, keys))
      return rows.map((row) => keys[Number(row['at']) - 1] as readonly string[])
    } catch (error) {
      if (sqlStateOf(error) === uniqueViolation) return 'taken'
      throw error
    }
  },
}

async function ask<Tx>(
  driver: Driver<Tx>,
  layout: DeadLayout,
  statementOf: (fitting: DeadLayout) => Statement,
): Promise<readonly Row[]> {
  const on = aloneOn(driver)
  try {
    return await on.query(statementOf(await withOperators(driver, on, layout)))
  } catch (error) {
    if (sqlStateOf(error)?.startsWith('22') !== true) throw error
    const subject = 'key or after has a value that its column cannot have'
    throw holdfastError('OPTION_INVALID', { details: { option: 'key', subject } })
  }
}
