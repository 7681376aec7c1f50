import { grouped, type Operation } from '../history/operations-of.ts'
import type { Findings } from './findings.ts'

/**
 * The rules that hold for whatever has an id: acknowledged is there, refused or failed is not, unknown is
 * there at most once, nothing is there twice, and nothing that nobody asked for.
 */
export function checkFates(
  findings: Findings,
  operations: readonly Operation[],
  times: ReadonlyMap<string, number>,
): void {
  const byId = grouped(operations, ({ id }) => id)
  for (const [id, attempts] of byId) {
    const there = times.get(id) ?? 0
    const name = `${attempts[0]?.operation} ${id} on ${attempts[0]?.key}`
    const has = (outcome: Operation['outcome']): boolean =>
      attempts.some((attempt) => attempt.outcome === outcome)
    if (there > 1) findings.add('applied_twice', `${name} is there ${there} times`)
    if (has('ok') && there === 0) findings.add('acknowledged_lost', `${name} was acknowledged`)
    // An attempt nobody knows the end of may have happened after the one that was refused.
    if (there > 0 && !has('ok') && !has('unknown')) {
      const rule = has('refused') ? 'refused_present' : 'failed_present'
      findings.add(
        rule,
        `${name} is there, and was ${attempts.map(({ code, outcome }) => code ?? outcome).join(', ')}`,
      )
    }
  }
  for (const id of times.keys()) {
    if (!byId.has(id)) findings.add('unasked', `${id} is there, and nobody asked for it`)
  }
}
