import { bucketCount } from '../core/bucket.ts'
import type { PrimaryFailure } from '../tx/ask-each.ts'
import { believedOwners, givenAway, type ShardReading } from './shard-map.ts'

/** A move as a primary has written it down. */
export interface MoveEntry {
  readonly id: string
  readonly buckets: readonly number[]
  readonly source: string
  readonly target: string
  readonly step: string
  readonly ended: boolean
  readonly startedAt: string
  readonly changedAt: string
}

/** One primary, as it sees itself. */
export interface PrimaryStatus {
  readonly name: string
  /** Buckets it serves. */
  readonly here: number
  /** Buckets on their way to another one: nobody works in them. */
  readonly leaving: number
  /** Moves that have not ended, and the last ones that have. */
  readonly moves: readonly MoveEntry[]
}

/** Buckets of which a primary has something that is another's. */
export interface Misplaced {
  readonly primary: string
  readonly buckets: readonly number[]
}

/** All primaries together. */
export interface ClusterStatus {
  /** Those that answered. */
  readonly primaries: readonly PrimaryStatus[]
  /** Those that did not. */
  readonly failures: readonly PrimaryFailure[]
  /**
   * Buckets that no primary says it has, not even leaving, though all were asked that may have them: the one that got
   * them was restored to before that.
   */
  readonly nobody: readonly number[]
  /** Primaries that were not named to whoever asks, and the buckets that are theirs by what the others know. */
  readonly absent: readonly Misplaced[]
  /** Buckets that several primaries say they have, one of them leaving: a move was decided and has not ended. */
  readonly several: readonly number[]
  /** What a primary believes to have and another one got by a later move: it came back from a backup. */
  readonly stale: readonly Misplaced[]
  /** Buckets that are another's and have rows left, in no move that is open. */
  readonly strays: readonly Misplaced[]
}

/** What one primary was asked for. */
export interface PrimaryLook {
  readonly name: string
  readonly reading: ShardReading
  readonly moves: readonly MoveEntry[]
  /** Buckets with rows. */
  readonly occupied: readonly number[]
}

/** Puts together what all of them said. */
export function clusterStatus(
  looks: readonly PrimaryLook[],
  failures: readonly PrimaryFailure[],
): ClusterStatus {
  const stale = looks.map(({ name, reading }) => ({
    primary: name,
    buckets: staleOf(reading, looks),
  }))
  const isStale = new Set(
    stale.flatMap(({ primary, buckets }) => buckets.map((b) => `${primary} ${b}`)),
  )
  const owners = Array.from({ length: bucketCount }, () => 0)
  for (const { name, reading } of looks) {
    for (const [bucket, , here] of reading.map ?? []) {
      if (here && !isStale.has(`${name} ${bucket}`)) owners[bucket] = (owners[bucket] ?? 0) + 1
    }
  }
  const answered = new Set(looks.map(({ name }) => name))
  const named = new Set([...answered, ...failures.map(({ primary }) => primary)])
  const latest = believedOwners(looks.map(({ reading }) => reading))
  const at = (fits: (count: number, bucket: number) => boolean): number[] =>
    owners.flatMap((count, bucket) => (fits(count, bucket) ? [bucket] : []))
  const ownerOf = (bucket: number): string => latest[bucket]?.owner ?? ''
  const untold = at((count, bucket) => count === 0 && !named.has(ownerOf(bucket)))
  return {
    primaries: looks.map(({ name, reading: { map }, moves }) => ({
      name,
      here: (map ?? []).filter(([, , here, leaving]) => here && !leaving).length,
      leaving: (map ?? []).filter(([, , , leaving]) => leaving).length,
      moves,
    })),
    failures,
    nobody: at((count, bucket) => count === 0 && answered.has(ownerOf(bucket))),
    absent: [...new Set(untold.map(ownerOf))].map((primary) => ({
      primary,
      buckets: untold.filter((bucket) => ownerOf(bucket) === primary),
    })),
    several: at((count) => count > 1),
    stale: stale.filter(({ buckets }) => buckets.length > 0),
    strays: looks
      .map((look) => ({ primary: look.name, buckets: straysOf(look) }))
      .filter(({ buckets }) => buckets.length > 0),
  }
}

function staleOf(own: ShardReading, looks: readonly PrimaryLook[]): number[] {
  const others = looks.map(({ reading }) => reading).filter((each) => each !== own)
  return givenAway(own, others).map(([bucket]) => bucket)
}

function straysOf({ reading, moves, occupied }: PrimaryLook): number[] {
  const gone = new Set((reading.map ?? []).flatMap(([bucket, , here]) => (here ? [] : [bucket])))
  const moving = new Set(moves.filter(({ ended }) => !ended).flatMap(({ buckets }) => buckets))
  return occupied.filter((bucket) => gone.has(bucket) && !moving.has(bucket))
}
