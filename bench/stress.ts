/** `npm run stress -- <scenario>`: tries to break a promise, and shows that the attack is real. */
import { randomInt } from 'node:crypto'
import { readCommand, refuse } from './harness/read-command.ts'
import type { StressScenario } from './harness/stress-scenario.ts'
import { bodies } from './stress/bodies.ts'
import { claims } from './stress/claims.ts'
import { connections } from './stress/connections.ts'
import { faults } from './stress/faults.ts'
import { leases } from './stress/leases.ts'
import { ledger } from './stress/ledger.ts'
import { ledgerModel } from './stress/ledger-model.ts'
import { locks } from './stress/locks.ts'
import { once } from './stress/once.ts'
import { schedule } from './stress/schedule.ts'
import { shards } from './stress/shards.ts'
import { stock } from './stress/stock.ts'
import { transfers } from './stress/transfers.ts'
import { upgrade } from './stress/upgrade.ts'

const shape = {
  command: 'stress',
  scenarios: {
    locks,
    ledger,
    'ledger-model': ledgerModel,
    stock,
    transfers,
    upgrade,
    schedule,
    once,
    claims,
    leases,
    connections,
    shards,
    faults,
    bodies,
  } satisfies Record<string, StressScenario>,
  options: {
    seconds: { type: 'string' },
    seed: { type: 'string' },
    count: { type: 'string' },
    commands: { type: 'string' },
    control: { type: 'string' },
    json: { type: 'boolean' },
  },
  about: {
    seconds: 'about how long to run; without it, the full number of rounds',
    seed: 'a whole number; the same one makes the same choices',
    count: 'how many bodies, transfers or movements (only of `bodies`, `transfers` and `upgrade`)',
    commands: 'how many commands to generate (only of `ledger-model`)',
    control: 'only this control (of `bodies` and `ledger-model`)',
    json: 'the last line of the output is one JSON object',
  },
} as const

const { name, scenario, values } = readCommand(shape)
const seed = number('seed', values.seed, 0) ?? randomInt(2 ** 31)
const seconds = number('seconds', values.seconds, 1)
const count = number('count', values.count, 1) ?? number('commands', values.commands, 1)

const allowed: StressScenario = scenario
if (values.control !== undefined && allowed.controls?.includes(values.control) !== true) {
  refuse(shape, `${name} has no control "${values.control}" that can be run alone`)
}

console.log(`${name}: ${scenario.about}\nseed ${seed}`)
const { operations, violations, controls, notes, coverage } = await scenario.run({
  seconds,
  seed,
  count,
  control: values.control,
  progress: (text) => process.stderr.write(`${text}\n`),
})

for (const note of notes) console.log(note)
for (const [control, outcome] of Object.entries(controls)) {
  console.log(`control ${control}: ${outcome}`)
}
for (const violation of violations) console.error(`VIOLATION: ${violation}`)
console.log(`${operations} operations, ${violations.length} violations`)
if (values.json === true) {
  console.log(
    JSON.stringify({
      scenario: name,
      seed,
      operations,
      violations: violations.length,
      controls,
      coverage,
    }),
  )
}
// A control that does not fail means that the attack proves nothing.
const missed = Object.values(controls).includes('missed')
process.exitCode = violations.length > 0 || missed ? 1 : 0

function number(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least) return value
  return refuse(shape, `--${option} must be a whole number, ${least} or more`)
}
