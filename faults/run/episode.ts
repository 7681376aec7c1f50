import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { randomFor } from '../../bench/harness/random.ts'
import type { RunnableCluster } from '../cluster/parts.ts'
import type { Crew, FaultEvent, Violation } from '../core/model.ts'
import type { Spares } from '../crew/spares.ts'
import { startCrew } from '../crew/start-crew.ts'
import { now, openHistory } from '../history/open-history.ts'
import { type History, readHistory } from '../history/read-history.ts'
import type { OwnFault } from '../nemesis/own-fault.ts'
import type { Plan, Step } from '../nemesis/plan.ts'
import { type EpisodeReport, outcomesOf } from '../report/run-report.ts'
import { allWorkloads } from '../workloads/index.ts'
import { countLeaks } from './count-leaks.ts'
import { prepareAll } from './prepare-all.ts'
import { untilProgress } from './until-progress.ts'
import { whoIsThere } from './who-is-there.ts'
import { within } from './within.ts'

/** What is reported of an episode, and more of it for whoever looks closer. */
export interface EpisodeResult extends EpisodeReport {
  /** Faults that could not strike, and why: another one was there first. */
  readonly missed: readonly string[]
  /** Rules that were broken because something confirmed was lost, in a tier that does not promise to keep it. */
  readonly lost?: readonly string[]
  /** From the end of the faults until each workload had done something again. */
  readonly recoveryMs: Readonly<Record<string, number>>
  /** Where the time went. */
  readonly phasesMs: Readonly<Record<string, number>>
}

interface EpisodeOptions<C extends RunnableCluster> {
  readonly cluster: C
  readonly spares: Spares
  readonly number: number
  readonly plan: Plan<OwnFault<C>>
  /** For the histories. */
  readonly folder: string
  /** Load after the last fault has begun and before the first one, at least. */
  readonly loadMs?: number
}

const strikeMs = 120_000
const slowStopMs = 8_000
/** To start a program takes long on a machine that has other things to do. */
const crewMs = 120_000

/** Load, faults, healing, progress, checks, leaks: once, in a database of its own. */
export async function runEpisode<C extends RunnableCluster>(
  options: EpisodeOptions<C>,
): Promise<{ result: EpisodeResult; history: History }> {
  const { cluster, spares, number, plan, folder, loadMs = 1_500 } = options
  const began = performance.now()
  const phasesMs: Record<string, number> = {}
  let phaseBegan = began
  const phase = (name: string): void => {
    const at = performance.now()
    phasesMs[name] = Math.round(at - phaseBegan)
    phaseBegan = at
  }
  await mkdir(folder, { recursive: true })
  const { database, doors } = await within('a new database', 60_000, cluster.open(prepareAll))
  try {
    for (const { fault } of plan.lanes.flat()) await fault.prepare?.(cluster.adminUrl(database))
    const starting = startCrew({ doors, folder, seed: plan.seed, spares })
    await using crew = await within('the crew starts', crewMs, starting).catch((error: unknown) => {
      // Whoever starts after all has nothing to do here any more.
      void starting.then((late) => late[Symbol.asyncDispose]()).catch(() => undefined)
      throw error
    })
    phase('open')
    const loaded = pause(loadMs)
    const { struck, missed } = await strikeAll(plan, { cluster, crew, database, folder })
    await loaded
    const endedAt = now()
    phase('faults')
    await within('the cluster is healed', 90_000, cluster.heal())
    phase('heal')
    const { recoveryMs, violations: stuck } = await untilProgress(folder, endedAt)
    phase('progress')
    await stopped(crew, async () => {
      await writeFile(join(folder, 'slow-stop.json'), await whoIsThere(cluster, database))
    })
    phase('stop')
    const history = readHistory(folder)
    const wrong = await checkTwice(cluster, database, history)
    phase('checks')
    const leaks = countLeaks(cluster, database, doors, history.events)
    const violations: Violation[] = [
      ...stuck,
      ...crew.troubles.map((what) => ({ rule: 'crashed', workload: 'all', what })),
      ...wrong,
      ...(await within('leaks are counted', 60_000, leaks)),
    ]
    phase('leaks')
    const result: EpisodeResult = {
      number,
      seed: plan.seed,
      faults: struck,
      missed,
      outcomes: outcomesOf(history.events),
      recoveryMs,
      phasesMs,
      recoveredMs: Math.max(0, ...Object.values(recoveryMs)),
      violations,
      seconds: Math.round(performance.now() - began) / 1_000,
    }
    return { result, history }
  } finally {
    await within('the database is dropped', 60_000, cluster.drop(database))
  }
}

/** Notes who is where if it takes long: afterwards everybody is gone. */
async function stopped(crew: Crew, note: () => Promise<void>): Promise<void> {
  const slow = setTimeout(() => void note().catch(() => undefined), slowStopMs)
  try {
    await within('the crew stops', 40_000, crew.stop())
  } finally {
    clearTimeout(slow)
  }
}

async function strikeAll<C extends RunnableCluster>(
  plan: Plan<OwnFault<C>>,
  stage: { cluster: C; crew: Crew; database: string; folder: string },
): Promise<{ struck: string[]; missed: string[] }> {
  using notes = openHistory(stage.folder, 'nemesis')
  const struck: string[] = []
  const missed: string[] = []
  const strike = async ({ fault, seed }: Step<OwnFault<C>>): Promise<void> => {
    const note = (type: FaultEvent['type'], text?: string): void => {
      const event = { at: now(), fault: fault.name, type }
      notes.append(text === undefined ? event : { ...event, note: text })
    }
    note('begins')
    try {
      const random = randomFor(seed, 0)
      const say = (text: string): void => note('note', text)
      await within(fault.name, strikeMs, fault.strike({ ...stage, random, say }))
      struck.push(fault.name)
    } catch (error) {
      // Another fault may have been there first; how often each one struck is in the report.
      missed.push((error as Error).message)
      note('note', `missed: ${(error as Error).message}`)
    } finally {
      note('healed')
    }
  }
  await Promise.all(
    plan.lanes.map(async (lane) => {
      for (const step of lane) {
        await pause(step.afterMs)
        await strike(step)
      }
    }),
  )
  return { struck, missed }
}

/** What is read twice must be the same: checks change nothing, and nothing else does any more. */
async function checkTwice(
  cluster: RunnableCluster,
  database: string,
  history: History,
): Promise<Violation[]> {
  const url = cluster.adminUrl(database)
  const once = async (): Promise<Violation[]> => {
    const found = await Promise.all(
      allWorkloads.map(
        async ({ name, check }) =>
          await within(`the check of ${name}`, 60_000, check(url, history.events)),
      ),
    )
    return found.flat()
  }
  const first = await once()
  const second = await once()
  const known = new Set(first.map((violation) => JSON.stringify(violation)))
  return [...first, ...second.filter((violation) => !known.has(JSON.stringify(violation)))]
}
