import type { Executor } from '../core/driver.ts'
import { countMonthsAhead } from '../engines/postgres/schema/months.ts'
import type { Finding } from './finding.ts'

/** So many months are to be ready, so that a month that nobody maintains is not the last. */
const least = 2

/** Whether the movements of the months to come have a place. */
export async function inspectMonths(executor: Executor, schema: string): Promise<Finding[]> {
  const [row] = await executor.query(countMonthsAhead(schema))
  if (row === undefined || Number(row['ahead']) >= least) return []
  return [
    {
      code: 'months-missing',
      object: 'table movement',
      what: `has partitions for fewer than ${least} months to come.`,
      fix: 'Run `holdfast maintain`, every month.',
    },
  ]
}
