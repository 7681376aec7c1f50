import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Answer } from '../crew/recorder.ts'
import type { Lease } from '../../packages/holdfast/src/entries/leases.ts'
import { isHoldfastError } from '../../packages/holdfast/src/index.ts'
import { leaseMs } from './leases-table.ts'

const slotMs = 2_000

/** Takes a lease, writes a few times under its fence, and gives it back. */
export const leasesActor: Actor = {
  workload: 'leases',
  copies: 1,
  async act(stage) {
    const { app, recorder, random, stopping } = stage
    while (!stopping.aborted) {
      const name = `report-${stage.slot(slotMs)}`
      const { answer } = await recorder.attempt({ operation: 'acquire', key: name }, async () => {
        const lease = await app.hf.leases.tryAcquire(name, { ttl: leaseMs })
        if (lease === undefined) return { outcome: 'refused' as const, lease }
        return { outcome: 'ok' as const, value: { token: String(lease.token) }, lease }
      })
      const lease = answer?.lease
      if (lease !== undefined) {
        for (let left = random.integer(1, 3); left > 0 && !lease.signal.aborted; left -= 1) {
          await write(stage, lease)
          await stage.pace()
        }
        await recorder.attempt(
          { operation: 'release', key: name, value: { token: String(lease.token) } },
          async () => ({ outcome: (await lease.release()) ? 'ok' : 'refused' }),
        )
      }
      await stage.pace()
    }
  },
}

async function write<Tx>(stage: Stage<Tx>, lease: Lease<Tx>): Promise<void> {
  const { app, recorder, without } = stage
  const id = newId(stage)
  const token = String(lease.token)
  const insert = `INSERT INTO fenced_write (lease, token, id)
    SELECT $1::text, $2::bigint, $3::text WHERE NOT EXISTS (SELECT FROM fenced_write WHERE id = $3::text)`
  await recorder.persist(
    { operation: 'write', key: lease.name, id, value: { token } },
    async (): Promise<Answer> => {
      // Who believes to be the holder works for a while before it writes.
      await stage.pace()
      try {
        return await app.hf.transaction(async (tx) => {
          if (!without.has('fence')) await lease.guard(tx)
          await app.query(tx, insert, [lease.name, token, id])
          return { outcome: 'ok' }
        })
      } catch (error) {
        if (isHoldfastError(error, 'LEASE_LOST')) return { outcome: 'refused' }
        throw error
      }
    },
  )
}
