/** The program of one process of takers; see room-for-one.ts. */
import { barrier } from '@holdfast/testkit'
import { lockKey } from '../../packages/holdfast/src/core/locks/lock-key.ts'
import { joinTeam } from '../harness/team-member.ts'
import { openLockStore } from './lock-store.ts'
import type { RoomOrder, RoomReport, RoomSetup } from './room-for-one.ts'

joinTeam<RoomSetup, RoomOrder, RoomReport>(async ({ url, seed, callers }) => {
  // A connection for every caller: none waits for another's.
  const store = await openLockStore(url, callers)

  return {
    async ready({ round, exclusion }) {
      const troubles: string[] = []
      const body = async (tx: unknown): Promise<boolean> => {
        if ((await store.takers(tx, round)) >= 1) return false
        await store.moveIn(tx, round, String(process.pid))
        return true
      }
      const options = {
        // The last of a hundred in the queue has to wait for all the others.
        wait: 60_000,
        onRetry: ({ reason }: { reason: string }) => void troubles.push(`retried: ${reason}`),
      }
      const excluded = {
        guard: () => store.guard(lockKey('stress-room', seed, round), body, options),
        none: () => store.transaction(body),
        'session lock': () =>
          store.transaction(async (tx) => {
            const inside = store.inSessionLock?.(tx, `room ${round}`, () => body(tx))
            return (await inside) ?? false
          }),
      }[exclusion]
      const together = barrier(callers)
      const caller = async (): Promise<boolean> => {
        await together()
        try {
          return await excluded()
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
    close: async () => await store[Symbol.asyncDispose](),
  }
})
