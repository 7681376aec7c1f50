import { appendFileSync, mkdirSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RunnableCluster } from '../cluster/parts.ts'
import type { Outcome, Seed } from '../core/model.ts'
import { openSpares } from '../crew/spares.ts'
import type { OwnFault } from '../nemesis/own-fault.ts'
import { episodeSeed, type Plan } from '../nemesis/plan.ts'
import type { Pictured } from '../report/write-report.ts'
import { type EpisodeResult, runEpisode } from './episode.ts'

export interface RunOptions<C extends RunnableCluster> {
  readonly start: () => Promise<C>
  /** Of one episode. */
  readonly plan: (seed: Seed) => Plan<OwnFault<C>>
  /** Rules that say no more than that something was lost that is not promised to stay, after these faults. */
  readonly forgiven?: (faults: readonly string[]) => ReadonlySet<string>
  readonly seed: Seed
  /** Runs this one alone, instead of those that the seed gives. */
  readonly episodeSeed?: Seed | undefined
  /** Numbers of the first and the last episode. */
  readonly from: number
  readonly to: number
  /** Where histories and results go. */
  readonly folder: string
  /** Keeps all histories, and not only those of episodes that went wrong. */
  readonly keep: boolean
  /** Ends the run after the episode that is under way. */
  readonly stopping: AbortSignal
  readonly progress: (text: string) => void
}

export interface RunResult {
  readonly episodes: readonly EpisodeResult[]
  /** Episodes that could not be brought to their end: the harness, or the machine. */
  readonly broken: readonly { readonly number: number; readonly seed: Seed; readonly why: string }[]
  /** Some that went wrong, and the last one. */
  readonly pictured: readonly Pictured[]
}

const mostPictures = 6

/** One episode after the other on one cluster; after a broken one on a new cluster. */
export async function runEpisodes<C extends RunnableCluster>(
  options: RunOptions<C>,
): Promise<RunResult> {
  const { folder, progress } = options
  mkdirSync(folder, { recursive: true })
  const episodes: EpisodeResult[] = []
  const broken: RunResult['broken'][number][] = []
  const wrong: Pictured[] = []
  let latest: Pictured | undefined
  let spares = openSpares(2)
  let cluster: C | undefined
  try {
    for (let number = options.from; number <= options.to; number += 1) {
      if (options.stopping.aborted) break
      const seed = options.episodeSeed ?? episodeSeed(options.seed, number)
      const place = join(folder, `episode-${number}`)
      await rm(place, { recursive: true, force: true })
      try {
        cluster ??= await options.start()
        const plan = options.plan(seed)
        const { result: whole, history } = await runEpisode({
          cluster,
          spares,
          number,
          plan,
          folder: place,
        })
        const result = withoutForgiven(whole, options.forgiven?.(whole.faults) ?? new Set())
        episodes.push(result)
        appendFileSync(join(folder, 'episodes.jsonl'), `${JSON.stringify(result)}\n`)
        progress(lineOf(result))
        latest = { title: `Episode ${number}, seed ${seed}`, history }
        if (result.violations.length > 0) {
          if (wrong.length < mostPictures) wrong.push(latest)
          await writeFile(join(place, 'servers.log'), await cluster.logs())
          await writeFile(join(place, 'result.json'), JSON.stringify(result, undefined, 2))
        } else if (!options.keep) await rm(place, { recursive: true, force: true })
      } catch (error) {
        const why = causesOf(error)
        broken.push({ number, seed, why })
        progress(`episode ${number} seed ${seed}: BROKEN ${why}`)
        const logs = await cluster?.logs().catch(() => '')
        mkdirSync(place, { recursive: true })
        await writeFile(join(place, 'broken.log'), `${why}\n${logs}`)
        await cluster?.[Symbol.asyncDispose]()
        cluster = undefined
        await spares[Symbol.asyncDispose]()
        spares = openSpares(2)
      }
    }
  } finally {
    await cluster?.[Symbol.asyncDispose]()
    await spares[Symbol.asyncDispose]()
  }
  return { episodes, broken, pictured: [...new Set([...wrong, ...(latest ? [latest] : [])])] }
}

function withoutForgiven(result: EpisodeResult, forgiven: ReadonlySet<string>): EpisodeResult {
  const lost = result.violations.filter(({ rule }) => forgiven.has(rule)).map(({ rule }) => rule)
  if (lost.length === 0) return result
  const violations = result.violations.filter(({ rule }) => !forgiven.has(rule))
  return { ...result, violations, lost }
}

function lineOf(result: EpisodeResult): string {
  const { number, seed, faults, missed, outcomes, recoveredMs, violations, seconds, lost } = result
  const sum = (of: Outcome): number =>
    Object.values(outcomes).reduce((all, counts) => all + counts[of], 0)
  const line = [
    `episode ${number} seed ${seed}: ${faults.join(' ')}`,
    ...missed.map((text) => `(missed ${text})`),
    `| ok ${sum('ok')} refused ${sum('refused')} failed ${sum('failed')} unknown ${sum('unknown')}`,
    `| again after ${recoveredMs} ms | ${seconds.toFixed(1)} s`,
    ...(lost === undefined ? [] : [`| lost, as is to be expected: ${lost.join(' ')}`]),
  ].join(' ')
  const found = violations.map(
    ({ rule, workload, what }) => `  VIOLATION ${rule} ${workload}: ${what}`,
  )
  return [line, ...found].join('\n')
}

function causesOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message} ← ${causesOf(error.cause)}`
}
