import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { agreement, type Comparison, openComparison } from './comparison.ts'
import { expandAutocommit } from './expand-autocommit.ts'
import { exploreSpec } from './explore-spec.ts'
import { countPermutations, type Spec } from './parse-spec.ts'
import { randomAutocommitSpec } from './random-spec.ts'
import { listSpecs, readSpec } from './read-spec.ts'
import { long, seeds } from './scope.ts'

/**
 * What cannot be compared: a CREATE TABLE is one step for us, so what two of them do that overlap is
 * not explored; and a procedure that commits cannot be called in a transaction.
 */
const indivisible = ['catalogue-check-then-create', 'procedure-with-commit']

function isSmall(spec: Spec): boolean {
  const expanded = expandAutocommit(spec)
  // SERIALIZABLE needs a server of its own, see soundness.test.ts.
  if (spec.text.includes('SERIALIZABLE')) return false
  return expanded !== undefined && countPermutations(expanded) <= (long ? 1000 : 100)
}

const written = listSpecs().filter((name) => !indivisible.includes(name))
const specs = [...written.map(readSpec), ...seeds.map(randomAutocommitSpec)].filter(isSmall)

let comparison: Comparison
beforeAll(async () => {
  comparison = await openComparison('split', inject('postgresUrl'))
})
afterAll(() => comparison[Symbol.asyncDispose]())

describe.concurrent('a statement and its own commit are two steps', () => {
  test.each(specs)('$name', { timeout: long ? 900_000 : 120_000 }, async (spec) => {
    expect(await comparison.compare(spec, 'split')).toEqual(agreement)
  })
})

test('the control: in one step each, two checks and inserts never meet', async () => {
  const { directUrl } = await testDatabase()
  const spec = readSpec('autocommit-insert-not-exists')
  const atomic = await exploreSpec(directUrl, spec)
  const split = await exploreSpec(directUrl, spec, { autocommit: 'split' })
  expect([atomic.outcomes.size, split.outcomes.size]).toEqual([2, 3])
})
