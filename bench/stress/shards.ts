import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import { rounds, seconds as lasting } from '../harness/budget.ts'
import { randomFor } from '../harness/random.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { quantile } from '../harness/summary.ts'
import { moveCarelessly } from './shards-careless.ts'
import { checkHistories } from './shards-checks.ts'
import { type Cluster, keysIn, otherThan, ownersOf, startCluster } from './shards-cluster.ts'
import { Applications } from './shards-crew.ts'
import { effects } from './shards-model.ts'
import { type Blow, blows, type Moved, moveUnder } from './shards-moving.ts'
import { type Kept, keptDuring, takeShare } from './shards-throughput.ts'

/** Moves with a blow, and pairs of a quiet time and a move without one at each of two paces. */
const [fullMoves, fullPairs] = [100, 30]
/** Fewer pairs tell of the machine, not of moves. */
const enoughPairs = 20
const leastThroughput = 0.9
/**
 * Of the processors that the load takes. A move needs processors, and takes them from others where none is left: what
 * is asked for holds where more than half of them is, and what is lost where little is, is told.
 */
const [calmShare, busyShare] = [0.4, 0.7]
/** Between two operations of a worker, where nothing is measured. */
const thinkMs = 8

export const shards: StressScenario = {
  about: 'buckets moved between two servers under load, with kills during the move',
  async run({ seconds, seed, progress }) {
    progress('starting two servers')
    await using cluster = await startCluster()
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-shards-'))
    const moving = keysIn(8, 'moving')
    const others = keysIn(64, 'other', new Set(moving.map(bucketOf)))
    try {
      const { killed, calm, busy, files } = await attack(cluster, folder, { moving, others })
      progress('checking')
      const checked = await checkHistories(cluster, moving, files)
      const violations = [...checked.violations]
      const kept = middleOf(calm.map(({ ratio }) => ratio))
      if (calm.length >= enoughPairs && kept < leastThroughput) {
        violations.push(`other buckets had ${kept.toFixed(2)} of their throughput during a move`)
      }
      violations.push(...(await leftovers(cluster)))
      progress('controls')
      const controls = {
        no_mark: await control(cluster, folder, 'mark'),
        no_wait: await control(cluster, folder, 'wait'),
      }
      const paused = killed.flatMap(({ pausedMs }) => pausedMs ?? [])
      return {
        operations: checked.operations,
        violations,
        controls,
        notes: [
          `${killed.length} moves with a blow, ${killed.filter(({ moved }) => moved).length} of them went through, ` +
            `${killed.filter(({ movers }) => movers > 1).length} were brought to their end by others; ` +
            `${Math.round(middleOf(killed.map(({ ms }) => ms)))} ms in the middle`,
          ...(paused.length === 0
            ? []
            : [
                `operations in a moving bucket waited ${Math.round(middleOf(paused))} ms in the middle, ` +
                  `${Math.round(Math.max(...paused))} ms at most (moves that one process brought to their end)`,
              ]),
          told(calm),
          told(busy),
        ],
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }

    async function attack(
      on: Cluster,
      histories: string,
      keys: { moving: readonly string[]; others: readonly string[] },
    ): Promise<{ killed: Moved[]; calm: Kept[]; busy: Kept[]; files: readonly string[] }> {
      const setup = { urls: on.urls, ...keys, thinkMs }
      await using applications = await Applications.start(2, histories, setup)
      const bucketAt = (round: number): number =>
        bucketOf(keys.moving[round % keys.moving.length] as string)
      const measured = async (taken: number, share: number): Promise<Kept[]> => {
        const all: Kept[] = []
        await takeShare(applications, taken)
        const pairs = seconds === undefined ? rounds(fullPairs) : lasting(seconds * share)
        for (let round = 0; pairs.allows(round); round += 1) {
          const bucket = bucketAt(round)
          const [owner = 'north'] = await ownersOf(on, bucket)
          const to = otherThan(owner)
          // By this process: starting one for it is nothing that a move takes from others.
          const act = (): Promise<unknown> =>
            on.moves.move({ buckets: [bucket], to, tables: [effects] })
          all.push(await keptDuring(applications, round % 2 === 0, act))
          progress(`moves without a blow: ${round + 1}, throughput ${all.at(-1)?.ratio.toFixed(2)}`)
        }
        return all
      }
      const calm = await measured(calmShare, 0.2)
      const busy = await measured(busyShare, 0.1)
      await applications.pace(thinkMs)
      const killed: Moved[] = []
      const budget = seconds === undefined ? rounds(fullMoves) : lasting(seconds * 0.5)
      for (let round = 0; budget.allows(round); round += 1) {
        const blow = blows[round % blows.length] as Blow
        const random = randomFor(seed, round)
        killed.push(await moveUnder(on, applications, bucketAt(round), random, blow))
        progress(`move ${round + 1}: ${blow}, ${Math.round(killed.at(-1)?.ms ?? 0)} ms`)
      }
      return { killed, calm, busy, files: applications.files }
    }
  },
}

async function leftovers({ pools }: Cluster): Promise<string[]> {
  const found: string[] = []
  for (const [name, pool] of Object.entries(pools)) {
    const { rows } = await pool.query<{ what: string }>(
      `SELECT 'slot ' || slot_name AS what FROM pg_replication_slots
       UNION SELECT 'publication ' || pubname FROM pg_publication
       UNION SELECT 'subscription ' || subname FROM pg_subscription
       UNION SELECT 'open move ' || id FROM holdfast.shard_move WHERE ended_at IS NULL
       UNION SELECT 'leaving bucket ' || bucket FROM holdfast.shard_map WHERE leaving`,
    )
    found.push(...rows.map(({ what }) => `${name} is left with ${what}`))
  }
  return found
}

/** The same applications, on a key of its own that is moved carelessly. */
async function control(
  cluster: Cluster,
  folder: string,
  without: 'mark' | 'wait',
): Promise<ControlOutcome> {
  const [key] = keysIn(1, `careless-${without}`) as [string]
  const own = join(folder, `${without}.jsonl`)
  writeFileSync(own, '')
  const place = mkdtempSync(join(folder, without))
  const files: string[] = [own]
  {
    await using applications = await Applications.start(2, place, {
      urls: cluster.urls,
      moving: [key],
      others: [`${key}-other`],
      thinkMs,
    })
    await moveCarelessly(cluster, key, without, (line) => {
      appendFileSync(own, `${JSON.stringify(line)}\n`)
    })
    files.push(...applications.files)
  }
  const { violations } = await checkHistories(cluster, [key], files)
  return violations.some((violation) => violation.endsWith('was lost')) ? 'caught' : 'missed'
}

function told(kept: readonly Kept[]): string {
  const ratios = kept.map(({ ratio }) => ratio)
  const busy = Math.round(middleOf(kept.map(({ quietlyBusy }) => quietlyBusy)) * 100)
  return (
    `throughput of other buckets during ${kept.length} moves: ${middleOf(ratios).toFixed(2)} of that without ` +
    `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}), processors ${busy} % busy without`
  )
}

function middleOf(values: readonly number[]): number {
  return quantile(values, 0.5)
}
