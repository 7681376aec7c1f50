import { type PostgresServer, sample, startPostgres } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { agreement, type Comparison, openComparison } from './comparison.ts'
import { randomRowSpec, randomSpec } from './random-spec.ts'
import { listSpecs, readSpec } from './read-spec.ts'
import { long, seeds } from './scope.ts'

const written = listSpecs().filter((name) => long || !name.startsWith('long/'))
const drawn = [...seeds.map(randomSpec), ...seeds.map(randomRowSpec)]
const specs = sample([...written.map(readSpec), ...drawn], 6)
const serializable = specs.filter(({ text }) => text.includes('SERIALIZABLE'))

describe.concurrent('the outcomes are those of all permutations', () => {
  let comparison: Comparison
  beforeAll(async () => {
    comparison = await openComparison('soundness', inject('postgresUrl'))
  })
  afterAll(() => comparison[Symbol.asyncDispose]())

  const others = specs.filter((spec) => !serializable.includes(spec))
  test.each(others)('$name', { timeout: long ? 900_000 : 120_000 }, async (spec) => {
    expect(await comparison.compare(spec, 'atomic')).toEqual(agreement)
  })
})

// Whether two transactions overlap SERIALIZABLE decides by what else is open on the server, in any
// database: with others around, transactions that are over look as if they were not.
describe('on a server of their own, one after the other', () => {
  let server: PostgresServer
  let comparison: Comparison
  beforeAll(async () => {
    server = await startPostgres({ settings: { autovacuum: 'off' } })
    comparison = await openComparison('serializable', server.url())
  })
  afterAll(async () => {
    await comparison[Symbol.asyncDispose]()
    await server.stop('immediate')
  })

  test.each(serializable)('$name', { timeout: long ? 900_000 : 120_000 }, async (spec) => {
    expect(await comparison.compare(spec, 'atomic')).toEqual(agreement)
  })
})
