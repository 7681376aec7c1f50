/** The search by reversal of races finds what every interleaving together finds, and in few runs. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Dependent, dependent, dependentBy, rules } from '../../../src/core/footprint.ts'
import type { Footprint, Run, Runner, TouchMode } from '../../../src/core/model.ts'
import { Frontier } from '../../../src/search/classes/frontier.ts'
import { preemptionsOf } from '../../../src/search/linear.ts'
import { enumerate as everyClass, systematic } from '../../../src/search/classes/systematic.ts'
import { Tally } from '../../../src/search/tally.ts'
import { type ModelOptions, modelRunner } from './model-runner.ts'
import {
  digestsOf,
  everyInterleaving,
  flowOf,
  rows,
  type Script,
  scripts,
  shortScripts,
} from './scripts.ts'

async function exhaust(
  runner: Runner,
  relation: Dependent = dependent,
): Promise<{ digests: Set<string>; schedules: number; classes: number; exhaustive: boolean }> {
  const runs = everyClass(runner, { dependent: relation })
  const digests = new Set<string>()
  for (;;) {
    const next = await runs.next()
    if (next.done) return { ...next.value, digests }
    digests.add(next.value.digest)
  }
}

function runnerOf(all: readonly Script[], options: ModelOptions): Runner {
  const flows = Object.fromEntries(all.map((script, index) => [`f${index}`, flowOf(script)]))
  return modelRunner(flows, { rows, ...options })
}

const models: fc.Arbitrary<ModelOptions> = fc.record({
  tableLevel: fc.boolean(),
  deadlock: fc.constantFrom('choice' as const, 'closer' as const),
  atomic: fc.boolean(),
})

const cases = Number(process.env['RACE_CASES'] ?? 120)

/** Whether the search finds every result that every interleaving together finds. */
function agrees(
  relation: Dependent,
  of = scripts,
): fc.IAsyncProperty<[readonly Script[], ModelOptions]> {
  return fc.asyncProperty(of, models, async (all, options) => {
    const every = await everyInterleaving(runnerOf(all, options), 3_000)
    fc.pre(every !== undefined)
    const found = await exhaust(runnerOf(all, options), relation)
    expect([...found.digests].sort()).toEqual(digestsOf(every ?? []))
  })
}

/** The relation without what some touches or ends would have told it. */
function blindTo(change: (footprint: Footprint) => Footprint): Dependent {
  return (one, other) => dependent(change(one), change(other))
}

function without(...modes: readonly TouchMode[]): Dependent {
  return blindTo((footprint) => ({
    ...footprint,
    touches: footprint.touches.filter(({ mode }) => !modes.includes(mode)),
  }))
}

describe('random scripts', () => {
  test('every result of every interleaving is found', { timeout: 600_000 }, async () => {
    const outcome = await fc.check(agrees(dependent), { numRuns: cases })
    expect(fc.defaultReportMessage(outcome)).toBeUndefined()
  })

  test.each<[string, Dependent]>([
    ...rules
      .filter(({ name }) => !name.startsWith('serializable'))
      .map(({ name }): [string, Dependent] => [
        name,
        dependentBy(rules.filter((rule) => rule.name !== name)),
      ]),
    ['reads', without('read')],
    ['row locks', without('lock')],
    ['unique keys', without('insert')],
    ['advisory locks', without('exclusive')],
    ['attempts', without('attempt')],
    [
      'what is committed',
      blindTo(({ ends, ...rest }) =>
        ends === undefined ? rest : { ...rest, ends: { ...ends, writes: [] } },
      ),
    ],
    [
      'what is released',
      blindTo(({ ends, ...rest }) =>
        ends === undefined ? rest : { ...rest, ends: { ...ends, locks: [] } },
      ),
    ],
  ])(
    'something is missed by a relation that forgets %s',
    { timeout: 120_000 },
    async (_, relation) => {
      const outcome = await fc.check(agrees(relation, shortScripts), {
        numRuns: 3_000,
        endOnFailure: true,
        seed: 2,
      })
      expect(outcome.failed).toBe(true)
    },
  )
})

describe('a search that was cut short', () => {
  const flow = flowOf({
    isolation: 'read committed',
    lines: [
      { statement: { op: 'read', row: 't#k=0' } },
      { statement: { op: 'set', row: 't#k=0', to: 1 }, carry: true },
    ],
    end: 'commit',
  })
  const runner = modelRunner({ a: flow, b: flow, c: flow }, { rows })
  let every: readonly Run[] = []
  beforeAll(async () => {
    every = (await everyInterleaving(runner, 20_000)) ?? []
  })

  test.each([
    [10, undefined],
    [20, undefined],
    [40, undefined],
    [60, 0],
    [80, 0],
    [95, 2],
  ])('after %i runs of 96 it claims the bound %s, which holds', async (most, claimed) => {
    const frontier = new Frontier(dependent)
    const found: Run[] = []
    const tally = new Tally(runner, { schedules: most, ms: 60_000 })
    for await (const { trace } of systematic(tally, frontier, () => tally.spent()))
      found.push(trace.run)
    const bound = frontier.preemptionBound()
    expect(bound).toBe(claimed)
    const within = every.filter((run) => preemptionsOf(run) <= (bound ?? -1))
    const classes = (runs: readonly Run[]): Set<string> =>
      new Set(runs.map((run) => [...frontier.trace(run).nodes].sort((a, b) => a - b).join()))
    expect([...classes(within)].filter((one) => !classes(found).has(one))).toEqual([])
    if (bound === undefined) return
    // The control: one preemption more would have been claimed too much, or had no runs left to claim.
    const beyond = every.filter((run) => preemptionsOf(run) <= bound + 1)
    expect([...classes(beyond)].filter((one) => !classes(found).has(one))).not.toEqual([])
  })
})

test('an end that says nothing about what it ends is taken for anything', async () => {
  const flow = flowOf({
    isolation: 'read committed',
    lines: [
      { statement: { op: 'sum', table: 't' } },
      { statement: { op: 'append', table: 't', value: 1 } },
    ],
    end: 'commit',
  })
  const inner = modelRunner({ a: flow, b: flow }, { rows })
  const silent: Runner = {
    flows: inner.flows,
    run: async (decide) => {
      const run = await inner.run(decide)
      const steps = run.steps.map((step) => {
        const { ends: _, ...footprint } = step.footprint
        return { ...step, footprint }
      })
      return { ...run, steps }
    },
  }
  const every = (await everyInterleaving(inner, 100)) ?? []
  const { digests } = await exhaust(silent)
  expect([...digests].sort()).toEqual(digestsOf(every))
})
