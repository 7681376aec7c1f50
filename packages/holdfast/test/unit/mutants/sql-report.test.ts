import { expect, test } from 'vitest'
import { mutantsOf } from '../../../../../scripts/mutants/sql/mutants-of.ts'
import {
  fileTable,
  resultText,
  scoreOf,
  testTable,
} from '../../../../../scripts/mutants/sql/report.ts'
import type { Result, Status } from '../../../../../scripts/mutants/sql/results.ts'

const [mutant] = mutantsOf('app/f.sql', 'AS $$\n  x := a < b;\n$$')

function result(status: Status, by = ''): Result {
  if (mutant === undefined) throw new Error('no mutant')
  return { mutant, status, by }
}

const results = [
  result('caught', 'test/model.test.ts > one by one'),
  result('caught', 'test/model.test.ts > all at once'),
  result('timed out'),
  result('survived'),
  result('known', 'never matters'),
  result('invalid', 'syntax error'),
]

test('caught and timed out, of all that can be installed and are not known', () => {
  expect(scoreOf(results)).toBe(75)
  expect(fileTable(results)).toContain('| app/f.sql | 6 | 2 | 1 | 1 | 1 | 1 | 75.0 % |')
  expect(testTable(results)).toContain('| model.test.ts | 2 |')
})

test('a survivor with its place and its change', () => {
  expect(resultText(result('survived'))).toBe('survived  app/f.sql:2 comparison: < → <=')
})
