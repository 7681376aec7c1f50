import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { FactTable } from './bench-scenario.ts'
import type { Comparison } from './compare.ts'

/** `bench/RESULTS.md`, which nobody writes by hand: a section for each command, replaced when it is run with `--write`. */
const file = new URL('../RESULTS.md', import.meta.url)

const head = `# What was measured last

Written by \`npm run bench -- <scenario> --write\`, and by nobody else. What the ratios mean and how they are measured is in [README.md](README.md); what was learnt from them is in [HISTORY.md](HISTORY.md). More than 1 is better than the other side, unless the bar says "at most".
`

export interface Results {
  /** As it was called, without \`--write\`. */
  readonly command: string
  readonly comparisons: readonly Comparison[]
  readonly facts: readonly FactTable[]
  readonly method: string
}

export function writeResults(results: Results): void {
  let old = head
  try {
    old = readFileSync(file, 'utf8')
  } catch {
    // The first one.
  }
  writeFileSync(file, withSection(old, results))
}

/** Sections keep their order; a new one comes last. */
function withSection(old: string, results: Results): string {
  const [, ...sections] = old.split(/^(?=## )/m)
  const title = `## \`${results.command}\``
  const written = `${title}\n\n${sectionOf(results)}\n`
  const at = sections.findIndex((section) => section.startsWith(`${title}\n`))
  if (at === -1) sections.push(written)
  else sections[at] = written
  return [head, ...sections.map((section) => `${section.trimEnd()}\n`)].join('\n')
}

function sectionOf({ comparisons, facts, method }: Results): string {
  const day = new Date().toISOString().slice(0, 10)
  const machine = `${day}, ${availableParallelism()} cores, Node ${process.versions.node}.`
  const ratios: FactTable = {
    title: '',
    columns: ['ratio', 'median', 'p10', 'p90', 'bar'],
    rows: comparisons.map(({ name, ratio, bar, barIs = 'at least' }) => [
      name,
      shown(ratio.median),
      shown(ratio.p10),
      shown(ratio.p90),
      bar === undefined
        ? ''
        : `${barIs} ${bar}, ${isMet(ratio.median, bar, barIs) ? 'met' : 'missed'}`,
    ]),
  }
  return [machine, ...[ratios, costs(comparisons), ...facts].map(factTable), method]
    .filter((part) => part !== '')
    .join('\n\n')
}

/** For one operation, by who has used them. */
function costs(comparisons: readonly Comparison[]): FactTable {
  const rows = comparisons.flatMap(({ name, cost }) =>
    Object.entries(cost ?? {}).map(([side, { parts, total, others }]) => [
      name,
      side,
      Object.entries(parts)
        .map(([part, micros]) => `${part} ${shown(micros)}`)
        .join(', '),
      shown(total),
      `${(others * 100).toFixed(0)} %`,
    ]),
  )
  const columns = [
    'by processor time',
    'side',
    'µs of a processor an operation',
    'in all',
    'used by others',
  ]
  return { title: '', columns, rows }
}

export function isMet(value: number, bar: number, barIs: 'at least' | 'at most'): boolean {
  return barIs === 'at least' ? value >= bar : value <= bar
}

const shown = (value: number): string => value.toFixed(value < 10 ? 2 : 1)

/** Markdown, so that it can go into a document as it is. */
export function factTable({ title, columns, rows }: FactTable): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const table = [line(columns), line(columns.map(() => '---')), ...rows.map(line)]
  return [...(title === '' ? [] : [title, '']), ...table].join('\n')
}
