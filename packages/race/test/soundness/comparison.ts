import { createDatabase } from '@holdfast/testkit'
import { expandAutocommit, outcomeOfExpanded } from './expand-autocommit.ts'
import { exploreSpec } from './explore-spec.ts'
import { runIsolationtester } from './isolationtester.ts'
import type { Spec } from './parse-spec.ts'
import { startReferee } from './referee.ts'

/** What the two ways do not agree about; each outcome with an order that gives it. */
export interface Difference {
  /** Found by all permutations, and not by us. */
  readonly missed: readonly string[]
  /** Found by us only. */
  readonly invented: readonly string[]
  /** Why ours may not be complete. */
  readonly doubts: readonly string[]
}

export const agreement: Difference = { missed: [], invented: [], doubts: [] }

/** Compares spec after spec; prints all counts when it is closed. */
export interface Comparison extends AsyncDisposable {
  /** Statements that commit by themselves are one step for both, or two for both. */
  compare(spec: Spec, autocommit: 'atomic' | 'split'): Promise<Difference>
}

type Counts = readonly [permutations: number, runs: number, outcomes: number]

/** On the server of `url`, in databases of its own. */
export async function openComparison(name: string, url: string): Promise<Comparison> {
  const referee = await startReferee(url, `${name}-`)
  const counts = new Map<string, Counts>()
  return {
    async compare(spec, autocommit) {
      const expanded = autocommit === 'split' ? expandAutocommit(spec) : undefined
      const theirs = await createDatabase(url)
      const permuted =
        expanded === undefined
          ? await runIsolationtester(theirs, spec, referee)
          : await runIsolationtester(theirs, expanded, referee, (run) =>
              outcomeOfExpanded(spec, run),
            )
      const explored = await exploreSpec(await createDatabase(url), spec, { autocommit })
      counts.set(spec.name, [permuted.permutations, explored.runs, permuted.outcomes.size])
      return {
        missed: only(permuted.example, explored.outcomes),
        invented: only(explored.example, permuted.outcomes),
        doubts: explored.doubts,
      }
    },
    async [Symbol.asyncDispose]() {
      await referee[Symbol.asyncDispose]()
      process.stdout.write(`${formatCounts(counts)}\n`)
    },
  }
}

function only(found: ReadonlyMap<string, string>, elsewhere: ReadonlySet<string>): string[] {
  const rest = [...found].filter(([outcome]) => !elsewhere.has(outcome))
  return rest.map(([outcome, order]) => `${order}\n${outcome}`)
}

function formatCounts(counts: ReadonlyMap<string, Counts>): string {
  const sums = [...counts.values()].reduce<Counts>(
    ([permutations, runs, outcomes], [more, ran, found]) => [
      permutations + more,
      runs + ran,
      outcomes + found,
    ],
    [0, 0, 0],
  )
  const line = (name: string, cells: readonly (number | string)[]): string =>
    name.padEnd(36) + cells.map((cell) => String(cell).padStart(13)).join('')
  return [
    line('spec', ['permutations', 'runs', 'outcomes']),
    ...[...counts]
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([name, cells]) => line(name, cells)),
    line(`${counts.size} specs`, sums),
  ].join('\n')
}
