/** The program of one process of takers; see room-for-one.ts. */
import { barrier } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { joinTeam } from '../harness/team-member.ts'
import type { RoomOrder, RoomReport, RoomSetup } from './room-for-one.ts'

joinTeam<RoomSetup, RoomOrder, RoomReport>(async ({ url, seed, callers }) => {
  // A connection for every caller: none waits for another's.
  const pool = await openPool(url, callers)
  const hf = createHoldfast(fromPg(pool))

  async function moveIn(tx: PoolClient, round: number, taker: string): Promise<boolean> {
    const { rows } = await tx.query<{ takers: number }>(
      'SELECT count(*)::int AS takers FROM room WHERE round = $1',
      [round],
    )
    if ((rows[0]?.takers ?? 0) >= 1) return false
    await tx.query('INSERT INTO room VALUES ($1, $2)', [round, taker])
    return true
  }

  return {
    async ready({ round, locked }) {
      const troubles: string[] = []
      const body = async (tx: PoolClient): Promise<boolean> =>
        await moveIn(tx, round, String(process.pid))
      const options = {
        // The last of a hundred in the queue has to wait for all the others.
        waitMs: 60_000,
        onRetry: ({ reason }: { reason: string }) => void troubles.push(`retried: ${reason}`),
      }
      const together = barrier(callers)
      const caller = async (): Promise<boolean> => {
        await together()
        try {
          return await (locked
            ? hf.guard(lockKey('stress-room', seed, round), body, options)
            : hf.transaction(body))
        } catch (error) {
          troubles.push(`failed: ${String(error)}`)
          return false
        }
      }
      return async () => {
        const accepted = await Promise.all(Array.from({ length: callers }, caller))
        return { accepted: accepted.filter(Boolean).length, troubles }
      }
    },
    close: async () => await pool.end(),
  }
})
