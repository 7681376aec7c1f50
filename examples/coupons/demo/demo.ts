/** Shows double redemptions and their end: two processes, many requests at once, in three ways. `--rounds n`: how often. */
import { parseArgs } from 'node:util'
import { perUser } from '../src/coupon.ts'
import { type Measured, max, measure, requests } from './measure.ts'
import { faults, table } from './report.ts'
import type { Way } from './worker.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const rounds = Number(values.rounds)
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number')

console.log(`A code works ${max} times, and ${perUser} times for one user. In each of ${rounds} rounds, ${requests} users redeem one
code at once, and one user redeems another one ${requests} times at once. Each request is sent to both processes.
`)

async function run(label: string, way: Way): Promise<Measured> {
  process.stdout.write(label.padEnd(16))
  const measured = await measure(way, rounds, () => process.stdout.write('.'))
  process.stdout.write('\n')
  return measured
}

const results = {
  unguarded: await run('count, insert', 'unguarded'),
  byStatements: await run('statements', 'byStatements'),
  ledger: await run('Holdfast', 'ledger'),
}
console.log(`\n${table(results)}\n`)
const found = faults(results)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
