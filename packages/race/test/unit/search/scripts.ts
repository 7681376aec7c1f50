/** Flows of the model that the tests share, and flows made at random. */
import fc from 'fast-check'
import type { Pending, Run, Runner } from '../../../src/core/model.ts'
import type { Isolation, Statement } from './model-database.ts'
import type { ModelFlow } from './model-runner.ts'

/** A line of a script: `when` skips it by the last answer, `carry` adds the last answer to its value. */
export interface Line {
  readonly statement: Statement
  readonly when?: 'odd' | 'even'
  readonly carry?: boolean
}

export interface Script {
  readonly isolation: Isolation | 'autocommit'
  readonly lines: readonly Line[]
  readonly end: 'commit' | 'rollback'
}

export function flowOf(script: Script): ModelFlow {
  return function* () {
    let answer = 0
    let all = 0
    if (script.isolation !== 'autocommit') yield { op: 'begin', isolation: script.isolation }
    for (const { statement, when, carry } of script.lines) {
      if (when !== undefined && (answer % 2 === 0) !== (when === 'even')) continue
      answer = yield carry === true ? carried(statement, answer) : statement
      all = all * 7 + answer
    }
    if (script.isolation !== 'autocommit') yield { op: script.end }
    return all
  }
}

function carried(statement: Statement, answer: number): Statement {
  if (statement.op === 'set') return { ...statement, to: statement.to + answer }
  if (statement.op === 'append' || statement.op === 'insert')
    return { ...statement, value: statement.value + answer }
  return statement
}

const row = fc.constantFrom('t#k=0', 't#k=0', 't#k=1', 'u#k=0')
const table = fc.constantFrom('t', 't', 'u')
const key = fc.constantFrom('advisory 1', 'advisory 1', 'advisory 2')
const small = fc.integer({ min: 1, max: 3 })

const statement: fc.Arbitrary<Statement> = fc.oneof(
  fc.record({ op: fc.constant('read' as const), row }),
  fc.record({ op: fc.constant('sum' as const), table }),
  fc.record({ op: fc.constant('add' as const), row, by: small }),
  fc.record({ op: fc.constant('set' as const), row, to: small }),
  fc.record({ op: fc.constant('lock' as const), row }),
  fc.record({ op: fc.constant('append' as const), table, value: small }),
  fc.record({
    op: fc.constant('insert' as const),
    row: fc.constantFrom('t#k=7', 't#k=7', 'u#k=7'),
    value: small,
  }),
  fc.record({ op: fc.constant('advisory' as const), key }),
  fc.record({ op: fc.constant('try' as const), key }),
  fc.record({ op: fc.constant('wait-and-sum' as const), key, table }),
)

const line: fc.Arbitrary<Line> = fc.record(
  {
    statement,
    when: fc.constantFrom('odd' as const, 'even' as const),
    carry: fc.boolean(),
  },
  { requiredKeys: ['statement'] },
)

function script(most: number): fc.Arbitrary<Script> {
  return fc.record({
    isolation: fc.constantFrom(
      'read committed' as const,
      'read committed' as const,
      'repeatable read' as const,
      'autocommit' as const,
    ),
    lines: fc.array(line, { minLength: most === 1 ? 1 : 2, maxLength: most }),
    end: fc.constantFrom(...Array<'commit'>(5).fill('commit'), 'rollback' as const),
  })
}

/** Two flows of up to three statements, or three of up to two. */
export const scripts: fc.Arbitrary<readonly Script[]> = fc.oneof(
  fc.tuple(script(3), script(3)),
  fc.tuple(script(2), script(1), script(1)),
  fc.tuple(script(2), script(2), script(1)),
)

/** Two short ones, for faults that show in many of them. */
export const shortScripts: fc.Arbitrary<readonly Script[]> = fc.tuple(script(2), script(2))

export const rows: Readonly<Record<string, number>> = { 't#k=0': 1, 't#k=1': 2, 'u#k=0': 5 }

/** Every interleaving, each run; undefined if there are more than `most`. */
export async function everyInterleaving(runner: Runner, most: number): Promise<Run[] | undefined> {
  const runs: Run[] = []
  const stack: number[][] = [[]]
  for (let path = stack.pop(); path !== undefined; path = stack.pop()) {
    if (runs.length === most) return undefined
    const taken = path
    const run = await runner.run((decision, steps) => {
      const pending = decision.enabled[taken[steps.length] ?? 0] as Pending
      return pending.choice
    })
    runs.push(run)
    for (let index = taken.length; index < run.decisions.length; index++)
      for (let other = 1; other < (run.decisions[index]?.enabled.length ?? 0); other++)
        stack.push([...taken, ...Array<number>(index - taken.length).fill(0), other])
  }
  return runs
}

export function digestsOf(runs: readonly Run[]): string[] {
  return [...new Set(runs.map(({ digest }) => digest))].sort()
}
