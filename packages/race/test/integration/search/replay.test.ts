/** Tokens bring a failure back, and shrinking never makes it longer. */
import { rounds } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { dependent } from '../../../src/core/footprint.ts'
import type { Run } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { preemptionsOf } from '../../../src/search/linear.ts'
import { atRandom, Follow } from '../../../src/search/policy.ts'
import { Random } from '../../../src/search/random.ts'
import { shrink } from '../../../src/search/shrink.ts'
import { Tally } from '../../../src/search/tally.ts'
import { hashOf, readToken, tokenOf } from '../../../src/search/token.ts'
import { Nodes, traceOf } from '../../../src/search/trace.ts'
import { insertWhereNotExists, naiveReserve, naiveTake, openShop, stock } from './shop.ts'

let url: string
beforeAll(async () => {
  url = await openShop()
})

const reservations = { ann: naiveReserve, bob: naiveReserve, cid: naiveReserve }
// Two only: of two that wait for one updated row, PostgreSQL picks one.
const takes = { ann: naiveTake, bob: naiveTake }
const statements = {
  ann: insertWhereNotExists,
  bob: insertWhereNotExists,
  cid: insertWhereNotExists,
}

const tooMany = 'SELECT event FROM seats GROUP BY event HAVING count(*) > 1'
const wrongStock = 'SELECT FROM events WHERE id = 2 AND seats <> 3'

test.each<[string, number, Readonly<Record<string, Flow>>, string]>([
  ['check and insert', rounds(40), reservations, tooMany],
  ['read and write back', rounds(20), takes, wrongStock],
  ['one statement', rounds(40), statements, tooMany],
])(
  '%s: %i random failures, each reproduced from its token; the first ones shrunk, none longer',
  { timeout: 300_000 },
  async (_, wanted, flows, wrong) => {
    await using runner = await createRunner({
      url,
      flows,
      seed: stock,
      invariant: async ({ query }) => {
        if ((await query(wrong)).length > 0) throw new Error('wrong')
      },
    })
    const random = new Random(7)
    const failures = new Map<string, Run>()
    for (let runs = 0; failures.size < wanted && runs < 400; runs++) {
      const run = await runner.run(atRandom(random))
      if (run.violation !== undefined) failures.set(tokenOf(run), run)
    }
    expect(failures.size).toBe(wanted)
    const tally = new Tally(runner, { schedules: 1_000, ms: 300_000 })
    const nodes = new Nodes()
    let shrunk = 0
    for (const [token, run] of failures) {
      const { choices, hash } = readToken(token)
      const follow = new Follow(choices.map((choice) => ({ choice })))
      const again = await runner.run(follow.decide)
      expect([follow.divergence, again.violation, hashOf(again)]).toEqual([
        undefined,
        'wrong',
        hash,
      ])
      if (shrunk++ >= rounds(10)) continue
      const small = await shrink(
        tally,
        run,
        (one) => traceOf(one, dependent, nodes),
        (one) => Promise.resolve(one.violation === 'wrong'),
      )
      expect(small.steps.length).toBeLessThanOrEqual(run.steps.length)
      expect(preemptionsOf(small)).toBeLessThanOrEqual(preemptionsOf(run))
      expect(small.violation).toBe('wrong')
    }
  },
)

test('explore() with a token makes that schedule again, and searches if the code has changed', async () => {
  const flows = { ann: naiveReserve, bob: naiveReserve }
  const first = await explore({ url, seed: stock, flows })
  const token = first.failure?.token ?? ''
  expect(token).toMatch(/^r1\.a2b4a2\.[0-9a-f]{8}$/)
  const again = await explore({ url, seed: stock, flows, replay: token })
  expect(again.failure).toMatchObject({ token, reproduced: [5, 5] })
  expect(again.coverage.schedules).toBe(2)
  const other = await explore({
    url,
    seed: stock,
    flows: { ann: naiveTake, bob: naiveTake },
    replay: token,
  })
  expect(other.notes.map(({ kind }) => kind)).toContain('stale-token')
  expect(other.verdict).toBe('race')
})
