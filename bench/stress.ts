/** `npm run stress -- <scenario>`: tries to break a promise, and shows that the attack is real. */
import { randomInt } from 'node:crypto'
import { type EngineName, engineNames } from './engines/engine.ts'
import { readCommand, refuse } from './harness/read-command.ts'
import type { StressScenario } from './harness/stress-scenario.ts'
import { bodies } from './stress/bodies.ts'
import { claims } from './stress/claims.ts'
import { connections } from './stress/connections.ts'
import { exec } from './stress/exec.ts'
import { explorer } from './stress/explorer.ts'
import { faults } from './stress/faults.ts'
import { hostile } from './stress/hostile.ts'
import { hunt } from './stress/hunt.ts'
import { huntTests } from './stress/hunt-tests.ts'
import { leases } from './stress/leases.ts'
import { ledger } from './stress/ledger.ts'
import { ledgerModel } from './stress/ledger-model.ts'
import { locks } from './stress/locks.ts'
import { once } from './stress/once.ts'
import { rows } from './stress/rows.ts'
import { schedule } from './stress/schedule.ts'
import { shards } from './stress/shards.ts'
import { shardsOutage } from './stress/shards-outage.ts'
import { innodbScenarios } from './stress/innodb-scenarios.ts'
import { sqliteScenarios } from './stress/sqlite/sqlite-scenarios.ts'
import { stock } from './stress/stock.ts'
import { transfers } from './stress/transfers.ts'
import { upgrade } from './stress/upgrade.ts'

const shape = {
  command: 'stress',
  scenarios: {
    locks,
    rows,
    ledger,
    'ledger-model': ledgerModel,
    stock,
    transfers,
    upgrade,
    schedule,
    once,
    claims,
    leases,
    exec,
    connections,
    shards,
    faults,
    bodies,
    hostile,
    explorer,
    hunt,
    'hunt-tests': huntTests,
  } satisfies Record<string, StressScenario>,
  options: {
    seconds: { type: 'string' },
    seed: { type: 'string' },
    count: { type: 'string' },
    commands: { type: 'string' },
    control: { type: 'string' },
    only: { type: 'string' },
    engine: { type: 'string' },
    outage: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  about: {
    seconds: 'about how long to run; without it, the full number of rounds',
    seed: 'a whole number; the same one makes the same choices',
    count:
      'how many bodies, calls, transfers, movements, hunts or explorations of each flow (only of `bodies`, `hostile`, `transfers`, `upgrade`, `hunt` and `explorer`)',
    commands: 'how many commands to generate (only of `ledger-model`)',
    control: 'only this control (of `bodies`, `hostile`, `explorer`, `hunt` and `ledger-model`)',
    only: 'only the flow of this name (`explorer`), or the shop on `prisma` (`hunt`); without controls',
    engine:
      'postgres (default), mariadb, mysql or sqlite; which scenarios run on which is in bench/README.md',
    outage: 'one of four primaries fails instead of buckets being moved (only of `shards`)',
    json: 'the last line of the output is one JSON object',
  },
} as const

const { name, scenario, values } = readCommand(shape)
const seed = number('seed', values.seed, 0) ?? randomInt(2 ** 31)
const seconds = number('seconds', values.seconds, 1)
const count = number('count', values.count, 1) ?? number('commands', values.commands, 1)

if (values.outage === true && name !== 'shards') refuse(shape, '--outage is only of shards')
const engine = engineOf(values.engine ?? 'postgres')
const allowed: StressScenario = values.outage === true ? shardsOutage : scenarioOn(engine)
if (values.control !== undefined && allowed.controls?.includes(values.control) !== true) {
  refuse(shape, `${name} has no control "${values.control}" that can be run alone`)
}
if (values.only !== undefined && allowed.names?.includes(values.only) !== true) {
  refuse(shape, `${name} has no "${values.only}" that can be run alone`)
}

console.log(`${name} on ${engine}: ${allowed.about}\nseed ${seed}`)
const { operations, violations, controls, notes, coverage, ratios, figures } = await allowed.run({
  engine,
  seconds,
  seed,
  count,
  control: values.control,
  only: values.only,
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
      engine,
      seed,
      operations,
      ...figures,
      violations: violations.length,
      controls,
      coverage,
      ratios,
    }),
  )
}
// A control that does not fail means that the attack proves nothing.
const missed = Object.values(controls).includes('missed')
process.exitCode = violations.length > 0 || missed ? 1 : 0

/** The scenario on this product: on some it is another one, of the same promise. */
function scenarioOn(wanted: EngineName): StressScenario {
  const own = ownOf(wanted)
  if (own !== undefined) return own
  const shared = scenario.engines ?? ['postgres']
  if (shared.includes(wanted)) return scenario
  const runs = engineNames.filter((each) => shared.includes(each) || ownOf(each) !== undefined)
  return refuse(shape, `${name} runs on ${runs.join(', ')} only`)
}

function ownOf(wanted: EngineName): StressScenario | undefined {
  if (wanted === 'postgres') return undefined
  const all: Readonly<Record<string, StressScenario>> =
    wanted === 'sqlite' ? sqliteScenarios : innodbScenarios
  return all[name]
}

function engineOf(wanted: string): EngineName {
  const found = engineNames.find((each) => each === wanted)
  return found ?? refuse(shape, `--engine is one of ${engineNames.join(', ')}`)
}

function number(option: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= least) return value
  return refuse(shape, `--${option} must be a whole number, ${least} or more`)
}
