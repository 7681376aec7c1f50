/**
 * Shows what a quota and prepaid credits lose when many short-lived processes share them, first as
 * most of us write them and then on the ledger. `--rounds n` makes it shorter or longer.
 */
import { parseArgs } from 'node:util'
import { estimatedCredits, monthlyCalls, welcomeCredits } from '../src/plan.ts'
import { withDatabase } from './databases.ts'
import { type Measured, measure, type Plan, type Way } from './measure.ts'
import { faults, table } from './report.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } })
const plan: Plan = { rounds: Number(values.rounds), users: 4, requests: 20 }
if (!Number.isInteger(plan.rounds) || plan.rounds < 1) {
  throw new Error('--rounds takes a whole number, at least 1')
}

console.log(`Every user may make ${monthlyCalls} calls and sends ${plan.requests} requests at once,
each of them twice, to three processes. Then every user, with ${welcomeCredits} credits, asks a slow model
for two answers, estimated at ${estimatedCredits} each, and the process is killed while the model thinks.
${plan.rounds} rounds of ${plan.users} users, with new processes each.
`)

async function run(label: string, way: Way): Promise<Measured> {
  process.stdout.write(`${label.padEnd(12)}`)
  const measured = await withDatabase((url) =>
    measure(url, way, plan, () => process.stdout.write('.')),
  )
  process.stdout.write('\n')
  return measured
}

const naive = await run('naive', 'naive')
const holdfast = await run('Holdfast', 'holdfast')
console.log(`\n${table(naive, holdfast)}\n`)
const found = faults(naive, holdfast, plan)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
