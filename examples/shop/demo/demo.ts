/**
 * Shows the races of a shop and their end: the service as three processes, orders and returns that come
 * twice, first with look, check, write and then with Holdfast. `--rounds n` makes it shorter or longer.
 */
import { parseArgs } from 'node:util'
import { withDatabase } from './databases.ts'
import { measure } from './measure.ts'
import { faults, table, trailTable } from './report.ts'
import type { Plan } from './round.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const plan: Plan = { rounds: Number(values.rounds), orders: 24, pieces: 10, returns: 6 }
if (!Number.isInteger(plan.rounds) || plan.rounds < 1) {
  throw new Error('--rounds takes a whole number, at least 1')
}

console.log(
  `${plan.orders} orders at once, each delivered twice, for 4 SKUs of ${plan.pieces} pieces;`,
)
console.log(`then returns, twice as well. Three processes, ${plan.rounds} rounds.\n`)

async function run(label: string, ledger: 'on' | 'off'): ReturnType<typeof measure> {
  process.stdout.write(`${label.padEnd(20)}`)
  const result = await withDatabase((url) =>
    measure(url, ledger, plan, () => process.stdout.write('.')),
  )
  process.stdout.write('\n')
  return result
}

const { measured: naive } = await run('look, check, write', 'off')
const { measured: ledger, trail } = await run('with Holdfast', 'on')
console.log(`\n${table(naive, ledger)}\n`)
console.log(`Everything that happened to mug-1:\n\n${trailTable(trail)}\n`)
const found = faults(naive, ledger, trail)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
