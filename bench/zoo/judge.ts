/** Holds what the explorer said against the known answer, and counts. */
import { entryNamed } from './entries.ts'
import { shown, type Task } from './variants.ts'
import type { WorkerReport } from './worker.ts'

export type Wrong = 'false race' | 'false green' | 'wrong story' | 'undecided' | 'failed'

/** How a report is wrong; undefined if it is right. */
export function wrongOf(task: Task, { said }: WorkerReport): Wrong | undefined {
  if (said === undefined) return 'failed'
  const { racy } = entryNamed(task.entry)
  if (said.verdict === 'race' && racy) return said.story === undefined ? undefined : 'wrong story'
  if (said.verdict === 'race') return 'false race'
  if (said.verdict === 'race-free') return racy ? 'false green' : undefined
  return 'undecided'
}

/** One sentence with all that is needed to run it again. */
export function sentence(wrong: Wrong, task: Task, { said, message }: WorkerReport): string {
  const verdict = said === undefined ? 'explore() failed' : said.verdict
  const what = said?.story ?? message
  return `${wrong}: ${task.entry}, ${verdict} (${shown(task.variant)}): ${what}; again: --only ${task.entry} --seed ${task.seed}`
}

export interface Tally {
  explorations: number
  readonly wrong: Record<Wrong, number>
  readonly sentences: string[]
  readonly undecided: string[]
  readonly coverage: Record<string, Record<string, number>>
}

export function createTally(): Tally {
  return {
    explorations: 0,
    wrong: { 'false race': 0, 'false green': 0, 'wrong story': 0, undecided: 0, failed: 0 },
    sentences: [],
    undecided: [],
    coverage: {},
  }
}

export function count(tally: Tally, task: Task, report: WorkerReport): void {
  tally.explorations += 1
  const { variant } = task
  const add = (axis: string, value: string): void => {
    const counts = (tally.coverage[axis] ??= {})
    counts[value] = (counts[value] ?? 0) + 1
  }
  add('client × wait', `${variant.client} ${variant.waitMs}`)
  add('client × wait × keys', `${variant.client} ${variant.waitMs} ${variant.keys}`)
  add('wait', variant.waitMs === 0 ? 'none' : variant.waitKind)
  for (const axis of ['keys', 'clock', 'schema', 'cache', 'place'] as const) {
    add(axis, variant[axis])
  }
  add('entry', task.entry)
  add('verdict', report.said?.verdict ?? 'failed')
  const wrong = wrongOf(task, report)
  if (wrong === undefined) return
  tally.wrong[wrong] += 1
  const list = wrong === 'undecided' ? tally.undecided : tally.sentences
  list.push(sentence(wrong, task, report))
}

/** The share of the explorations that ended with an answer, right or wrong. */
export function decided({ explorations, wrong }: Tally): number {
  if (explorations === 0) return 0
  return Math.floor((1 - (wrong.undecided + wrong.failed) / explorations) * 1_000) / 1_000
}
