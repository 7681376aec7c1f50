import type { Pool, PoolClient } from 'pg'
import type { Driver } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg, type PgOptions } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { LedgerOptions } from '../../packages/holdfast/src/ledger/index.ts'
import type { Quota } from '../../packages/holdfast/src/quota/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { openPool } from '../harness/open-pool.ts'

export const book = 'bench'
/** So high that nothing is refused: a refusal is cheaper than what we measure. */
export const limit = 1_000_000_000_000

/** Calls that went to the database outside of callers' transactions. */
export interface CallCount {
  calls: number
  underWay: number
  mostUnderWay: number
}

export interface LedgerOn {
  readonly quota: Quota<PoolClient, number>
  readonly count: CallCount
}

/** The ledger as an application has it, with its calls counted. */
export function ledgerOn(
  pool: Pool,
  options: LedgerOptions = {},
  pgOptions: PgOptions = {},
): LedgerOn {
  const count: CallCount = { calls: 0, underWay: 0, mostUnderWay: 0 }
  const hf = createHoldfast(counted(fromPg(pool, pgOptions), count), { ledger: options })
  return { count, quota: hf.quota({ name: book, limit, per: 'lifetime' }) }
}

function counted<Tx>(driver: Driver<Tx>, count: CallCount): Driver<Tx> {
  return {
    ...driver,
    alone: {
      async query(statement) {
        count.calls += 1
        count.underWay += 1
        count.mostUnderWay = Math.max(count.mostUnderWay, count.underWay)
        try {
          return await driver.alone.query(statement)
        } finally {
          count.underWay -= 1
        }
      },
    },
  }
}

export async function installLedger(url: string): Promise<void> {
  const pool = await openPool(url, 1)
  try {
    await migrate(fromPg(pool))
  } finally {
    await pool.end()
  }
}
