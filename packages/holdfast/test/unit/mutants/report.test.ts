import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  countsOf,
  isAccepted,
  isSurvivor,
  readMutants,
  survivorText,
  tableOf,
} from '../../../../../scripts/mutants/report.ts'

/** What Stryker writes about one file of two lines. */
function reported(): ReturnType<typeof readMutants> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'report.json')
  const mutant = (status: string, line: number, from: number, to: number): object => ({
    status,
    mutatorName: 'BooleanLiteral',
    replacement: 'false',
    location: { start: { line, column: from }, end: { line, column: to } },
  })
  const mutants = [
    mutant('Killed', 1, 5, 9),
    mutant('Timeout', 1, 5, 9),
    mutant('Survived', 2, 8, 12),
    mutant('NoCoverage', 2, 1, 12),
    mutant('Ignored', 1, 1, 2),
  ]
  const source = 'if (true) {\nreturn true\n'
  writeFileSync(path, JSON.stringify({ files: { 'a.ts': { source, mutants } } }))
  return readMutants(path)
}

test('killed and timed out, of all but the ignored', () => {
  const counts = countsOf(reported())
  expect(counts).toEqual({
    killed: 1,
    survived: 1,
    uncovered: 1,
    timeout: 1,
    ignored: 1,
    score: 50,
  })
  expect(tableOf([['rows', counts]])).toContain('| rows | 1 | 1 | 1 | 1 | 1 | 50.0 % |')
})

test('a survivor is told with its place and its change, unless it was accepted by its text', () => {
  const [survivor, uncovered, ...more] = reported().filter(isSurvivor)
  expect(more).toEqual([])
  expect(survivor && survivorText(survivor)).toBe(
    '  a.ts:2 (no test notices)\n    - true\n    + false',
  )
  const accepted = [{ file: 'a.ts', original: 'true', replacement: 'false', reason: 'why' }]
  expect(survivor && isAccepted(survivor, accepted)).toBe(true)
  expect(uncovered && isAccepted(uncovered, accepted)).toBe(false)
})
