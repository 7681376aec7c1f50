/** Tables of the documentation that repeat the sources. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { attacks } from '../../../../scripts/acidrain/hunt-attacks.ts'
import { anomalyNames } from '../../src/report/explain.ts'

function read(path: string): string {
  return readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
}

/** First column of the table with this head, without its backticks. */
function firstColumn(page: string, head: string): string[] {
  const [, table = ''] = page.split(`| ${head} |`)
  const [rows = ''] = table.split('\n\n')
  return [...rows.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name as string)
}

test('reading-a-report.md explains every name and no other', () => {
  const told = firstColumn(read('docs/race/reading-a-report.md'), 'name | what happened')
  expect(told.toSorted()).toEqual([...anomalyNames].toSorted())
})

test('options.md lists every option and no other', () => {
  const [, body = ''] =
    /export interface ExploreOptions \{\n([\s\S]*?)\n\}/.exec(
      read('packages/race/src/explore.ts'),
    ) ?? []
  const options = [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name as string)
  expect(options.length).toBeGreaterThan(10)
  expect(firstColumn(read('docs/race/options.md'), 'option | default')).toEqual(options)
})

test('the timeline of packages/race/README.md is one that was printed', () => {
  const [, printed = ''] =
    /<!-- printed: above -->\n```text\n([\s\S]*?)\n```/.exec(read('docs/race/five-minutes.md')) ??
    []
  const shown = timelinesIn(read('packages/race/README.md'))
  expect(shown).toHaveLength(1)
  // The README leaves out what stands around it, and the server's version is ours.
  expect(printed).toContain(shown[0])
})

test('README.md shows the picture that integration/docs-picture draws again, and no timeline beside it', () => {
  expect(read('README.md')).toContain('](docs/race/quota.svg)')
  expect(timelinesIn(read('README.md'))).toEqual([])
})

function timelinesIn(page: string): string[] {
  return [...page.matchAll(/```text\n([\s\S]*?)\n```/g)]
    .map(([, text]) => text as string)
    .filter((text) => text.includes('┌ BEGIN'))
}

test('acidrain.md lists the flows that the script hunts in', () => {
  const rows = read('docs/race/acidrain.md').matchAll(/^\| (stock|voucher|cart) \| ([^|]+) \|/gm)
  expect([...rows].map(([, kind, does]) => [kind, does])).toEqual(
    attacks.map(({ kind, does }) => [kind, does]),
  )
})
