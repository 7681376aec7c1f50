import type { Driver } from '../core/driver.ts'
import { askEach } from '../tx/ask-each.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'

/** Looks at a table on every primary; what several of them lack alike is told once. */
export async function checkTables<Tx>(
  driver: Driver<Tx>,
  check: (primary: Driver<Tx>) => Promise<readonly ClaimFinding[]>,
): Promise<{
  readonly findings: readonly ClaimFinding[]
  readonly asked: number
  readonly failure: Error | undefined
}> {
  const { answers, failure } = await askEach(driver, check)
  const findings = new Map(answers.flat().map((each) => [`${each.object}: ${each.what}`, each]))
  return { findings: [...findings.values()], asked: answers.length, failure }
}
