import { bucketCount } from '../core/bucket.ts'
import { holdfastError } from '../core/errors.ts'

/** What one primary says: about itself, and where it believes each bucket to be. */
export interface ShardReading {
  readonly cluster: string
  readonly shard: string
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
