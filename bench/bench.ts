/** `npm run bench -- <scenario>`: how fast we are, as ratios of two things measured together. */
import type { BenchScenario, FactTable } from './harness/bench-scenario.ts'
import type { Comparison } from './harness/compare.ts'
import { readCommand } from './harness/read-command.ts'
import { capacity } from './scenarios/capacity.ts'
import { claims } from './scenarios/claims.ts'
import { deadlines } from './scenarios/deadlines.ts'
import { hotKey } from './scenarios/hot-key.ts'
import { importing } from './scenarios/import.ts'
import { ledger } from './scenarios/ledger.ts'
import { ledgerBystander } from './scenarios/ledger-bystander.ts'
import { ledgerGrowth } from './scenarios/ledger-growth.ts'
import { locks } from './scenarios/locks.ts'
import { observe } from './scenarios/observe.ts'
import { peers } from './scenarios/peers.ts'
import { race } from './scenarios/race.ts'
import { shards } from './scenarios/shards.ts'

// What libraries check for; the bars are promises about production.
process.env['NODE_ENV'] ??= 'production'

const { name, scenario, values } = readCommand({
  command: 'bench',
  scenarios: {
    locks,
    'hot-key': hotKey,
    ledger,
    'ledger-bystander': ledgerBystander,
    'ledger-growth': ledgerGrowth,
    peers,
    claims,
    race,
    observe,
    capacity,
    shards,
    deadlines,
    import: importing,
  } satisfies Record<string, BenchScenario>,
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' } },
  about: {
    quick: 'few and short rounds; ends within a minute',
    json: 'the last line of the output is one JSON object',
  },
})

const { comparisons, facts = [] } = await scenario.run({
  quick: values.quick ?? false,
  progress: (text) => process.stderr.write(`${text}\n`),
})

const three = (value: number): string => value.toFixed(3)

console.log(
  [`${name}: ${scenario.about}`, ratioTable(comparisons), ...facts.map(factTable), scenario.method]
    .filter((part) => part !== '')
    .join('\n\n'),
)
if (values.json === true) {
  console.log(
    JSON.stringify({
      scenario: name,
      ratios: Object.fromEntries(
        comparisons.map(({ name: ratio, ratio: { median } }) => [ratio, rounded(median)]),
      ),
      spread: Object.fromEntries(
        comparisons.map(({ name: ratio, ratio: { p10, p90 } }) => [
          ratio,
          [rounded(p10), rounded(p90)],
        ]),
      ),
      ...(facts.length === 0 ? {} : { facts }),
      method: scenario.method,
    }),
  )
}

function rounded(value: number): number {
  return Number(three(value))
}

/** Every ratio with both sides, also those we lose. */
function ratioTable(rows: readonly Comparison[]): string {
  return rows
    .map(({ name: ratioName, ratio, bar, barIs = 'at least', sides }) => {
      const met =
        bar !== undefined && (barIs === 'at least' ? ratio.median >= bar : ratio.median <= bar)
      const verdict = bar === undefined ? '' : `, bar ${barIs} ${bar}: ${met ? 'met' : 'MISSED'}`
      const width = Math.max(0, ...sides.map(({ value }) => value.length))
      return [
        `${ratioName}  ${three(ratio.median)}  (p10 ${three(ratio.p10)}, p90 ${three(ratio.p90)}${verdict})`,
        ...sides.map(({ value, label }) => `  ${value.padStart(width)}  ${label}`),
      ].join('\n')
    })
    .join('\n\n')
}

/** Markdown, so that it can go into a document as it is. */
function factTable({ title, columns, rows }: FactTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [title, '', line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n')
}
