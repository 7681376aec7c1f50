import { checkTables } from '../claims/check.ts'
import { type ClaimsOptions, claimsOptions, leaseSettings } from '../claims/layout.ts'
import type { Driver, Executor, Row } from '../core/driver.ts'
import { optionsGiven } from '../core/options/known-options.ts'
import { checkTable } from '../engines/postgres/claims/table-check.ts'
import {
  logAgain,
  overdueHolds,
  strandedClaims,
  stuckTicks,
  sweepText,
  unloggedLimits,
  unvacuumedTables,
  vacuumAgain,
} from '../engines/postgres/health/work.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { finding, type HealthFinding, ofClaims } from './finding.ts'
import { lengthOf } from './setting-value.ts'

/** `12`, or `more than 1000`: counting stops there. */
function countOf(row: Row | undefined): string {
  const found = Number(row?.['found'] ?? 0)
  return found > 1_000 ? 'more than 1000' : String(found)
}

/** Holds that ended and that nobody has booked as ended. */
export async function examineHolds(
  executor: Executor,
  schema: string,
  ms: number,
): Promise<HealthFinding[]> {
  const [row] = await executor.query(overdueHolds(schema, ms))
  if (Number(row?.['found'] ?? 0) === 0) return []
  return [
    finding(
      'holds-overdue',
      'holds',
      `are overdue (${countOf(row)}), the oldest for ${lengthOf(Number(row?.['ms']))}: no process sweeps. Call hf.ledger.startSweeper() in one; once, by hand:`,
      sweepText(schema),
    ),
  ]
}

/** Ticks that nobody finishes or tries again. */
export async function examineTicks(
  executor: Executor,
  schema: string,
  ms: number,
): Promise<HealthFinding[]> {
  const rows = await executor.query(stuckTicks(schema, ms))
  return rows.map((row) => {
    const late = lengthOf(Number(row['ms']))
    return finding(
      'tick-stuck',
      `schedule ${String(row['schedule'])}`,
      row['state'] === 'running'
        ? `has a tick at work whose lease ended ${late} ago, and no process has looked since.`
        : `has a tick that was asked for or is to be tried again, has been due for ${late}, and that nobody has taken.`,
      'Call start() of this schedule in a process that goes on, or fire() from a timer: they take up what is open; fireAt() and runNow() do not.',
    )
  })
}

/** Tables that vacuum was told to pass over. */
export async function examineVacuum(executor: Executor, schema: string): Promise<HealthFinding[]> {
  const rows = await executor.query(unvacuumedTables(schema))
  return rows.map((row) =>
    finding(
      'autovacuum-off',
      `table ${String(row['name'])}`,
      'has autovacuum_enabled = false: dead rows are never removed, and every read gets slower.',
      vacuumAgain(schema, String(row['name'])),
    ),
  )
}

/** Rate limits whose owner chose to do without their counts after a crash. */
export async function examineLimits(executor: Executor, schema: string): Promise<HealthFinding[]> {
  const rows = await executor.query(unloggedLimits(schema))
  return rows.map((row) =>
    finding(
      'rate-limit-unlogged',
      `table ${String(row['name'])}`,
      'is UNLOGGED: after a crash or a failover it is empty, and all rate limits begin anew. If that was not your choice:',
      logAgain(schema, String(row['name'])),
    ),
  )
}

/** A table that rows are claimed from: its columns and indexes. Who examines need not be who claims. */
export async function examineClaims<Tx>(
  driver: Driver<Tx>,
  options: ClaimsOptions,
): Promise<HealthFinding[]> {
  const settings = leaseSettings(optionsGiven(options, claimsOptions), undefined)
  const { findings, failure } = await checkTables(driver, (primary) =>
    checkTable(primary, settings),
  )
  if (failure !== undefined) throw failure
  return findings.map(ofClaims)
}

/** Rows whose claim ran out and that no worker takes up. */
export async function examineStranded(
  executor: Executor,
  options: ClaimsOptions,
  ms: number,
): Promise<HealthFinding[]> {
  const settings = leaseSettings(options, undefined)
  const layout = await withOperators(executor, executor, settings.layout)
  const [row] = await executor.query(strandedClaims(layout, ms))
  if (Number(row?.['found'] ?? 0) === 0) return []
  return [
    finding(
      'claims-stranded',
      `table ${layout.table.table}`,
      `has rows (${countOf(row)}) whose claim ended ${lengthOf(Number(row?.['ms']))} ago and that nobody took up: no worker runs.`,
      'Start a worker with claims.run(), or call claims.recover() once.',
    ),
  ]
}

/** The table that Holdfast brings along, as far as ended claims go. */
export function workTable(schema: string): ClaimsOptions {
  return { table: { schema, table: 'work' }, key: ['bucket', 'id'] }
}
