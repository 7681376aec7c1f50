import { withClient } from '@holdfast/testkit'
import { type ClientBase, DatabaseError } from 'pg'
import type { Dependent } from '../../src/core/footprint.ts'
import { createRunner } from '../../src/run/create-runner.ts'
import type { Flow } from '../../src/run/options.ts'
import { enumerate } from '../../src/search/classes/systematic.ts'
import { formatError, formatOutcome, formatRows, type StepResult } from './outcome.ts'
import type { Spec, SpecSession } from './parse-spec.ts'

/** What our explorer finds when it runs a spec to the end. */
export interface ExploredSpec {
  readonly outcomes: ReadonlySet<string>
  /** Of each outcome, the steps of one run that gave it. */
  readonly example: ReadonlyMap<string, string>
  readonly runs: number
  readonly classes: number
  /** Why it may not have seen everything; empty if it has. */
  readonly doubts: readonly string[]
}

export interface ExploreSpecOptions {
  /** isolationtester cannot put anything between a statement and its own commit. */
  readonly autocommit?: 'atomic' | 'split'
  readonly dependent?: Dependent
}

/**
 * The sessions of a spec as flows, in every order that can differ. Each sends its steps on one
 * connection and goes on after an error, as isolationtester does.
 */
export async function exploreSpec(
  url: string,
  spec: Spec,
  { autocommit = 'atomic', dependent }: ExploreSpecOptions = {},
): Promise<ExploredSpec> {
  return await withClient(url, async (control) => {
    // Of the run under way: they come one after the other.
    const results = new Map<string, StepResult>()
    let final: StepResult = ''
    const flows = spec.sessions.map((session): [string, Flow] => [
      session.name,
      async ({ pool }) => {
        const client = await pool.connect()
        try {
          await runSession(client, session, results)
        } finally {
          client.release()
        }
      },
    ])
    await using runner = await createRunner({
      url,
      flows: Object.fromEntries(flows),
      autocommit,
      oracle: false,
      seed: async () => {
        results.clear()
        for (const sql of spec.setup) await control.query(sql)
      },
      invariant: async () => {
        final = await answerOf(control, spec.final)
      },
    })

    const example = new Map<string, string>()
    const doubts: string[] = []
    const enumerating = enumerate(runner, dependent && { dependent })
    for (;;) {
      const { value, done } = await enumerating.next()
      if (done) {
        if (!value.exhaustive) doubts.push('not exhaustive', ...value.divergences)
        const { schedules: runs, classes } = value
        return { outcomes: new Set(example.keys()), example, runs, classes, doubts }
      }
      if (value.trouble !== undefined) {
        doubts.push(value.trouble.message)
        continue
      }
      const outcome = formatOutcome(spec, (step) => results.get(step), final)
      const order = value.steps.map(({ flow, statements }) => `${flow}: ${statements.join(' ')}`)
      example.set(outcome, order.join(' '))
    }
  })
}

async function runSession(
  client: ClientBase,
  session: SpecSession,
  results: Map<string, StepResult>,
): Promise<void> {
  for (const sql of session.setup) await client.query(sql)
  for (const { name, sql } of session.steps) results.set(name, await answerOf(client, sql))
}

const asText = { getTypeParser: () => String }

async function answerOf(client: ClientBase, text: string): Promise<StepResult> {
  try {
    const { fields, rows } = await client.query<(string | null)[]>({
      text,
      rowMode: 'array',
      types: asText,
    })
    return fields.length > 0
      ? formatRows(
          fields.map(({ name }) => name),
          rows,
        )
      : 'ok'
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error
    return formatError(error.severity ?? 'ERROR', error.message)
  }
}
