/** What a hunt hands over to other programs. */
import { expect, test } from 'vitest'
import { huntBaseline, newRaces } from '../../../src/hunt/report/baseline.ts'
import { huntAnnotations, huntSummary } from '../../../src/hunt/report/github-hunt.ts'
import type { HuntReport } from '../../../src/hunt/model.ts'
import { htmlHunt } from '../../../src/hunt/report/page/hunt-page.ts'
import { sarifHunt } from '../../../src/hunt/report/sarif-hunt.ts'
import { allVerdicts, huntOf, nothingProven, provenPair } from '../../support/hunts.ts'
import { lostUpdate, quota, writeSkew } from '../../support/reports.ts'

interface Location {
  readonly physicalLocation?: {
    readonly artifactLocation: { readonly uri: string; readonly uriBaseId?: string }
    readonly region: { readonly startLine: number }
  }
  readonly message?: { readonly text: string }
}
interface Log {
  readonly version: string
  readonly runs: readonly {
    readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } }
    readonly results: readonly {
      readonly ruleId: string
      readonly message: { readonly text: string }
      readonly locations: readonly Location[]
      readonly relatedLocations?: readonly Location[]
      readonly partialFingerprints: Readonly<Record<string, string>>
    }[]
  }[]
}
const sarif = (report: HuntReport, root?: string): Log['runs'][0] =>
  (JSON.parse(sarifHunt(report, root)) as Log).runs[0] as Log['runs'][0]

test('SARIF: a result for each proof, at the write, with the check beside it', () => {
  const { tool, results } = sarif(allVerdicts)
  expect(tool.driver.rules.map(({ id }) => id)).toEqual([
    'check-then-insert',
    'lost-update',
    'double-claim',
  ])
  expect(results.map(({ ruleId }) => ruleId)).toEqual(tool.driver.rules.map(({ id }) => id))
  const [first] = results
  expect(first?.locations).toMatchObject([
    {
      physicalLocation: {
        artifactLocation: { uri: 'src/up%20load.ts', uriBaseId: '%SRCROOT%' },
        region: { startLine: expect.any(Number) as number },
      },
    },
  ])
  const line = (location?: Location): number => location?.physicalLocation?.region.startLine ?? 0
  const check = first?.relatedLocations?.find(({ message }) => message?.text.includes('read here'))
  expect(line(check)).toBeGreaterThan(0)
  expect(line(check)).toBeLessThan(line(first?.locations[0]))
  expect(first?.message.text).toContain('Fix: ')
})

test('SARIF: files outside of the root are named whole; without lines there is the name of the pair', () => {
  const { results } = sarif(allVerdicts, '/elsewhere')
  const file = results[0]?.locations[0]?.physicalLocation?.artifactLocation
  expect(file?.uri).toMatch(/^file:\/\/\/.*up%20load\.ts$/)
  expect(file).not.toHaveProperty('uriBaseId')
  const bare = huntOf([{ ...provenPair('POST /files', quota), report: quota }])
  expect(sarif(bare).results[0]?.locations).toEqual([
    { logicalLocations: [{ fullyQualifiedName: 'POST /files × itself', kind: 'function' }] },
  ])
  expect(sarif(nothingProven)).toMatchObject({ results: [] })
})

test('a fingerprint is the same wherever the lines have moved to', () => {
  const fingerprint = (report: HuntReport): unknown => sarif(report).results[0]?.partialFingerprints
  const moved = huntOf([{ ...provenPair('POST /files', quota), report: quota }])
  expect(fingerprint(moved)).toEqual(fingerprint(allVerdicts))
})

test('a baseline knows its races, and no others', () => {
  const baseline = huntBaseline(allVerdicts)
  expect(newRaces(allVerdicts, baseline)).toEqual([])
  expect(newRaces(nothingProven, baseline)).toEqual([])
  const names = (report: HuntReport, known: string): readonly string[] =>
    newRaces(report, known).map(({ name }) => name)
  expect(names(allVerdicts, huntBaseline(nothingProven))).toHaveLength(3)
  // Another pair, and another race of a pair that is known.
  expect(names(huntOf([provenPair('POST /carts', quota)]), baseline)).toEqual([
    'POST /carts × itself',
  ])
  expect(names(huntOf([provenPair('POST /files', writeSkew)]), baseline)).toEqual([
    'POST /files × itself',
  ])
  expect(names(huntOf([provenPair('POST /files', lostUpdate)]), baseline)).toHaveLength(1)
})

test('a baseline does not depend on the order in which races were found', () => {
  const backwards = huntOf(allVerdicts.pairs.toReversed())
  expect(huntBaseline(backwards)).toBe(huntBaseline(allVerdicts))
})

test.each(['', '{}', '[]', 'null', '{"format":2,"races":[]}', '{"format":1,"races":[{}]}', 'x'])(
  'what is no baseline is refused: %s',
  (text) => {
    expect(() => newRaces(allVerdicts, text)).toThrow(/huntBaseline/)
  },
)

test('GitHub: an error at each write, and what leads to it as notices', () => {
  const lines = huntAnnotations(allVerdicts)
  const errors = lines.filter((line) => line.startsWith('::error '))
  expect(errors).toHaveLength(3)
  for (const line of errors) expect(line).toMatch(/^::error file=src\/up load\.ts,line=\d+,title=/)
  expect(huntAnnotations(nothingProven)).toEqual([])
})

test('GitHub: a summary in which nothing of the data is markup', () => {
  const summary = huntSummary(allVerdicts)
  expect(summary).toContain('## 3 races proven')
  expect(summary).toContain('### `POST /files × itself`')
  // A name with backticks stands between longer ones.
  expect(summary).toContain('### ``take <b>a `job`</b> × itself``')
  expect(summary).toContain('<details><summary>1 pair not decided</summary>')
  expect(huntSummary(nothingProven)).toContain('## No race is proven')
  const loud = huntOf([
    {
      ...provenPair('POST /files', quota),
      verdict: 'undecided',
      because: '<script>alert(1)</script> [x](y) **b**',
    },
  ])
  expect(huntSummary(loud)).not.toMatch(/<script|\]\(y\)|\*\*b\*\*/)
})

test('the page has every pair once, and nothing of the data as markup', () => {
  const page = htmlHunt(allVerdicts)
  for (const at of allVerdicts.pairs.keys()) {
    expect(page.split(`id="pair-${at + 1}"`)).toHaveLength(2)
    expect(page.split(`href="#pair-${at + 1}"`)).toHaveLength(2)
  }
  expect(page).not.toContain('<b>a `job`</b>')
  expect(page).not.toContain('<img')
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(new Set(ids).size).toBe(ids.length)
  for (const [, of] of page.matchAll(/(?:href="#|url\(#|aria-labelledby=")([^")]+)/g))
    for (const id of (of ?? '').split(' ')) expect(ids).toContain(id)
})
