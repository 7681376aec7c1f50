/** Delivers an outbox by three processes, first by hand and then with claims. `--rounds n`: how often it hits. */
import { parseArgs } from 'node:util'
import { withDatabase } from './databases.ts'
import { type Measured, measure, type Way } from './measure.ts'
import { faults, table } from './report.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } })
const rounds = Number(values.rounds)
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number')
const plan = { rounds, messages: 300 * rounds }

console.log(`Three processes deliver ${plan.messages} messages. ${rounds} times, one of them is killed at work, and
another is paused for longer than anybody waits for it.
`)

async function run(way: Way): Promise<Measured> {
  process.stdout.write(`${way.padEnd(10)}`)
  const measured = await withDatabase((url) =>
    measure(url, way, plan, () => process.stdout.write('.')),
  )
  process.stdout.write('\n')
  return measured
}

const byHand = await run('by hand')
const holdfast = await run('holdfast')
console.log(`\n${table(byHand, holdfast)}\n`)
const found = faults(byHand, holdfast)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
