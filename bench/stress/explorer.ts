import { createDatabase, startPostgres } from '@holdfast/testkit'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { entries, entryNamed } from '../zoo/entries.ts'
import { type Caught, hunt, huntWithout, type Places } from '../zoo/hunt.ts'
import { createTally, decided } from '../zoo/judge.ts'
import { startLateServer } from '../zoo/late-server.ts'
import type { Entry } from '../zoo/model.ts'
import { type Task, taskOf } from '../zoo/variants.ts'
import { type ExplorerControl, explorerControls, ledBy } from './explorer-cuts.ts'

/** Explorations of each entry, without `--count` and `--seconds`. */
const fullCount = 20
/** Of `--seconds`; the rest is for starting and for the controls, which take no longer in a longer run. */
const huntShare = 0.6
const controlSeconds = 40
/** With less than these `--seconds` a run is a short one: it leaves out longer waits, so that it comes to every entry. */
const briefSeconds = 300
const briefWaitMs = 10
/** Waits leave the processors to others, so there may be more workers than processors. */
const crew = { full: 4, brief: 2 }
/** A share of all explorations. */
const mustBeDecided = 0.95

export const explorer: StressScenario = {
  about: 'a zoo of flows with known answers judges the race explorer',
  controls: explorerControls,
  names: entries.map(({ name }) => name),
  async run({ seconds, seed, count, control, only, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { max_connections: '300' } })
    await using late = await startLateServer()
    const brief = seconds !== undefined && seconds < briefSeconds
    const urls: string[] = []
    const workers = only !== undefined ? 1 : brief ? crew.brief : crew.full
    while (urls.length < workers) urls.push(await createDatabase(server.url(), 'zoo'))
    const places: Places = { urls, elsewhere: late.origin }

    const tally = createTally()
    const chosen = only === undefined ? entries : [entryNamed(only)]
    const started = performance.now()
    if (control === undefined) {
      const rounds = count ?? (only === undefined ? fullCount : 1)
      const tasks = brief ? briefTasksOf(chosen, seed) : tasksOf(chosen, seed, rounds)
      const share = Math.max((seconds ?? Infinity) * huntShare, (seconds ?? 0) - controlSeconds)
      const until = started + share * 1_000
      await hunt(places, tasks, { tally, until, progress })
    }
    const hunted = Math.round((performance.now() - started) / 1_000)

    const controls: Record<string, ControlOutcome> = {}
    const notes = [...tally.undecided]
    const wanted = explorerControls.filter((name) =>
      control === undefined ? only === undefined : control === name,
    )
    const queue = wanted.values()
    await Promise.all(
      urls.map(async (url) => {
        for (const name of queue) {
          const { explorations, finding } = await without(name, seed, { ...places, url })
          controls[name] = finding === undefined ? 'missed' : 'caught'
          notes.push(
            `without ${name}, after ${explorations} explorations: ${finding ?? 'all right'}`,
          )
          progress(`control ${name}: ${controls[name]}`)
        }
      }),
    )

    const share = decided(tally)
    const covered = Object.keys(tally.coverage['entry'] ?? {}).length
    const violations = [...tally.sentences]
    if (control === undefined) {
      const percent = `${(share * 100).toFixed(1)} %`
      notes.push(
        `${tally.explorations} explorations of ${covered} of ${chosen.length} entries in ${hunted} s: ` +
          `${tally.wrong['false race']} false races, ${tally.wrong['false green']} false green, ${tally.wrong['wrong story']} wrong stories, ${percent} decided`,
      )
      if (share < mustBeDecided) violations.push(`only ${percent} of the explorations were decided`)
    }
    return {
      operations: tally.explorations,
      violations,
      controls,
      notes,
      coverage: tally.coverage,
      figures: {
        entries: covered,
        false_races: tally.wrong['false race'],
        false_green: tally.wrong['false green'],
        wrong_stories: tally.wrong['wrong story'],
        decided: share,
      },
    }
  },
}

/** Seed by seed, so that a run that is broken off has seen all entries alike. */
function* tasksOf(chosen: readonly Entry[], seed: number, rounds: number): Generator<Task> {
  for (let round = 0; round < rounds; round += 1) {
    for (const entry of chosen) yield taskOf(entry, seed + round)
  }
}

/** Without end, and only variants that do not wait for long. */
function* briefTasksOf(chosen: readonly Entry[], seed: number): Generator<Task> {
  for (let first = seed; ; first += 4) {
    for (const entry of chosen) {
      const near = [0, 1, 2, 3].map((step) => taskOf(entry, first + step))
      yield* near.filter(({ variant }) => variant.waitMs <= briefWaitMs).slice(0, 1)
    }
  }
}

/** The same zoo in a process whose explorer lacks a protection, until it is wrong. */
async function without(
  name: ExplorerControl,
  seed: number,
  { url, elsewhere }: { readonly url: string; readonly elsewhere: string },
): Promise<Caught> {
  const { wrong, tasks } = ledBy(name, seed)
  const cutting = new URL('./explorer-weakened.ts', import.meta.url)
  const weakened = { cutting, env: { EXPLORER_WITHOUT: name } }
  return await huntWithout({ url, elsewhere, weakened }, tasks, wrong)
}
