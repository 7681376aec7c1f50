import type { Command, Single } from '../../packages/holdfast/test/support/ledger-command.ts'
import { generateHistory } from './ledger-model-generate.ts'
import { countOf, type Difference, type History, printHistory } from './ledger-model-history.ts'
import type { Lane } from './ledger-model-lane.ts'
import { playHistory } from './ledger-model-play.ts'
import { shrink } from './ledger-model-shrink.ts'

export interface HuntOptions {
  readonly seed: number
  readonly zones: readonly string[]
  /** Commands. */
  readonly count: number
  /** Numbers of histories: from the first, and before the last. */
  readonly numbers?: readonly [number, number]
  readonly seconds: number | undefined
  /** For controls. */
  readonly stopAtFirst?: boolean
  /** How many shorter histories are tried for a difference. @defaultValue 400 */
  readonly tries?: number
  readonly progress: (text: string) => void
}

type Counts = Record<string, number>

interface Finding {
  readonly history: History
  readonly difference: Difference
  readonly number: number
  times: number
}

export interface Found {
  readonly commands: number
  /** One text for every sort: what was told, what the model says, the shortest history, the seed. */
  readonly differences: readonly string[]
  readonly first: Finding | undefined
  readonly notes: readonly string[]
  readonly coverage: Readonly<Record<string, Counts>>
}

const progressEveryMs = 5_000
/** Sorts that are cut down; the others are only counted. */
const mostShrunk = 6

/** Generates histories and plays them, on all lanes at once; a history is the same whatever the lane. */
export async function hunt(lanes: readonly Lane[], options: HuntOptions): Promise<Found> {
  const {
    seed,
    zones,
    count,
    numbers: [from, to] = [0, Infinity],
    seconds,
    stopAtFirst,
    tries = 400,
    progress,
  } = options
  const began = performance.now()
  const until = began + (seconds ?? Infinity) * 1_000
  const findings = new Map<string, Finding>()
  const coverage = { paths: {} as Counts, acts: {} as Counts, zones: {} as Counts }
  let [commands, next, toldAt] = [0, from, began]
  const isOver = (): boolean =>
    commands >= count ||
    next >= to ||
    performance.now() > until ||
    (stopAtFirst === true && findings.size > 0)
  const work = async (lane: Lane): Promise<void> => {
    while (!isOver()) {
      const number = next++
      const history = generateHistory(seed, number, zones)
      commands += countOf(history)
      note(coverage, history)
      const difference = await playHistory(lane, history)
      if (difference !== undefined) await keep(lane, history, difference, number)
      if (performance.now() - toldAt > progressEveryMs) {
        toldAt = performance.now()
        const rate = (commands / ((toldAt - began) / 1_000)).toFixed(0)
        progress(`${commands} commands, ${findings.size} sorts of differences, ${rate} a second`)
      }
    }
  }
  const keep = async (
    lane: Lane,
    history: History,
    difference: Difference,
    number: number,
  ): Promise<void> => {
    const known = findings.get(difference.sort)
    if (known !== undefined) {
      known.times += 1
      return
    }
    findings.set(difference.sort, { history, difference, number, times: 1 })
    if (findings.size > mostShrunk) return
    const small = await shrink(history, difference, (shorter) => playHistory(lane, shorter), tries)
    const finding = { ...small, number, times: findings.get(difference.sort)?.times ?? 1 }
    findings.set(difference.sort, finding)
    if (stopAtFirst !== true) progress(textOf(finding, seed))
  }
  await Promise.all(lanes.map(work))
  const took = ((performance.now() - began) / 1_000).toFixed(0)
  const known = new Map<string, number>()
  for (const [name, times] of lanes.flatMap((lane) => [...lane.known])) {
    known.set(name, (known.get(name) ?? 0) + times)
  }
  return {
    commands,
    differences: [...findings.values()].map((finding) => textOf(finding, seed)),
    first: [...findings.values()][0],
    notes: [
      `${commands} commands in ${next - from} histories, ${took} s`,
      ...[...known].map(([name, times]) => `known, ${times} times: ${name}`),
    ],
    coverage: { ...coverage, zones: { seen: Object.keys(coverage.zones).length } },
  }
}

function textOf({ history, difference, number, times }: Finding, seed: number): string {
  const { sort, told, modelled } = difference
  const where = `Seed ${seed}, history ${number}, seen ${times} times`
  return `${sort}. ${where}:\n${printHistory(history)}\n  told  ${told}\n  model ${modelled}`
}

function note(
  coverage: { readonly paths: Counts; readonly acts: Counts; readonly zones: Counts },
  { steps, terms }: History,
): void {
  for (const { zone } of Object.values(terms)) if (zone !== undefined) add(coverage.zones, zone)
  for (const { path, commands } of steps) {
    for (const command of commands as readonly (Command | Single)[]) {
      if (command.act === 'clock') continue
      add(coverage.paths, path)
      if (command.act === 'move') for (const { kind } of command.lines) add(coverage.acts, kind)
      else add(coverage.acts, command.act)
    }
  }
}

function add(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
