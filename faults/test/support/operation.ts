import type { Operation } from '../../history/operations-of.ts'

let made = 0

/** One operation of a history, from `began` to `ended`, with what a test does not care about filled in. */
export function operation(
  facts: Partial<Operation> & Pick<Operation, 'operation' | 'key' | 'outcome'>,
): Operation {
  made += 1
  const { began = made * 10, outcome } = facts
  const told = facts.ended ?? began + 5
  return {
    process: 'app0.1',
    workload: 'test',
    attempt: `app0.1#${made}`,
    id: undefined,
    began,
    told,
    asked: undefined,
    answered: undefined,
    code: undefined,
    ...facts,
    ended: outcome === 'unknown' ? Number.POSITIVE_INFINITY : told,
  }
}

/** The rules that were broken, in a fixed order. */
export function rulesOf(violations: readonly { readonly rule: string }[]): string[] {
  return [...new Set(violations.map(({ rule }) => rule))].toSorted((a, b) => a.localeCompare(b))
}
