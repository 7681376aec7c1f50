import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Dependent, dependent, dependentBy, rules } from '../../src/core/footprint.ts'
import { exploreSpec } from './explore-spec.ts'
import { readSpec } from './read-spec.ts'

/** A spec that needs the rule: without it, an outcome is missed that is there. */
const needs: Readonly<Record<string, string>> = {
  exclusion: 'advisory-try',
  visibility: 'p4-lost-update-rc',
  release: 'skip-locked-rollback',
  'serializable conflict': 'serializable-pivot',
  'serializable end': 'g2-two-edges-ser',
}

// Of their own, because of SERIALIZABLE: see soundness.test.ts.
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ settings: { autovacuum: 'off' } })
})
afterAll(() => server.stop('immediate'))

/** How many outcomes of a spec are missed if steps are taken to depend on each other less. */
async function countMissed(name: string, weaker: Dependent): Promise<number> {
  const spec = readSpec(name)
  const url = await server.createDatabase()
  const whole = await exploreSpec(url, spec)
  const less = await exploreSpec(url, spec, { dependent: weaker })
  return [...whole.outcomes].filter((outcome) => !less.outcomes.has(outcome)).length
}

test.each(rules)('without the rule "$name" outcomes are missed', async ({ name }) => {
  const weaker = dependentBy(rules.filter((rule) => rule.name !== name))
  expect(await countMissed(needs[name] ?? `a spec that needs "${name}"`, weaker)).toBeGreaterThan(0)
})

test('if the unknown counted as independent, outcomes would be missed', async () => {
  const weaker: Dependent = (one, other) => !one.opaque && !other.opaque && dependent(one, other)
  expect(await countMissed('catalogue-read', weaker)).toBeGreaterThan(0)
})
