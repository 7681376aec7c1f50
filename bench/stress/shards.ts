import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { bucketOf } from '../../packages/holdfast/src/core/bucket.ts'
import { rounds, seconds as lasting } from '../harness/budget.ts'
import { randomFor } from '../harness/random.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { moveCarelessly } from './shards-careless.ts'
import { checkHistories } from './shards-checks.ts'
import { type Cluster, keysIn, ownersOf, startCluster } from './shards-cluster.ts'
import { Applications } from './shards-crew.ts'
import { effects } from './shards-model.ts'
import { type Blow, blows, type Moved, moveUnder } from './shards-moving.ts'

/** Moves with a blow, and pairs of a quiet time and a move without one. */
const [fullMoves, fullPairs] = [100, 30]
/** Fewer pairs tell of the machine, not of moves. */
const enoughPairs = 20
const leastThroughput = 0.9

export const shards: StressScenario = {
  about: 'buckets moved between two servers under load, with kills during the move',
  async run({ seconds, seed, progress }) {
    progress('starting two servers')
    await using cluster = await startCluster()
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-shards-'))
    const moving = keysIn(8, 'moving')
    const others = keysIn(64, 'other', new Set(moving.map(bucketOf)))
    try {
      const { killed, ratios, files } = await attack(cluster, folder, { moving, others })
      progress('checking')
      const checked = await checkHistories(cluster, moving, files)
      const violations = [...checked.violations]
      const middle = middleOf(ratios)
      if (ratios.length >= enoughPairs && middle < leastThroughput) {
        violations.push(`other buckets had ${middle.toFixed(2)} of their throughput during a move`)
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
          `operations in a moving bucket waited ${Math.round(middleOf(paused))} ms in the middle, ` +
            `${Math.round(Math.max(0, ...paused))} ms at most (moves that one process brought to their end)`,
          `throughput of other buckets during ${ratios.length} moves: ${middle.toFixed(2)} of that without ` +
            `(${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`,
        ],
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }

    async function attack(
      on: Cluster,
      histories: string,
      keys: { moving: readonly string[]; others: readonly string[] },
    ): Promise<{ killed: Moved[]; ratios: number[]; files: readonly string[] }> {
      await using applications = await Applications.start(2, histories, { urls: on.urls, ...keys })
      const bucketAt = (round: number): number =>
        bucketOf(keys.moving[round % keys.moving.length] as string)
      const ratios: number[] = []
      const pairs = seconds === undefined ? rounds(fullPairs) : lasting(seconds * 0.25)
      for (let round = 0; pairs.allows(round); round += 1) {
        const bucket = bucketAt(round)
        const [owner] = await ownersOf(on, bucket)
        const to = owner === 'north' ? 'south' : 'north'
        // By this process: starting one for it is nothing that a move takes from others.
        const act = (): Promise<unknown> =>
          on.moves.move({ buckets: [bucket], to, tables: [effects] })
        ratios.push(await throughputDuring(applications, round % 2 === 0, act))
        progress(`moves without a blow: ${round + 1}, throughput ${ratios.at(-1)?.toFixed(2)}`)
      }
      const killed: Moved[] = []
      const budget = seconds === undefined ? rounds(fullMoves) : lasting(seconds * 0.5)
      for (let round = 0; budget.allows(round); round += 1) {
        const blow = blows[round % blows.length] as Blow
        const random = randomFor(seed, round)
        killed.push(await moveUnder(on, applications, bucketAt(round), random, blow))
        progress(`move ${round + 1}: ${blow}, ${Math.round(killed.at(-1)?.ms ?? 0)} ms`)
      }
      return { killed, ratios, files: applications.files }
    }
  },
}

/** Operations per second on buckets that stay, during the act and in as long a time before or after it. */
async function throughputDuring(
  applications: Applications,
  quietAfterwards: boolean,
  act: () => Promise<unknown>,
): Promise<number> {
  const lookAt = async (): Promise<[count: number, at: number]> => [
    await applications.done(),
    performance.now(),
  ]
  const rate = ([from, since]: [number, number], [to, until]: [number, number]): number =>
    (to - from) / (until - since)
  const quietMs = 1_500
  const first = await lookAt()
  if (quietAfterwards) await act()
  else await after(quietMs)
  const second = await lookAt()
  if (quietAfterwards) await after(quietMs)
  else await act()
  const third = await lookAt()
  const [one, other] = [rate(first, second), rate(second, third)]
  return quietAfterwards ? one / other : other / one
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
    })
    await moveCarelessly(cluster, key, without, (line) => {
      appendFileSync(own, `${JSON.stringify(line)}\n`)
    })
    files.push(...applications.files)
  }
  const { violations } = await checkHistories(cluster, [key], files)
  return violations.some((violation) => violation.endsWith('was lost')) ? 'caught' : 'missed'
}

function middleOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
