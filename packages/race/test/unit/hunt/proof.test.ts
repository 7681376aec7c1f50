/** What a report of the explorer may be called: proven, refuted, or neither. */
import { describe, expect, test } from 'vitest'
import { orAsOne } from '../../../src/core/as-one.ts'
import type { Failure, Note, Report } from '../../../src/core/model.ts'
import { proofOf } from '../../../src/hunt/prove/prove.ts'
import { coverage, greenReport, quota } from '../../support/reports.ts'

const reproduced = (again: number, replays: number): Report => ({
  ...quota,
  failure: { ...(quota.failure as Failure), reproduced: [again, replays] },
})

test('a race is proven if every replay showed it again, and the sentence says what is wrong', () => {
  const proof = proofOf('upload × itself', reproduced(5, 5))
  expect(proof).toMatchObject({ verdict: 'proven', token: quota.failure?.token })
  expect(proof.sentence).toMatch(
    /^upload × itself: check-then-insert: .*; 101 uploads, the quota is 100$/,
  )
})

test.each([
  [4, 5],
  [0, 5],
  [0, 0],
])('one that came again in %i of %i replays is not', (again, replays) => {
  expect(proofOf('upload × itself', reproduced(again, replays))).toMatchObject({
    verdict: 'undecided',
    because: `a race was seen, and came again in ${again} of ${replays} replays`,
  })
})

test('refuted is only what was run in every order', () => {
  const all = { ...coverage, exhaustive: true }
  expect(proofOf('a', greenReport({ verdict: 'race-free', coverage: all })).verdict).toBe('refuted')
  const some = { ...coverage, exhaustive: false }
  const bounded = proofOf('a', greenReport({ verdict: 'bounded', coverage: some }))
  expect(bounded).toMatchObject({
    verdict: 'undecided',
    because: expect.stringMatching(/^nothing was found in 4 runs, and not every order was run/),
  })
  const vacuous = greenReport({ verdict: 'vacuous', coverage: all })
  expect(proofOf('a', vacuous).verdict).toBe('undecided')
  const trouble = { kind: 'hung-flow', message: 'a hangs' } as const
  expect(proofOf('a', greenReport({ verdict: 'inconclusive', trouble }))).toMatchObject({
    verdict: 'undecided',
    because: 'a hangs',
  })
})

describe('what functions run inside', () => {
  const inside: Note = { kind: 'several-statements', message: `One step runs several: ${orAsOne}.` }
  const some = { ...coverage, exhaustive: false }
  const because = (notes: readonly Note[], functions?: 'atomic', more: object = {}): unknown =>
    proofOf(
      'a',
      greenReport({ verdict: 'bounded', coverage: { ...some, ...more }, notes }),
      functions,
    ).because

  test('alone keeps a pair from being refuted: the reason names the option', () => {
    const refused: Note = { kind: 'refused', message: 'a was refused' }
    expect(because([refused, inside])).toMatch(/One step runs several: .*--functions/)
  })

  test('is not all: the option would not help', () => {
    const chance: Note = { kind: 'nondeterminism', message: 'by chance' }
    expect(because([chance, inside])).not.toContain('--functions')
    expect(because([inside], undefined, { missBound: { depth: 2, atMost: 1 } })).not.toContain(
      '--fun',
    )
    expect(because([inside], 'atomic')).not.toContain('--functions')
    expect(because([])).not.toContain('--functions')
  })

  test('and counts as one statement is told of what is refuted', () => {
    const counted: Note = { kind: 'counted-as-one', message: 'Counted as one statement: f()' }
    const all = { ...coverage, exhaustive: true }
    const report = greenReport({ verdict: 'race-free', coverage: all, notes: [counted] })
    expect(proofOf('a', report, 'atomic')).toMatchObject({
      verdict: 'refuted',
      assumed: 'Counted as one statement: f()',
    })
  })
})
