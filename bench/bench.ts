/** `npm run bench -- <scenario>`: how fast we are, as ratios of two things measured together. */
import { type BenchScenario, engines } from './harness/bench-scenario.ts'
import type { Comparison } from './harness/compare.ts'
import { readCommand, refuse } from './harness/read-command.ts'
import { factTable, isMet, writeResults } from './harness/results.ts'
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
import { peerJobs } from './scenarios/peer-jobs.ts'
import { peerLocks } from './scenarios/peer-locks.ts'
import { peers } from './scenarios/peers.ts'
import { race } from './scenarios/race.ts'
import { shards } from './scenarios/shards.ts'

// What libraries check for; the bars are promises about production.
process.env['NODE_ENV'] ??= 'production'

const scenarios: Readonly<Record<string, BenchScenario>> = {
  locks,
  'hot-key': hotKey,
  ledger,
  'ledger-bystander': ledgerBystander,
  'ledger-growth': ledgerGrowth,
  peers,
  'peer-locks': peerLocks,
  'peer-jobs': peerJobs,
  claims,
  race,
  observe,
  capacity,
  shards,
  deadlines,
  import: importing,
}

const shape = {
  command: 'bench',
  scenarios: { ...scenarios, all: { about: 'each of them, one after the other' } } as Readonly<
    Record<string, { readonly about: string; readonly hasEngines?: true; readonly hasMost?: true }>
  >,
  options: {
    quick: { type: 'boolean' },
    json: { type: 'boolean' },
    write: { type: 'boolean' },
    engine: { type: 'string' },
    most: { type: 'string' },
  },
  about: {
    quick: 'few and short rounds; each ends within a minute',
    json: 'the last line of the output is one JSON object',
    write:
      'puts what was measured into bench/RESULTS.md, in the place of what this command measured before',
    engine: `another product than PostgreSQL: ${engines.join(' or ')}`,
    most: 'of ledger-growth: two years of so many movements, 1m to 100m',
  },
} as const
const { name, scenario: asked, values } = readCommand(shape)
const engine = engines.find((each) => each === values.engine)
if (values.engine !== undefined && (engine === undefined || asked.hasEngines !== true))
  refuse(shape, `${name} is not measured on ${values.engine}`)
const most = values.most === undefined ? undefined : sizeOf(values.most)
if (values.most !== undefined && (most === undefined || asked.hasMost !== true))
  refuse(shape, `${name} is not measured with --most ${values.most}`)

const chosen = name === 'all' ? Object.keys(scenarios) : [name]
const objects: Record<string, object> = {}
for (const each of chosen) {
  const scenario = scenarios[each]
  if (scenario !== undefined) objects[each] = await measured(each, scenario)
}
if (values.json === true)
  console.log(JSON.stringify(name === 'all' ? { scenario: name, of: objects } : objects[name]))

/** Runs a scenario, says what it has measured in words, and gives the same for a program. */
async function measured(called: string, scenario: BenchScenario): Promise<object> {
  const {
    comparisons,
    facts = [],
    method = scenario.method,
  } = await scenario.run({
    quick: values.quick ?? false,
    engine,
    most,
    progress: (text) => process.stderr.write(`${text}\n`),
  })
  console.log(
    [`${called}: ${scenario.about}`, ratioTable(comparisons), ...facts.map(factTable), method]
      .filter((part) => part !== '')
      .join('\n\n'),
  )
  // What could not be measured here does not replace what was measured elsewhere.
  if (values.write === true && comparisons.length + facts.length > 0) {
    const options = [
      ...(engine === undefined ? [] : [`--engine ${engine}`]),
      ...(most === undefined ? [] : [`--most ${values.most}`]),
      ...(values.quick === true ? ['--quick'] : []),
    ]
    const command = ['npm run bench --', called, ...options].join(' ')
    writeResults({ command, comparisons, facts, method })
  }
  const byName = (valueOf: (comparison: Comparison) => unknown): object =>
    Object.fromEntries(
      comparisons
        .map((comparison) => [comparison.name, valueOf(comparison)] as const)
        .filter(([, value]) => value !== undefined),
    )
  return {
    scenario: called,
    ...(engine === undefined ? {} : { engine }),
    ratios: byName(({ ratio: { median } }) => rounded(median)),
    spread: byName(({ ratio: { p10, p90 } }) => [rounded(p10), rounded(p90)]),
    cpu: byName(({ cost }) => cost),
    ...(facts.length === 0 ? {} : { facts }),
    method,
  }
}

/** `3m` is three million. */
function sizeOf(text: string): number | undefined {
  const [, millions] = /^([1-9]\d{0,2})m$/.exec(text) ?? []
  const size = Number(millions) * 1_000_000
  return size >= 1_000_000 && size <= 100_000_000 ? size : undefined
}

function three(value: number): string {
  return value.toFixed(3)
}

function rounded(value: number): number {
  return Number(three(value))
}

/** Every ratio with both sides, also those we lose. */
function ratioTable(rows: readonly Comparison[]): string {
  return rows
    .map(({ name: ratioName, ratio, bar, barIs = 'at least', sides }) => {
      const verdict =
        bar === undefined
          ? ''
          : `, bar ${barIs} ${bar}: ${isMet(ratio.median, bar, barIs) ? 'met' : 'MISSED'}`
      const width = Math.max(0, ...sides.map(({ value }) => value.length))
      return [
        `${ratioName}  ${three(ratio.median)}  (p10 ${three(ratio.p10)}, p90 ${three(ratio.p90)}${verdict})`,
        ...sides.map(({ value, label }) => `  ${value.padStart(width)}  ${label}`),
      ].join('\n')
    })
    .join('\n\n')
}
