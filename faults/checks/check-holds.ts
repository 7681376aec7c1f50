import type { Violation } from '../core/model.ts'
import type { Operation } from '../history/operations-of.ts'
import { checkEndings } from './check-endings.ts'
import { checkMovements, checkOperations, type Movement } from './check-ledger.ts'
import { Findings } from './findings.ts'

/** What the ledger looks like besides its movements, when everything that can fall due has fallen. */
export interface LedgerState {
  /** Holds that are open although their time is over. */
  readonly overdue: number
  /** What `ledger.audit()` found. */
  readonly audit: readonly string[]
}

/** Holds: never above the limit, ended once, and none left behind. */
export function checkHolds(
  operations: readonly Operation[],
  movements: readonly Movement[],
  { overdue, audit }: LedgerState,
): Violation[] {
  const findings = new Findings('holds')
  checkMovements(findings, movements)
  checkOperations(
    findings,
    operations.filter(({ operation }) => operation === 'hold'),
    movements,
  )
  checkEndings(findings, operations, movements)
  if (overdue > 0) findings.add('leak', `${overdue} holds are open after their time`)
  for (const problem of audit) findings.add('audit', problem)
  return findings.violations
}
