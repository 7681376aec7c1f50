import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { exploreSpec } from './explore-spec.ts'
import { runIsolationtester } from './isolationtester.ts'
import type { Spec } from './parse-spec.ts'
import { randomSpec } from './random-spec.ts'
import { listSpecs, readSpec } from './read-spec.ts'
import { type Referee, startReferee } from './referee.ts'

// `npm run race:soundness` sets these: the specs that take minutes, and more seeds.
const long = process.env['RACE_SOUNDNESS'] === 'long'
const [firstSeed = 1, lastSeed = 16] = (process.env['RACE_SEEDS']?.split('-') ?? []).map(Number)

const written = listSpecs()
  .filter((name) => long || !name.startsWith('long/'))
  .map(readSpec)
const drawn = Array.from({ length: lastSeed - firstSeed + 1 }, (_, at) =>
  randomSpec(firstSeed + at),
)

interface Row {
  readonly spec: string
  readonly permutations: number
  readonly runs: number
  readonly outcomes: number
}

const rows: Row[] = []
let referee: Referee

beforeAll(async () => {
  referee = await startReferee(inject('postgresUrl'), 'soundness-')
})

afterAll(async () => {
  await referee[Symbol.asyncDispose]()
  const sum = (of: keyof Omit<Row, 'spec'>): number => rows.reduce((all, row) => all + row[of], 0)
  const lines = rows
    .toSorted((one, other) => one.spec.localeCompare(other.spec))
    .concat({
      spec: `${rows.length} specs`,
      permutations: sum('permutations'),
      runs: sum('runs'),
      outcomes: sum('outcomes'),
    })
    .map(({ spec, permutations, runs, outcomes }) =>
      [spec.padEnd(30), ...[permutations, runs, outcomes].map((n) => String(n).padStart(9))].join(
        '',
      ),
    )
  const head = `${'spec'.padEnd(30)}  permuted     runs outcomes`
  process.stdout.write(`${[head, ...lines].join('\n')}\n`)
})

/** Both ways on the same server; each has a database of its own. */
async function compare(spec: Spec): Promise<object> {
  const [theirs, ours] = [await testDatabase(), await testDatabase()]
  const [permuted, explored] = await Promise.all([
    runIsolationtester(theirs.directUrl, spec, referee),
    exploreSpec(ours.directUrl, spec),
  ])
  const missed = [...permuted.outcomes].filter((outcome) => !explored.outcomes.has(outcome))
  const invented = [...explored.outcomes].filter((outcome) => !permuted.outcomes.has(outcome))
  rows.push({
    spec: spec.name,
    permutations: permuted.permutations,
    runs: explored.runs,
    outcomes: permuted.outcomes.size,
  })
  return {
    missed: missed.map((outcome) => [permuted.example.get(outcome)?.join(' '), outcome]),
    invented: invented.map((outcome) => [explored.example.get(outcome), outcome]),
    doubts: explored.doubts,
  }
}

const nothing = { missed: [], invented: [], doubts: [] }

describe.concurrent('the outcomes are those of all permutations', () => {
  test.each([...written, ...drawn])('$name', { timeout: 120_000 }, async (spec) => {
    expect(await compare(spec)).toEqual(nothing)
  })
})
