import { type PostgresServer, startPostgres } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Dependent, dependent, dependentBy, rules } from '../../src/core/footprint.ts'
import type { Footprint } from '../../src/core/model.ts'
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

/** What would depend on what if objects had other names: those with different ones are apart. */
function dependentIf(rename: (object: string) => string): Dependent {
  const renamed = ({ ends, ...footprint }: Footprint): Footprint => ({
    ...footprint,
    touches: footprint.touches.map((touch) => ({ ...touch, object: rename(touch.object) })),
    ...(ends && {
      ends: { ...ends, writes: ends.writes.map(rename), locks: ends.locks.map(rename) },
    }),
  })
  return (one, other) => dependent(renamed(one), renamed(other))
}

let renamings = 0

test.each([
  [
    'a row and the whole table',
    'row-against-predicate',
    (object: string) => (object.includes('#') ? object : `whole ${object}`),
  ],
  [
    'rows by different keys',
    'row-by-two-keys',
    (object: string) => object.replace(/#(\w+)=/, ' by $1#$1='),
  ],
  [
    'one row and the same row',
    'row-against-row',
    (object: string) => (object.includes('#') ? `${object}.${(renamings += 1)}` : object),
  ],
])('if %s were apart, outcomes would be missed', async (_, name, rename) => {
  expect(await countMissed(name, dependentIf(rename))).toBeGreaterThan(0)
})
