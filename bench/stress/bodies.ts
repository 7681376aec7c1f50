import { startPgBouncer, startPostgres } from '@holdfast/testkit'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { askWeakened } from '../harness/weakened-process.ts'
import { type ControlName, controlNames, isControlName } from './bodies-cuts.ts'
import { allLanes, type Found, hunt } from './bodies-hunt.ts'
import { prepareDatabases, type Servers } from './bodies-lane.ts'

export interface ControlOrder {
  readonly servers: Servers
  readonly seed: number
  readonly count: number
  /** The lies that the missing protection leads to. */
  readonly sorts: readonly string[]
}

export interface ControlReport {
  readonly bodies: number
  /** The first lie. */
  readonly finding: string | undefined
}

/** Without `--count` and `--seconds`. */
const fullCount = 20_000
/** Of `--seconds`; the rest is for starting and for the controls. */
const huntShare = 0.5
/** A control that has not lied by then is missed. */
const controlCount: Readonly<Record<ControlName, number>> = {
  t1: 200,
  commit_tag: 2_000,
  marker: 4_000,
  late: 2_000,
  savepoint: 4_000,
}
/** Which lies show that this protection is gone, and not another. */
const ledTo: Readonly<Record<ControlName, readonly string[]>> = {
  t1: ['resolved, not saved', 'torn', 'lock lost'],
  commit_tag: ['resolved, not saved'],
  marker: ['call'],
  late: ['late'],
  savepoint: ['call'],
}
/** Each backend takes memory of the server: lanes have few connections, and there are many lanes. */
const settings = { max_connections: '400' }

export const bodies: StressScenario = {
  about: 'generated bodies on every client, direct and pooled: what is told against what is so',
  controls: controlNames,
  async run({ seconds, seed, progress, count, control }) {
    progress('starting PostgreSQL and PgBouncer')
    await using server = await startPostgres({ settings })
    await using bouncer = await startPgBouncer(server, { poolSize: 8 })
    const servers = {
      directUrl: server.url(),
      pooledUrl: bouncer.url(),
      databases: await prepareDatabases(server.url(), allLanes),
    }
    const only = control !== undefined && isControlName(control) ? control : undefined
    const found: Found =
      only === undefined
        ? await hunt(servers, {
            seed,
            count: count ?? (seconds === undefined ? fullCount : Infinity),
            seconds: seconds === undefined ? undefined : seconds * huntShare,
            progress,
          })
        : { bodies: 0, findings: [], notes: [], coverage: {} }
    const controls: Record<string, ControlOutcome> = {}
    const notes = [...found.notes]
    for (const name of only === undefined ? controlNames : [only]) {
      const order = {
        servers,
        seed,
        count: (only === undefined ? undefined : count) ?? controlCount[name],
        sorts: ledTo[name],
      }
      const { bodies: ran, finding } = await without(name, order)
      controls[name] = finding === undefined ? 'missed' : 'caught'
      notes.push(`without ${name}, after ${ran} bodies: ${finding ?? 'no lie'}`)
      progress(`control ${name}: ${controls[name]}`)
    }
    return {
      operations: found.bodies,
      violations: found.findings,
      controls,
      notes,
      coverage: found.coverage,
    }
  },
}

/** The same hunt in another process, whose library lacks a protection, until it has found one lie. */
async function without(name: ControlName, order: ControlOrder): Promise<ControlReport> {
  return await askWeakened<ControlReport>(
    {
      program: new URL('./bodies-control.ts', import.meta.url),
      cutting: new URL('./bodies-weakened.ts', import.meta.url),
      env: { BODIES_WITHOUT: name },
    },
    order,
  )
}
