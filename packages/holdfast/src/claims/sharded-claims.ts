import type { Driver, Row, Shards } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import type { FinishVerb } from '../engines/postgres/claims-finish.ts'
import { assertNotNested } from '../tx/run.ts'
import type { Claim, FailOutcome, HeldClaim } from './claim.ts'
import { type LeaseSettings, positive } from './layout.ts'
import { type FailOptions, LeaseClaims, type LeaseVerbs, type Recovered } from './lease-claims.ts'

/**
 * Claims over a table that several primaries have a part of. Rows are claimed from one primary after the
 * other; what is claimed is finished where its bucket is by then, or where it was claimed if rows stay.
 */
export class ShardedClaims<Tx, R> implements LeaseVerbs<Tx, R> {
  readonly settings: LeaseSettings
  readonly #driver: Driver<Tx>
  readonly #shards: Shards<Tx>
  /** In the caller's transactions, wherever they are. */
  readonly #joined: LeaseClaims<Tx, R>
  readonly #parts: ReadonlyMap<string, LeaseClaims<Tx, R>>
  readonly #claimedAt = new WeakMap<Claim<R>, string>()
  /** The first primary that is asked next time. */
  #next = 0

  constructor(
    driver: Driver<Tx>,
    shards: Shards<Tx>,
    settings: LeaseSettings,
    holder: string,
    read: (row: Row) => R,
  ) {
    const { bucket } = settings
    const { schema, primaries } = shards
    this.settings =
      bucket === undefined
        ? settings
        : { ...settings, layout: { ...settings.layout, shard: { schema, bucket } } }
    this.#driver = driver
    this.#shards = shards
    this.#joined = new LeaseClaims(driver, this.settings, holder, read)
    this.#parts = new Map(
      [...primaries].map(([name, primary]) => {
        const checked = { ...primary, alone: shards.at(name) }
        return [name, new LeaseClaims(checked, this.settings, holder, read)]
      }),
    )
  }

  async claim(tx: Tx | undefined, limit: number): Promise<HeldClaim<R>[]> {
    if (tx !== undefined) return await this.#joined.claim(tx, limit)
    positive(limit, 'limit')
    assertNotNested(this.#driver)
    const names = [...this.#parts.keys()]
    const first = this.#next
    this.#next = (first + 1) % names.length
    const claims: HeldClaim<R>[] = []
    const failures: unknown[] = []
    for (let at = 0; at < names.length && claims.length < limit; at += 1) {
      const name = names[(first + at) % names.length] as string
      try {
        const some = await this.#part(name).claim(undefined, limit - claims.length)
        for (const claim of some) this.#claimedAt.set(claim, name)
        claims.push(...some)
      } catch (error) {
        failures.push(error)
      }
    }
    // What one primary cannot give must not stop the work of the others.
    if (claims.length === 0 && failures.length > 0) throw failures[0]
    return claims
  }

  finishIn(
    tx: Tx,
    verb: FinishVerb,
    claims: readonly Claim<R>[],
    options?: FailOptions,
  ): Promise<FailOutcome<R>> {
    return this.#joined.finishIn(tx, verb, claims, options)
  }

  wasJoined(claim: Claim<R>): boolean {
    return this.#joined.wasJoined(claim)
  }

  unjoin(claim: Claim<R>): void {
    this.#joined.unjoin(claim)
  }

  /** Those that go to the same primary share a statement there, as those of many callers do. */
  async finish(
    verb: FinishVerb,
    claims: readonly Claim<R>[],
    options?: FailOptions,
  ): Promise<FailOutcome<R>> {
    assertNotNested(this.#driver)
    const outcomes = await Promise.all(
      claims.map((claim) => this.#at(claim, (part) => part.finish(verb, [claim], options))),
    )
    return {
      kept: outcomes.flatMap(({ kept }) => kept),
      lost: outcomes.flatMap(({ lost }) => lost),
      dead: outcomes.flatMap(({ dead }) => dead),
    }
  }

  async recover(limit: number): Promise<Recovered> {
    const sum = { freed: 0, dead: 0 }
    for (const part of this.#parts.values()) {
      const { freed, dead } = await part.recover(limit)
      sum.freed += freed
      sum.dead += dead
    }
    return sum
  }

  tellLost(...args: Parameters<LeaseClaims<Tx, R>['tellLost']>): void {
    this.#joined.tellLost(...args)
  }

  placeOf(claim: Claim<R>): ReturnType<LeaseClaims<Tx, R>['placeOf']> {
    const bucket = this.#bucketOf(claim)
    if (bucket !== undefined) return { driver: this.#driver, scopes: [bucket] }
    return this.#part(this.#claimedFrom(claim)).placeOf(claim)
  }

  async #at<T>(claim: Claim<R>, run: (part: LeaseClaims<Tx, R>) => Promise<T>): Promise<T> {
    const bucket = this.#bucketOf(claim)
    if (bucket === undefined) return await run(this.#part(this.#claimedFrom(claim)))
    return await this.#shards.routed([bucket], (name) => run(this.#part(name)))
  }

  #part(name: string): LeaseClaims<Tx, R> {
    return this.#parts.get(name) as LeaseClaims<Tx, R>
  }

  #bucketOf({ key }: Claim<R>): number | undefined {
    const { bucket, layout } = this.settings
    return bucket === undefined ? undefined : Number(key[layout.key.indexOf(bucket)])
  }

  #claimedFrom(claim: Claim<R>): string {
    const name = this.#claimedAt.get(claim)
    if (name === undefined) throw holdfastError('SHARD_NO_KEY')
    return name
  }
}
