import { withClient } from '@holdfast/testkit'
import { checkClaims, type Task, type TaskEffect } from '../checks/check-claims.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { claimsTables } from './claims-table.ts'

/** Rows of a table of the user's, claimed with tokens and completed with their effect. */
export const claims: WorkloadChecks = {
  name: 'claims',
  prepare: (url) =>
    withClient(url, async (client) => {
      await client.query(claimsTables)
    }),
  check: (url, history) =>
    withClient(url, async (client) => {
      const { rows: tasks } = await client.query<Task>('SELECT id, status, attempts FROM task')
      const { rows: effects } = await client.query<TaskEffect>(
        'SELECT task, token::text AS token FROM task_effect',
      )
      const operations = operationsOf(history.filter(({ workload }) => workload === 'claims'))
      return checkClaims(operations, tasks, effects)
    }),
}
