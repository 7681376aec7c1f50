import { withClient } from '@holdfast/testkit'
import { checkGuard, type Seat } from '../checks/check-guard.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { seatsPerRoom } from './guard-room.ts'

/** A check and an insert in a table of the user's, under a lock. */
export const guard: WorkloadChecks = {
  name: 'guard',
  prepare: (url) =>
    withClient(url, async (client) => {
      // No constraint: what keeps the rule is the lock, or nothing does.
      await client.query(`CREATE TABLE seat (room text NOT NULL, id text NOT NULL);
        CREATE INDEX ON seat (room)`)
    }),
  check: (url, history) =>
    withClient(url, async (client) => {
      const { rows } = await client.query<Seat>('SELECT room, id FROM seat')
      const operations = operationsOf(history.filter(({ workload }) => workload === 'guard'))
      return checkGuard(operations, rows, seatsPerRoom)
    }),
}
