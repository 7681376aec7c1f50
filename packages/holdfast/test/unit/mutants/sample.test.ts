import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { someLines } from '../../../../../scripts/mutants/sample.ts'

test('about so many percent of the lines, and the same ones each time', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-mutants-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'a.ts')
  const lines = Array.from({ length: 10_000 }, (_, at) => `line ${at}`)
  writeFileSync(file, lines.join('\n'))
  const some = someLines(file, 10)
  expect(some.length).toBeGreaterThan(800)
  expect(some.length).toBeLessThan(1_200)
  expect(some[0]).toMatch(new RegExp(`^${file}:(\\d+)-\\1$`))
  writeFileSync(file, ['one more before', ...lines].join('\n'))
  expect(someLines(file, 10).length - some.length).toBeLessThan(2)
  expect(someLines(file, 0)).toEqual([])
  expect(someLines(file, 100)).toHaveLength(10_001)
})
