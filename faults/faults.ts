/** `npm run faults`: breaks servers and applications by plan, and reads afterwards whether promises were kept. */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { summaryOf } from './report/run-report.ts'
import { writeReport } from './report/write-report.ts'
import type { EpisodeResult } from './run/episode.ts'
import { tiers } from './run/tiers.ts'

const usage = `usage: npm run faults -- [options]

  --tier name         ${Object.entries(tiers)
    .map(([name, { about }]) => `${name}: ${about}`)
    .join('\n                      ')}
  --episodes n        how many; 10 if nothing else is said
  --failovers n       as many episodes as that many failovers take
  --seed n            the same one makes the same plans
  --from n            the number of the first episode: goes on with a run that was stopped
  --episode-seed n    this episode alone, as often as --episodes says
  --faults a,b        only these faults
  --report folder     where report, histories and results go
  --keep              keeps the histories of all episodes, not only of those that went wrong`

const { values } = parseArgs({
  options: {
    tier: { type: 'string', default: 'single' },
    episodes: { type: 'string' },
    failovers: { type: 'string' },
    seed: { type: 'string' },
    'episode-seed': { type: 'string' },
    from: { type: 'string' },
    faults: { type: 'string' },
    report: { type: 'string' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(`${usage}\n`)
  process.exit(0)
}
const tier = Object.hasOwn(tiers, values.tier) ? tiers[values.tier] : undefined
if (tier === undefined) refuse(`there is no tier "${values.tier}"`)
const seed = number('seed') ?? randomInt(2 ** 31)
const from = number('from') ?? 1
const failovers = number('failovers')
if (failovers !== undefined && tier.failovers === undefined) refuse('this tier has no failovers')
const alone = number('episode-seed')
const count =
  number('episodes') ??
  (failovers === undefined ? undefined : Math.ceil(failovers / (tier.failovers ?? 1))) ??
  (alone === undefined ? 10 : 1)
const folder = values.report ?? join(tmpdir(), `holdfast-faults-${values.tier}-${seed}`)
const startedAt = new Date().toISOString()
const stopping = new AbortController()
process.once('SIGINT', () => {
  say('stops after this episode; once more to stop at once')
  stopping.abort()
})

say(
  `tier ${values.tier}, seed ${seed}, episodes ${from} to ${from + count - 1}, report in ${folder}`,
)
const earlier = from === 1 ? [] : earlierEpisodes(from)
const { episodes, broken, pictured } = await tier.run({
  seed,
  episodeSeed: alone,
  from,
  to: from + count - 1,
  folder,
  keep: values.keep,
  only: values.faults?.split(','),
  stopping: stopping.signal,
  progress: say,
})
const run = {
  tier: values.tier,
  seed,
  startedAt,
  episodes: [...earlier, ...episodes],
  notes: [
    ...tier.notes,
    ...broken.map(({ number: which, why }) => `Episode ${which} could not be ended: ${why}`),
  ],
}
writeReport(folder, run, pictured)
const { operations, violations, recoveredMs } = summaryOf(run)
const struck = run.episodes.flatMap(({ faults }) => faults)
process.stdout.write(
  `${JSON.stringify({
    tier: values.tier,
    seed,
    episodes: run.episodes.length,
    faults: struck.length,
    ...(tier.failovers === undefined
      ? {}
      : { failovers: struck.filter((name) => tier.isFailover(name)).length }),
    operations,
    violations,
    ...(values.tier === 'lagging'
      ? { episodesWithLosses: run.episodes.filter(({ lost }) => lost !== undefined).length }
      : {}),
    broken: broken.length,
    recoveredMs,
    report: join(folder, 'report.html'),
  })}\n`,
)
process.exitCode = violations > 0 || broken.length > 0 ? 1 : 0

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

function refuse(problem: string): never {
  say(`faults: ${problem}\n\n${usage}`)
  process.exit(2)
}

function number(
  option: 'seed' | 'from' | 'failovers' | 'episodes' | 'episode-seed',
): number | undefined {
  const text = values[option]
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  return refuse(`--${option} must be a whole number`)
}

/** Of the run that is gone on with: everything before the first episode of this one. */
function earlierEpisodes(before: number): EpisodeResult[] {
  const lines = readFileSync(join(folder, 'episodes.jsonl'), 'utf8').trim().split('\n')
  const all = lines.map((line) => JSON.parse(line) as EpisodeResult)
  return all.filter((episode) => episode.number < before)
}
