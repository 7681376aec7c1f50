import { withClient } from '@holdfast/testkit'
import { checkSchedules, type TickEffect, type TickRow } from '../checks/check-schedules.ts'
import type { WorkloadChecks } from '../core/model.ts'
import { operationsOf } from '../history/operations-of.ts'
import { scheduleName, schedulesTable, tickMs } from './schedules-table.ts'

/** A schedule that every process runs: each tick once. */
export const schedules: WorkloadChecks = {
  name: 'schedules',
  prepare: (url) =>
    withClient(url, async (client) => {
      await client.query(schedulesTable)
    }),
  check: (url, history) =>
    withClient(url, async (client) => {
      const ms = (column: string): string => `(extract(epoch FROM ${column}) * 1000)::float`
      const { rows: effects } = await client.query<TickEffect>(
        `SELECT ${ms('tick')} AS tick FROM tick_effect`,
      )
      const { rows: ticks } = await client.query<TickRow>(
        `SELECT ${ms('at')} AS at, state FROM holdfast.ticks WHERE schedule = $1 AND NOT manual`,
        [scheduleName],
      )
      const { rows: last } = await client.query<{ at: number }>(
        `SELECT ${ms('last_tick')} AS at FROM holdfast.schedules WHERE name = $1 AND last_tick IS NOT NULL`,
        [scheduleName],
      )
      return checkSchedules(
        operationsOf(history.filter(({ workload }) => workload === 'schedules')),
        { lastTick: last[0]?.at, everyMs: tickMs, ticks, effects },
      )
    }),
}
