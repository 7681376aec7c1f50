import { formatOutcome, type StepResult } from './outcome.ts'
import type { Permutation } from './parse-permutations.ts'
import { parseSpec, type Spec, type SpecSession } from './parse-spec.ts'

/** Whether the session sends its steps without a transaction around them. */
function isAutocommit({ setup, steps }: SpecSession): boolean {
  const all = [...setup, ...steps.map(({ sql }) => sql)]
  return !all.some((sql) => /^(begin|start)\b/i.test(sql))
}

const commitOf = (step: string): string => `${step}_commit`

/**
 * The same spec with every statement that commits by itself written as two steps, the statement in a
 * transaction and its commit, so that isolationtester can put something in between. `undefined` if
 * there is no such statement.
 */
export function expandAutocommit(spec: Spec): Spec | undefined {
  if (!spec.sessions.some(isAutocommit)) return undefined
  const sessions = spec.sessions.map((session) => {
    const steps = session.steps.flatMap(({ name, sql }) =>
      isAutocommit(session)
        ? [`step ${name} { BEGIN; ${sql} }`, `step ${commitOf(name)} { COMMIT; }`]
        : [`step ${name} { ${sql} }`],
    )
    const setup = session.setup.map((sql) => `${sql};`).join(' ')
    return [`session ${session.name}`, setup && `setup { ${setup} }`, ...steps].join('\n')
  })
  const before = spec.setup.map((sql) => `setup { ${sql} }`)
  return parseSpec(spec.name, [...before, `teardown { ${spec.final} }`, ...sessions].join('\n'))
}

/** What the spec that was not expanded gives: a commit that fails is a statement that fails. */
export function outcomeOfExpanded(spec: Spec, { results, final }: Permutation): string {
  const resultOf = (step: string): StepResult | undefined => {
    const end = results.get(commitOf(step))
    return end?.startsWith('ERROR') ? end : results.get(step)
  }
  return formatOutcome(spec, resultOf, final)
}
