import { withClient } from '@holdfast/testkit'
import { checkStock } from '../checks/check-stock.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { readMovements } from './read-movements.ts'
import { shop } from './stock-shop.ts'

/** Orders of several lines on a stock that is nearly empty. */
export const stock: WorkloadChecks = {
  name: 'stock',
  prepare: async () => undefined,
  check: (url, history) =>
    withClient(url, async (client) => {
      const operations = operationsOf(history.filter(({ workload }) => workload === 'stock'))
      return checkStock(operations, await readMovements(client, [shop.name]))
    }),
}
