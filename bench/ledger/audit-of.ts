import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { Audit } from '../../packages/holdfast/src/ledger/upkeep/audit.ts'
import { openPool } from '../harness/open-pool.ts'

/** What a ledger says about itself, in its own words. */
export async function auditOf(url: string, schema = 'holdfast'): Promise<Audit> {
  const pool = await openPool(url, 1)
  try {
    return await createHoldfast(fromPg(pool), { ledger: { schema } }).ledger.audit()
  } finally {
    await pool.end()
  }
}
