/** Shows double bookings and their end: two processes, many requests at once, in three ways. `--rounds n`: how often. */
import { parseArgs } from 'node:util'
import { each, type Measured, measure, requests } from './measure.ts'
import { faults, table } from './report.ts'
import type { Way } from './worker.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const rounds = Number(values.rounds)
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number')

console.log(`In each of ${rounds} weeks, ${each} desks are each wanted by ${requests} guests at once,
and ${each} guests, who may book once more, each want ${requests} desks at once. Two processes.
`)

async function run(label: string, way: Way): Promise<Measured> {
  process.stdout.write(label.padEnd(16))
  const measured = await measure(way, rounds, () => process.stdout.write('.'))
  process.stdout.write('\n')
  return measured
}

const results = {
  unguarded: await run('check, insert', 'unguarded'),
  byConstraint: await run('EXCLUDE', 'byConstraint'),
  guarded: await run('Holdfast', 'guarded'),
}
console.log(`\n${table(results)}\n`)
const found = faults(results)
for (const fault of found) console.error(`FAILED: ${fault}`)
process.exitCode = found.length === 0 ? 0 : 1
