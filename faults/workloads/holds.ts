import { waitUntil, withClient } from '@holdfast/testkit'
import type { ClientBase } from 'pg'
import { auditOf } from '../../bench/ledger/audit-of.ts'
import { checkHolds } from '../checks/check-holds.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { tokensBook } from './holds-book.ts'
import { readMovements } from './read-movements.ts'

/** Holds that are settled, released, or left to expire. */
export const holds: WorkloadChecks = {
  name: 'holds',
  prepare: async () => undefined,
  check: (url, history) =>
    withClient(url, async (client) => {
      const overdue = await overdueHolds(client)
      const { problems } = await auditOf(url)
      const operations = operationsOf(history.filter(({ workload }) => workload === 'holds'))
      return checkHolds(operations, await readMovements(client, [tokensBook.options.name]), {
        overdue,
        audit: problems.map((problem) => JSON.stringify(problem)),
      })
    }),
}

/** Lets the last ones expire first: those of the killed are ended by nobody else. */
async function overdueHolds(client: ClientBase): Promise<number> {
  const open = async (): Promise<{ left: number; overdue: number }> => {
    await client.query('SELECT holdfast.sweep(1000)')
    const { rows } = await client.query<{ left: number; overdue: number }>(
      `SELECT count(*)::int AS left, count(*) FILTER (WHERE expires_at < clock_timestamp())::int AS overdue
       FROM holdfast.hold WHERE state = 0 AND expires_at < clock_timestamp() + interval '10 s'`,
    )
    return rows[0] ?? { left: 0, overdue: 0 }
  }
  try {
    await waitUntil('no hold is open', async () => ((await open()).left === 0 ? true : undefined), {
      limitMs: 6_000,
      everyMs: 50,
    })
  } catch {
    return (await open()).overdue
  }
  return 0
}
