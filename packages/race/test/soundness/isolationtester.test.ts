import { expect, inject, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { type Permuted, runIsolationtester } from './isolationtester.ts'
import { countPermutations, parseSpec } from './parse-spec.ts'
import { readSpec } from './read-spec.ts'
import { startReferee } from './referee.ts'

async function permute(name: string): Promise<Permuted> {
  const { directUrl } = await testDatabase()
  await using referee = await startReferee(inject('postgresUrl'), `harness-${name}-`)
  return await runIsolationtester(directUrl, readSpec(name), referee)
}

test('with a lock, permutations that no client could send are told apart', async () => {
  // Either is first, and the other asks for the lock after its first, second or third step.
  expect(await permute('for-update')).toMatchObject({ permutations: 20, possible: 6 })
})

test('a deadlock ends with the one who closed the circle, whoever that is', async () => {
  const { possible, outcomes } = await permute('deadlock-two-rows')
  expect(possible).toBe(12)
  const victims = [...outcomes].map((outcome) => /(a|b)2: ERROR: deadlock/.exec(outcome)?.[1])
  expect(new Set(victims)).toEqual(new Set(['a', 'b', undefined]))
})

test('what could not be compared is refused', () => {
  const final = 'teardown { SELECT 1; }'
  expect(() => parseSpec('x', 'session a step b { SELECT 1; }')).toThrow('one SELECT')
  expect(() => parseSpec('x', `${final} session a setup { INSERT INTO t; }`)).toThrow('INSERT')
  expect(() => parseSpec('x', `${final} session a step b { } permutation b`)).toThrow('permutation')
})

test('the orders of 4, 4 and 4 steps', () => {
  const session = (name: string): string =>
    `session ${name} ${[1, 2, 3, 4].map((n) => `step ${name}${n} { SELECT 1; }`).join(' ')}`
  const text = ['teardown { SELECT 1; }', ...['a', 'b', 'c'].map(session)].join('\n')
  expect(countPermutations(parseSpec('x', text))).toBe(34_650)
})
