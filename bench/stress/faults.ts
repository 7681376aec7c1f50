import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asyncReplication } from '../../faults/controls/async-replication.ts'
import { cancelledSync } from '../../faults/controls/cancelled-sync.ts'
import { runUnprotected, unprotected } from '../../faults/controls/unprotected.ts'
import type { Violation } from '../../faults/core/model.ts'
import { type RunReport, summaryOf } from '../../faults/report/run-report.ts'
import { type Tier, tiers } from '../../faults/run/tiers.ts'
import { counted } from '../harness/counted.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'

/** Of one server's faults, and of failovers; long runs are `npm run faults`. */
const full = { single: 20, pair: 1 }
/** Controls take about this long; the rest of `--seconds` is for episodes. */
const controlSeconds = 40
const episodeSeconds = 8

export const faults: StressScenario = {
  about: 'all workloads under faults, judged by their histories; every checker is seen to report',
  async run({ seconds, seed, progress }) {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-faults-'))
    const controls: Record<string, ControlOutcome> = {}
    const notes: string[] = []
    const note = (name: string, found: readonly Violation[], caught: boolean): void => {
      controls[name] = caught ? 'caught' : 'missed'
      const rules = counted(found.map(({ rule, workload }) => `${rule} in ${workload}`))
      notes.push(`${name}: ${rules.length === 0 ? 'nothing was reported' : rules.join(', ')}`)
      progress(`control ${name}: ${controls[name]}`)
    }
    for (const name of Object.keys(unprotected) as (keyof typeof unprotected)[]) {
      const { caught, violations } = await runUnprotected(name, folder, seed)
      note(name, violations, caught)
    }
    const lost = await asyncReplication(folder, seed)
    note('async_replication', lost, lost.some(isLoss))
    const cancelled = await cancelledSync(folder)
    note('cancelled_sync', cancelled.bare.violations, cancelled.bare.violations.some(isLoss))
    // The same through Holdfast: nobody was told that it is there.
    const violations = cancelled.holdfast.violations.map(
      (each) => `cancelled_sync: ${textOf(each)}`,
    )
    let operations = 0
    const single =
      seconds === undefined
        ? full.single
        : Math.max(1, Math.floor((seconds - controlSeconds) / episodeSeconds))
    const counts = { single, pair: full.pair }
    for (const [name, episodes] of Object.entries(counts)) {
      const run = await runTier(name, tiers[name] as Tier, episodes, { folder, seed, progress })
      const summary = summaryOf(run)
      operations += summary.operations
      violations.push(
        ...run.episodes.flatMap((episode) =>
          episode.violations.map((each) => `${name}, seed ${episode.seed}: ${textOf(each)}`),
        ),
      )
      notes.push(
        `${name}: ${summary.episodes} episodes, ${summary.operations} operations, progress again within ` +
          `${summary.recoveredMs.most} ms`,
      )
    }
    if (violations.length === 0) rmSync(folder, { recursive: true })
    else notes.push(`histories are in ${folder}`)
    return { operations, violations, controls, notes }
  },
}

async function runTier(
  name: string,
  tier: Tier,
  episodes: number,
  { folder, seed, progress }: { folder: string; seed: number; progress: (text: string) => void },
): Promise<RunReport> {
  const result = await tier.run({
    seed,
    from: 1,
    to: episodes,
    folder: join(folder, name),
    keep: false,
    only: undefined,
    stopping: new AbortController().signal,
    progress,
  })
  const [broken] = result.broken
  if (broken !== undefined) throw new Error(`episode ${broken.number} of ${name}: ${broken.why}`)
  return {
    tier: name as RunReport['tier'],
    seed,
    startedAt: new Date().toISOString(),
    episodes: result.episodes,
    notes: [],
  }
}

function isLoss({ rule }: Violation): boolean {
  return rule === 'acknowledged_lost'
}

function textOf({ rule, workload, what }: Violation): string {
  return `${rule} in ${workload}: ${what}`
}
