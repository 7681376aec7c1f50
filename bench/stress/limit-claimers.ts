/** One process with several claimers; see limit-attack.ts. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Driver } from '../../packages/holdfast/src/core/driver.ts'
import type { ClaimsOptions } from '../../packages/holdfast/src/entries/claims.ts'
import { leaseSettings } from '../../packages/holdfast/src/claims/layout.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { claimRows } from '../../packages/holdfast/src/engines/postgres/claims/claims.ts'
import { nextTurns, turnsOf } from '../../packages/holdfast/src/engines/postgres/claims/turns.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { joinTeam } from '../harness/team-member.ts'
import { type TaskRow, taskOptions } from './claims-table.ts'
import type { LimitOrder, LimitReport, LimitSetup } from './limit-attack.ts'

/** Between two looks that found nothing. */
const idleMs = 80

joinTeam<LimitSetup, LimitOrder, LimitReport>(async ({ url, claimers, limit, holdMs }) => {
  const pool = await openPool(url, claimers)
  const driver = fromPg(pool)
  const options: ClaimsOptions = { ...taskOptions, perKey: { column: 'tenant', limit } }

  /** Counts and claims in one statement, as if that were enough: no lock of the key. */
  async function countThenClaim(on: Driver<unknown>): Promise<number> {
    const { layout, leaseMs } = leaseSettings(options, undefined)
    const found = await on.alone.query(
      nextTurns(layout, { column: 'tenant', most: 8, after: undefined }),
    )
    const keys = found.map((row) => String(row['#key']))
    if (keys.length === 0) return 0
    const turns = turnsOf('tenant', keys, 16, { limit, rate: undefined })
    const lease = { token: crypto.randomUUID(), ms: leaseMs, holder: '' }
    const rows = await on.alone.query(claimRows(layout, { limit: 16, joined: false, turns }, lease))
    await pause(holdMs)
    await pool.query(
      `UPDATE task SET status = 'done' WHERE id = ANY ($1::bigint[]) AND claim_token = $2`,
      [rows.map((row) => row['#key0']), lease.token],
    )
    return rows.length
  }

  return {
    async ready({ seconds, locked }) {
      return async () => {
        const until = performance.now() + seconds * 1_000
        const done: Record<string, number> = {}
        const troubles: string[] = []
        const claimer = async (): Promise<void> => {
          // Each has claims of its own, so that no two of them share a statement.
          const tasks = createHoldfast(driver).claims<TaskRow>(options)
          while (performance.now() < until) {
            try {
              if (!locked) {
                await countThenClaim(driver as Driver<unknown>)
                continue
              }
              const claims = await tasks.claim(4)
              await pause(claims.length === 0 ? idleMs : holdMs)
              const { kept, lost } = await tasks.complete(claims)
              if (lost.length > 0) troubles.push('a claim was lost')
              for (const { row } of kept) done[row.tenant] = (done[row.tenant] ?? 0) + 1
            } catch (error) {
              troubles.push(String(error))
            }
          }
        }
        await Promise.all(Array.from({ length: claimers }, claimer))
        return { done, troubles }
      }
    },
    close: async () => await pool.end(),
  }
})
