/** The search by reversal of races finds what every interleaving together finds, and in few runs. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Dependent, dependent, dependentBy, rules } from '../../../src/core/footprint.ts'
import type { Footprint, Runner, TouchMode } from '../../../src/core/model.ts'
import { enumerate as everyClass } from '../../../src/search/systematic.ts'
import { modelRunner } from './model-runner.ts'
import { enumerate as everyInterleaving, flowOf, rows, type Script, scripts } from './scripts.ts'

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

function runnerOf(all: readonly Script[], tableLevel: boolean, closer: boolean): Runner {
  const flows = Object.fromEntries(all.map((script, index) => [`f${index}`, flowOf(script)]))
  return modelRunner(flows, { rows, tableLevel, deadlock: closer ? 'closer' : 'choice' })
}

const cases = Number(process.env['RACE_CASES'] ?? 300)

/** Whether the search finds every result that every interleaving together finds. */
function agrees(relation: Dependent): fc.IAsyncProperty<[readonly Script[], boolean, boolean]> {
  return fc.asyncProperty(scripts, fc.boolean(), fc.boolean(), async (all, tableLevel, closer) => {
    const every = await everyInterleaving(runnerOf(all, tableLevel, closer), 3_000)
    fc.pre(every !== undefined)
    const found = await exhaust(runnerOf(all, tableLevel, closer), relation)
    expect([...found.digests].sort()).toEqual([...(every?.digests ?? [])].sort())
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
      const outcome = await fc.check(agrees(relation), { numRuns: 3_000, endOnFailure: true })
      expect(outcome.failed).toBe(true)
    },
  )
})
