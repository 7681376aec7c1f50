/**
 * Shows what becomes of a nightly job on three processes, first behind a lock that is tried and then on a
 * schedule. `--nights n` makes it shorter or longer.
 */
import { parseArgs } from 'node:util'
import { withDatabase } from './databases.ts'
import { type Measured, measure, type Plan, type Way } from './measure.ts'
import { faults, table } from './report.ts'

const { values } = parseArgs({ options: { nights: { type: 'string', default: '6' } } })
const plan: Plan = { nights: Number(values.nights), nightMs: 3_000 }
if (!Number.isInteger(plan.nights) || plan.nights < 3) {
  throw new Error('--nights takes a whole number, at least 3')
}

console.log(`Three processes wait for the night, to charge 20 merchants once. Their timers are 0, 200
and 400 ms late. The job takes 20 ms, at the end of a month 1.4 s, and then its process is killed before
it is done. ${plan.nights} nights of ${plan.nightMs / 1_000} s, every third of them the end of a month.
`)

async function run(label: string, way: Way): Promise<Measured> {
  process.stdout.write(`${label.padEnd(14)}`)
  const measured = await withDatabase((url) =>
    measure(url, way, plan, () => process.stdout.write('.')),
  )
  process.stdout.write('\n')
  return measured
}

const naive = await run('try the lock', 'naive')
const holdfast = await run('Holdfast', 'holdfast')
console.log(`\n${table(naive, holdfast)}\n`)
const found = faults(naive, holdfast)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
