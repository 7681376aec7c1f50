import { withClient } from '@holdfast/testkit'
import { checkQuota } from '../checks/check-quota.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { quotaBooks } from './quota-books.ts'
import { readMovements } from './read-movements.ts'

/** Quotas of all windows at their limits. */
export const quota: WorkloadChecks = {
  name: 'quota',
  prepare: async () => undefined,
  check: (url, history) =>
    withClient(url, async (client) => {
      const books = Object.values(quotaBooks).map(({ name }) => name)
      const operations = operationsOf(history.filter(({ workload }) => workload === 'quota'))
      return checkQuota(operations, await readMovements(client, books), quotaBooks.lifetime)
    }),
}
