import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { checkEndings } from './check-endings.ts'
import { checkMovements, checkOperations, type Movement } from './check-ledger.ts'
import { Findings } from './findings.ts'

/** Stock: never below nothing, orders whole or not at all, and who was told no is not served later. */
export function checkStock(
  operations: readonly Operation[],
  movements: readonly Movement[],
): Violation[] {
  const findings = new Findings('stock')
  checkMovements(findings, movements)
  const orders = operations.filter(({ id }) => id !== undefined)
  checkOperations(findings, orders, movements)
  checkEndings(findings, operations, movements)
  for (const [id, attempts] of grouped(orders, (order) => order.id)) {
    const refused = attempts.find(({ outcome }) => outcome === 'refused')
    const later = attempts.find(
      ({ outcome, began }) => outcome === 'ok' && refused !== undefined && began > refused.ended,
    )
    if (later !== undefined) {
      findings.add('replay_differs', `${later.operation} ${id} was refused and later accepted`)
    }
  }
  return findings.violations
}
