/**
 * Shows the race and its fix: the service as two processes, many uploads at once, first without the
 * guard and then with it. `--rounds n` makes it shorter or longer.
 */
import { parseArgs } from 'node:util'
import { withDatabase } from './databases.ts'
import { type Measured, measure, type Plan } from './measure.ts'
import { faults, table } from './report.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } })
const plan: Plan = { rounds: Number(values.rounds), users: 4, uploads: 8 }
if (!Number.isInteger(plan.rounds) || plan.rounds < 1) {
  throw new Error('--rounds takes a whole number, at least 1')
}

console.log(`Every user has room for one more image and sends ${plan.uploads} at once,`)
console.log(`to two processes of the service. ${plan.rounds} rounds of ${plan.users} users each.\n`)

async function run(label: string, guard: 'on' | 'off'): Promise<Measured> {
  process.stdout.write(`${label.padEnd(20)}`)
  const measured = await withDatabase((url) =>
    measure(url, guard, plan, () => process.stdout.write('.')),
  )
  process.stdout.write('\n')
  return measured
}

const unguarded = await run('without the guard', 'off')
const guarded = await run('with the guard', 'on')
console.log(`\n${table(unguarded, guarded)}\n`)
const found = faults(unguarded, guarded, plan)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
