import { startPostgres } from '@holdfast/testkit'
import type { Pool } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles, type SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { openPool } from '../harness/open-pool.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { type ModelBug, modelBugs, withBug } from './ledger-model-bugs.ts'
import { clockedFiles } from './ledger-model-clock.ts'
import { printHistory } from './ledger-model-history.ts'
import { hunt } from './ledger-model-hunt.ts'
import { type Lane, laneOn } from './ledger-model-lane.ts'
import { playHistory } from './ledger-model-play.ts'
import { checkWindows, knownZones } from './ledger-model-zones.ts'

/** Without `--commands` and `--seconds`. */
const fullCount = 200_000
/** Of `--seconds`; the rest is for starting and for the controls. */
const huntShare = 0.3
/** How many zones there is time for with `--seconds`. */
const fewZones = 20
const lanes = 2
const workers = 4
/** A control that has not differed by then is missed. */
const controlHistories = 3_000
/** Shorter histories that are tried for the difference of a control; none where there is no time. */
const controlTries = 100
/** Where the clocks are set back over midnight. */
const overMidnight = ['America/Havana', 'Atlantic/Azores']
/** So that no plan of a look at the tables is one for empty tables. */
const planning =
  'options=-c%20jit%3Doff%20-c%20enable_seqscan%3Doff%20-c%20enable_hashjoin%3Doff%20-c%20enable_mergejoin%3Doff'

export const ledgerModel: StressScenario = {
  about: 'generated commands on the ledger and on a model of it, with the clock in our hands',
  controls: modelBugs,
  async run({ seconds, seed, count, control, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { max_connections: '40' } })
    const url = `${await server.createDatabase('model')}?${planning}`
    await using pools = poolsOn(url)
    const all = await Promise.all(Array.from({ length: lanes }, (_, at) => openLane(pools, at)))
    const [first] = all as [Lane]
    const { names, differing } = await knownZones(
      first.pool,
      seconds === undefined ? undefined : { seed, count: fewZones },
    )
    const windows = await checkWindows(first.pool, first.schema, names)
    progress(`${windows.moments} windows of ${names.length} zones compared`)
    const only = modelBugs.find((name) => name === control)
    const found = await hunt(all, {
      seed,
      zones: names,
      count: only !== undefined ? 0 : (count ?? (seconds === undefined ? fullCount : Infinity)),
      seconds: seconds === undefined ? undefined : seconds * huntShare,
      progress,
    })
    const controls: Record<string, ControlOutcome> = {}
    const notes = [...found.notes]
    if (differing.length > 0) {
      notes.push(`left out, their time-zone data differs: ${differing.join(', ')}`)
    }
    notes.push(`${windows.moments} windows of ${names.length} zones around changes of the clocks`)
    const bugs = only === undefined ? [...modelBugs] : [only]
    const tries = seconds === undefined ? controlTries : 0
    const playControls = async (lane: Lane): Promise<void> => {
      for (let bug = bugs.shift(); bug !== undefined; bug = bugs.shift()) {
        const outcome = await caught(lane, bug, seed, tries)
        controls[bug] = outcome === undefined ? 'missed' : 'caught'
        notes.push(`${bug}: ${outcome ?? 'no difference'}`)
        progress(`control ${bug}: ${controls[bug]}`)
      }
    }
    await Promise.all(all.map(playControls))
    return {
      operations: found.commands,
      violations: [...windows.differences, ...found.differences],
      controls,
      notes,
      coverage: found.coverage,
    }
  },
}

interface Pools extends AsyncDisposable {
  open(size: number): Promise<Pool>
}

function poolsOn(url: string): Pools {
  const opened: Pool[] = []
  return {
    async open(size) {
      const pool = await openPool(url, size)
      opened.push(pool)
      return pool
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((pool) => pool.end()))
    },
  }
}

async function openLane(pools: Pools, at: number): Promise<Lane> {
  const pool = await pools.open(2)
  const schema = `model_${at}`
  await install(pool, schema, ownFiles())
  const own = await Promise.all(Array.from({ length: workers }, () => pools.open(1)))
  return laneOn(pool, own, schema)
}

async function install(pool: Pool, schema: string, files: SchemaFiles): Promise<void> {
  await migrateFiles(fromPg(pool), clockedFiles(files), { schema })
}

/** The first difference that is there only with a bug put back. */
async function caught(
  lane: Lane,
  bug: ModelBug,
  seed: number,
  tries: number,
): Promise<string | undefined> {
  let [from, commands] = [0, 0]
  while (from < controlHistories) {
    await install(lane.pool, lane.schema, withBug(bug))
    const found = await hunt([lane], {
      seed,
      zones: overMidnight,
      count: Infinity,
      numbers: [from, controlHistories],
      seconds: undefined,
      stopAtFirst: true,
      tries,
      progress: () => undefined,
    })
    await install(lane.pool, lane.schema, ownFiles())
    commands += found.commands
    if (found.first === undefined) return undefined
    const { history, difference, number } = found.first
    from = number + 1
    if ((await playHistory(lane, history)) !== undefined) continue
    const sides = `told  ${difference.told}\n  model ${difference.modelled}`
    return `after ${commands} commands, ${difference.sort}:\n${printHistory(history)}\n  ${sides}`
  }
  return undefined
}
