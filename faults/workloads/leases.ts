import { withClient } from '@holdfast/testkit'
import { checkLeases, type FencedWrite } from '../checks/check-leases.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { leasesTable } from './leases-table.ts'

/** Writes behind the fence of a lease that is lost again and again. */
export const leases: WorkloadChecks = {
  name: 'leases',
  prepare: (url) =>
    withClient(url, async (client) => {
      await client.query(leasesTable)
    }),
  check: (url, history) =>
    withClient(url, async (client) => {
      const { rows } = await client.query<FencedWrite>(
        'SELECT seq::int, lease, token::float AS token, id FROM fenced_write ORDER BY seq',
      )
      return checkLeases(
        operationsOf(history.filter(({ workload }) => workload === 'leases')),
        rows,
      )
    }),
}
