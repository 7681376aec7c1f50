import { formatError, formatRows, type StepResult } from './outcome.ts'
import type { Spec } from './parse-spec.ts'

/** One permutation as isolationtester ran and printed it. */
export interface Permutation {
  readonly steps: readonly string[]
  /** Steps that were waiting for a lock when the n-th step was sent; one entry more than steps. */
  readonly waitingBefore: readonly (readonly string[])[]
  readonly results: ReadonlyMap<string, StepResult>
  readonly final: StepResult
  /** Steps that were cancelled, and how many steps had been sent by then. */
  readonly cancelled: readonly { readonly step: string; readonly sent: number }[]
}

const cancelMessage = 'canceling statement due to user request'

/** Reads all permutations from isolationtester's output. */
export function parsePermutations(spec: Spec, output: string): Permutation[] {
  const [head, ...parts] = output.split('\nstarting permutation: ')
  if (!head?.startsWith('Parsed test spec with')) {
    throw new Error(`${spec.name}: isolationtester said:\n${output.slice(0, 2000)}`)
  }
  return parts.map((part) => parsePermutation(spec, part))
}

function parsePermutation(spec: Spec, text: string): Permutation {
  const sql = new Map(spec.sessions.flatMap(({ steps }) => steps.map((s) => [s.name, s.sql])))
  const lineEnd = text.indexOf('\n')
  const steps = text.slice(0, lineEnd).trim().split(' ')
  let rest = text.slice(lineEnd + 1)

  const waiting = new Set<string>()
  const waitingBefore: string[][] = []
  const results = new Map<string, StepResult>()
  const cancelled: { step: string; sent: number }[] = []
  const tables: { step: string | undefined; rows: StepResult }[] = []
  let current: string | undefined

  while (rest !== '') {
    const step = /^step ([^:\n]+): /.exec(rest)
    if (step?.[1] !== undefined) {
      current = step[1]
      rest = rest.slice(step[0].length)
      const completed = '<... completed>\n'
      if (rest.startsWith(completed)) {
        waiting.delete(current)
        rest = rest.slice(completed.length)
      } else {
        waitingBefore.push([...waiting])
        // The text of a step may have lines of its own: it is known, so it is skipped as a whole.
        const statement = sql.get(current)
        if (statement === undefined || !rest.startsWith(statement)) {
          throw new Error(`${spec.name}: cannot read step "${current}" in:\n${rest.slice(0, 300)}`)
        }
        rest = rest.slice(statement.length)
        const waits = ' <waiting ...>'
        if (rest.startsWith(waits)) waiting.add(current)
        rest = rest.slice(rest.indexOf('\n') + 1)
      }
      results.set(current, 'ok')
      continue
    }
    const error = /^(ERROR|FATAL): {2}(.*)\n/.exec(rest)
    if (error?.[1] !== undefined && error[2] !== undefined && current !== undefined) {
      results.set(current, formatError(error[1], error[2]))
      if (error[2] === cancelMessage) {
        cancelled.push({ step: current, sent: waitingBefore.length })
      }
      rest = rest.slice(error[0].length)
      continue
    }
    const table = /^(.*)\n[-+]*\n([^]*?)\(\d+ rows?\)\n\n/.exec(rest)
    if (table?.[1] !== undefined && table[2] !== undefined) {
      tables.push({ step: current, rows: readTable(table[1], table[2]) })
      rest = rest.slice(table[0].length)
      continue
    }
    const noticeOrBlank = /^(\S+: [A-Z]+: {2}.*)?\n/.exec(rest)
    if (noticeOrBlank === null) {
      throw new Error(`${spec.name}: cannot read the output from here:\n${rest.slice(0, 300)}`)
    }
    rest = rest.slice(noticeOrBlank[0].length)
  }
  waitingBefore.push([...waiting])

  // The teardown prints after everything else and always prints.
  const final = tables.pop()
  if (final === undefined) throw new Error(`${spec.name}: no final state in:\n${text}`)
  for (const { step, rows } of tables) {
    if (step !== undefined) results.set(step, rows)
  }
  return { steps, waitingBefore, results, final: final.rows, cancelled }
}

function readTable(header: string, body: string): StepResult {
  const cells = (line: string): string[] => line.split('|').map((cell) => cell.trim())
  const lines = body.split('\n').slice(0, -1)
  return formatRows(cells(header), lines.map(cells))
}
