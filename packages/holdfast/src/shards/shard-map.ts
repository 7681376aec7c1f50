import { bucketCount } from '../core/bucket.ts'
import { holdfastError } from '../core/errors.ts'

/** What one primary says: about itself, and where it believes each bucket to be. */
export interface ShardReading {
  readonly cluster: string
  readonly shard: string
  /** The names of all primaries, as it was told; null if it was not. */
  readonly members: readonly string[] | null
  /** It was compared with the other primaries since it was started, and serves. */
  readonly confirmed: boolean
  readonly map: readonly ShardEntry[] | null
}

/** A bucket as one server has written it down. */
export type ShardEntry = readonly [
  bucket: number,
  shard: string,
  here: boolean,
  leaving: boolean,
  version: number,
]

/**
 * Where a process believes the buckets to be, put together from what the primaries say. It may be
 * wrong at any time: the servers check, and whoever is refused reads again.
 */
export class ShardMap {
  readonly #owners: (string | undefined)[] = Array.from({ length: bucketCount })
  readonly #versions = new Float64Array(bucketCount)
  readonly #leaving = new Uint8Array(bucketCount)
  #cluster: string | undefined

  /**
   * Takes over what is newer. Of one version, the word of the server that has the bucket counts.
   *
   * @throws SHARD_MAP_INVALID
   */
  merge(asked: string, { cluster, shard, map }: ShardReading): void {
    this.#cluster ??= cluster
    if (shard !== asked || cluster !== this.#cluster) {
      const subject = shard === asked ? `${asked} is of another cluster` : `${asked} is ${shard}`
      throw holdfastError('SHARD_MAP_INVALID', { details: { subject } })
    }
    for (const [bucket, owner, here, leaving, version] of map ?? []) {
      const known = this.#versions[bucket] ?? 0
      if (version < known || (version === known && !here)) continue
      this.#versions[bucket] = version
      this.#owners[bucket] = here ? shard : owner
      this.#leaving[bucket] = here && leaving ? 1 : 0
    }
  }

  ownerOf(bucket: number): string | undefined {
    return this.#owners[bucket]
  }

  /** The primary that has all of them; `split` if there is none, `unknown` if nobody told. */
  placeOf(buckets: readonly number[]): Place {
    const [first = -1] = buckets
    const owner = this.#owners[first]
    let leaving = false
    for (const bucket of buckets) {
      if (this.#owners[bucket] === undefined) return { kind: 'unknown' }
      if (this.#owners[bucket] !== owner) return { kind: 'split' }
      if (this.#leaving[bucket] === 1) leaving = true
    }
    if (owner === undefined) return { kind: 'unknown' }
    return leaving ? { kind: 'leaving' } : { kind: 'at', primary: owner }
  }
}

/** Where buckets are. */
export type Place =
  | { readonly kind: 'at'; readonly primary: string }
  | { readonly kind: 'split' | 'leaving' | 'unknown' }

/** A bucket that one server believes to have, and that another one got by a later move. */
export type GivenAway = readonly [bucket: number, shard: string, version: number]

/** What a server no longer has, by what the others know: it was restored to before a move. */
export function givenAway(
  own: ShardReading,
  others: readonly ShardReading[],
): readonly GivenAway[] {
  const latest = new Map<number, GivenAway>()
  for (const [bucket, owner, , , version] of others.flatMap(({ map }) => map ?? [])) {
    if (version > (latest.get(bucket)?.[2] ?? 0)) latest.set(bucket, [bucket, owner, version])
  }
  return (own.map ?? []).flatMap(([bucket, , here, leaving, version]) => {
    const known = latest.get(bucket)
    const isGone = known !== undefined && known[2] > version && known[1] !== own.shard
    return here && !leaving && isGone ? [known] : []
  })
}

/** Who has a bucket by the latest move that anybody knows of. */
export function believedOwners(
  readings: readonly ShardReading[],
): readonly { readonly owner: string; readonly version: number }[] {
  const latest = Array.from({ length: bucketCount }, () => ({ owner: '', version: 0 }))
  for (const [bucket, owner, , , version] of readings.flatMap(({ map }) => map ?? [])) {
    if (version > (latest[bucket]?.version ?? 0)) latest[bucket] = { owner, version }
  }
  return latest
}
