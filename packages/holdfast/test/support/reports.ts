import type { ClaimsOptions } from '../../src/entries/claims.ts'
import type { Driver } from '../../src/core/driver.ts'
import { createReports, type Reports } from '../../src/observe/reports.ts'

/** Reports as an observer makes them, in the schema `holdfast`. */
export function reportsOn<Tx>(
  driver: Driver<Tx>,
  claims: readonly ClaimsOptions[] = [],
  statementTimeoutMs = 5_000,
): Reports {
  return createReports(driver, { schema: 'holdfast', claims, statementTimeoutMs })
}
