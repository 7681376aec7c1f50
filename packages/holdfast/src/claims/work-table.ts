import type { ClaimsOptions } from './layout.ts'

/** How the table `work` is laid out, for one queue of it or for all. */
export function workTable(schema: string, queue?: string): ClaimsOptions {
  return {
    table: { schema, table: 'work' },
    key: ['bucket', 'id'],
    bucket: 'bucket',
    where: queue === undefined ? {} : { queue },
    columns: {
      attempts: 'attempts',
      runAt: 'run_at',
      priority: 'priority',
      error: 'last_error',
      holder: 'claimed_by',
    },
    orderBy: ['run_at', 'id'],
    maxAttempts: { column: 'max_attempts' },
    deleteDone: true,
  }
}
