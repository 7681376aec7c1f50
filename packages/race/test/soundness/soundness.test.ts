import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { agreement, type Comparison, openComparison } from './comparison.ts'
import { randomSpec } from './random-spec.ts'
import { listSpecs, readSpec } from './read-spec.ts'
import { long, seeds } from './scope.ts'

const written = listSpecs().filter((name) => long || !name.startsWith('long/'))
const specs = [...written.map(readSpec), ...seeds.map(randomSpec)]

let comparison: Comparison
beforeAll(async () => {
  comparison = await openComparison('soundness')
})
afterAll(() => comparison[Symbol.asyncDispose]())

describe.concurrent('the outcomes are those of all permutations', () => {
  test.each(specs)('$name', { timeout: 120_000 }, async (spec) => {
    expect(await comparison.compare(spec, 'atomic')).toEqual(agreement)
  })
})
