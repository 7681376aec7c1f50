import type { Spec } from './parse-spec.ts'

/** What one step answered, as one line: `ok`, rows, or an error. */
export type StepResult = string

/** Rows as both sides can show them: a cell is text, NULL is empty, as isolationtester prints it. */
export function formatRows(
  columns: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): StepResult {
  const cells = rows.map((row) => row.map((cell) => (cell ?? '').trim()).join('|'))
  return `${columns.join('|')} = ${cells.join(', ') || 'nothing'}`
}

export function formatError(severity: string, message: string): StepResult {
  return `${severity}: ${message}`
}

/**
 * One outcome: what each session saw, in its own order, and what was there in the end. The order
 * between sessions and who waited are left out: two runs that differ only in these are the same.
 */
export function formatOutcome(
  spec: Spec,
  resultOf: (step: string) => StepResult | undefined,
  final: StepResult,
): string {
  const lines = spec.sessions.map(({ name, steps }) => {
    const seen = steps.map((step) => `${step.name}: ${resultOf(step.name) ?? 'never ran'}`)
    return `${name} { ${seen.join('; ')} }`
  })
  return [...lines, `final { ${final} }`].join('\n')
}
