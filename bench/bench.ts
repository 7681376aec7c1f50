/** `npm run bench -- <scenario>`: how fast we are, as ratios of two things measured together. */
import type { BenchScenario } from './harness/bench-scenario.ts'
import type { Comparison } from './harness/compare.ts'
import { readCommand } from './harness/read-command.ts'
import { locks } from './scenarios/locks.ts'

// What libraries check for; the bars are promises about production.
process.env['NODE_ENV'] ??= 'production'

const { name, scenario, values } = readCommand({
  command: 'bench',
  scenarios: { locks } satisfies Record<string, BenchScenario>,
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' } },
  about: {
    quick: 'few and short rounds; ends within 45 seconds',
    json: 'the last line of the output is one JSON object',
  },
})

const comparisons = await scenario.run({
  quick: values.quick ?? false,
  progress: (text) => process.stderr.write(`${text}\n`),
})

const three = (value: number): string => value.toFixed(3)

console.log(`${name}: ${scenario.about}\n\n${table(comparisons)}\n\n${scenario.method}`)
if (values.json === true) {
  const fields = comparisons.map(({ contest, ratio }) => ({ name: contest.name, ...ratio }))
  console.log(
    JSON.stringify({
      scenario: name,
      ratios: Object.fromEntries(fields.map((ratio) => [ratio.name, rounded(ratio.median)])),
      spread: Object.fromEntries(
        fields.map((ratio) => [ratio.name, [rounded(ratio.p10), rounded(ratio.p90)]]),
      ),
      method: scenario.method,
    }),
  )
}

function rounded(value: number): number {
  return Number(three(value))
}

/** Every ratio with its rates, also those we lose. */
function table(rows: readonly Comparison[]): string {
  return rows
    .map(({ contest, ratio, rates }) => {
      const { name: ratioName, measured, baseline, bar } = contest
      const spread = `p10 ${three(ratio.p10)}, p90 ${three(ratio.p90)}`
      const verdict =
        bar === undefined ? '' : `, bar ${bar}: ${ratio.median >= bar ? 'met' : 'MISSED'}`
      const loses = ratio.median < 1 ? 'slower' : 'faster or equal'
      return [
        `${ratioName}  ${three(ratio.median)}  (${spread}${verdict}; ${loses})`,
        `  ${Math.round(rates.measured).toString().padStart(8)} /s  ${measured.label}`,
        `  ${Math.round(rates.baseline).toString().padStart(8)} /s  ${baseline.label}`,
      ].join('\n')
    })
    .join('\n\n')
}
