import type { Driver, Row, Shards } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { settledWithin } from '../core/within.ts'
import { askEach, failureOf, heard, noAnswer, type PrimaryFailure } from '../tx/ask-each.ts'
import { assertNotNested } from '../tx/run.ts'
import type { Claim, FailOutcome, HeldClaim } from './claim.ts'
import type { ClaimsEngine, FinishVerb, LeaseSettings } from './engine.ts'
import { positive } from './layout.ts'
import {
  type FailOptions,
  LeaseClaims,
  type LeaseVerbs,
  type RecoveredSome,
} from './lease-claims.ts'

/** One primary: its claims, and whether it answers. */
interface Part<Tx, R> {
  readonly name: string
  readonly claims: LeaseClaims<Tx, R>
  readonly alone: Driver<Tx>['alone']
  /** When it was asked for what it has not answered in time; undefined if it has answered everything. */
  lateSince: number | undefined
  /** Its last answer was late: it is asked, and nobody waits for it. */
  slow: boolean
}

/** How long others wait for a primary that is asked for rows. What it gives later is for who asks next. */
const patienceMs = 1_000

/**
 * Claims over a table that several primaries have a part of. Rows are claimed from several at the same time; what is
 * claimed is finished where its bucket is by then, or where it was claimed if rows stay.
 */
export class ShardedClaims<Tx, R> implements LeaseVerbs<Tx, R> {
  readonly settings: LeaseSettings
  readonly #driver: Driver<Tx>
  readonly #shards: Shards<Tx>
  /** In the caller's transactions, wherever they are. */
  readonly #joined: LeaseClaims<Tx, R>
  readonly #parts: ReadonlyMap<string, Part<Tx, R>>
  readonly #claimedAt = new WeakMap<Claim<R>, string>()
  /** Claimed by a primary that answered late, and nobody has got them yet. */
  #late: HeldClaim<R>[] = []
  /** The first primary that is asked next time. */
  #next = 0

  constructor(
    engine: ClaimsEngine,
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
    this.#joined = new LeaseClaims(engine, driver, this.settings, holder, read)
    this.#parts = new Map(
      [...primaries].map(([name, primary]) => {
        const claims = new LeaseClaims<Tx, R>(engine, primary, this.settings, holder, read)
        return [name, { name, claims, alone: primary.alone, lateSince: undefined, slow: false }]
      }),
    )
  }

  async claim(tx: Tx | undefined, limit: number): Promise<HeldClaim<R>[]> {
    if (tx !== undefined) return await this.#joined.claim(tx, limit)
    positive(limit, 'limit')
    assertNotNested(this.#driver)
    const claims = this.#late.splice(0, limit)
    const failures: PrimaryFailure[] = []
    let asked = this.#inTurn()
    while (claims.length < limit && asked.length > 0) {
      const shares = sharesOf(asked, limit - claims.length)
      const rest = asked.slice(shares.length)
      const answers = await Promise.all(
        shares.map(async ([part, share]) => {
          const some = await this.#ask(part, share, failures)
          return { part, some, isFull: some.length === share }
        }),
      )
      claims.push(...answers.flatMap(({ some }) => some))
      // Who gave all that it was asked for may have more.
      asked = [...rest, ...answers.flatMap(({ part, isFull }) => (isFull ? part : []))]
    }
    // What one primary cannot give must not stop the work of the others.
    const failure = failureOf(failures, this.#parts.size)
    if (failure !== undefined && claims.length === 0) throw failure
    if (failure !== undefined) this.#trouble(failure)
    return claims
  }

  /** All that are to be asked, each time beginning with another one. */
  #inTurn(): Part<Tx, R>[] {
    const all = [...this.#parts.values()]
    const first = this.#next
    this.#next = (first + 1) % all.length
    const now = performance.now()
    return [...all.slice(first), ...all.slice(0, first)].filter(
      ({ lateSince }) => lateSince === undefined || now - lateSince > this.settings.leaseMs,
    )
  }

  /** What it gives in time. */
  async #ask(
    part: Part<Tx, R>,
    share: number,
    failures: PrimaryFailure[],
  ): Promise<HeldClaim<R>[]> {
    const asking = part.claims.claim(undefined, share)
    const began = performance.now()
    if (await settledWithin(asking, part.slow ? 0 : patienceMs)) {
      part.slow = false
      try {
        return this.#note(await asking, part)
      } catch (error) {
        failures.push({ primary: part.name, error })
        return []
      }
    }
    if (!part.slow) this.#trouble(failureOf([{ primary: part.name, error: noAnswer() }], undefined))
    part.slow = true
    part.lateSince = began
    void this.#keepLate(part, asking, began)
    return []
  }

  async #keepLate(
    part: Part<Tx, R>,
    asking: Promise<HeldClaim<R>[]>,
    began: number,
  ): Promise<void> {
    try {
      const late = this.#note(await asking, part)
      part.slow = performance.now() - began > patienceMs
      this.#late.push(...late)
      const timer = setTimeout(() => void this.#giveBack(late), this.settings.leaseMs / 3)
      timer.unref()
    } catch (error) {
      this.#trouble(failureOf([{ primary: part.name, error }], undefined))
    } finally {
      if (part.lateSince === began) part.lateSince = undefined
    }
  }

  /** Nobody has asked since. */
  async #giveBack(late: readonly HeldClaim<R>[]): Promise<void> {
    const left = this.#late.filter((claim) => late.includes(claim))
    this.#late = this.#late.filter((claim) => !late.includes(claim))
    if (left.length === 0) return
    await this.finish('release', left).catch((error: unknown) => this.#trouble(error))
  }

  #note(claims: HeldClaim<R>[], { name }: Part<Tx, R>): HeldClaim<R>[] {
    for (const claim of claims) this.#claimedAt.set(claim, name)
    return claims
  }

  #trouble(error: unknown): void {
    const { table } = this.settings.layout.table
    publish(channels.claimsTrouble, { table, during: 'claim', error })
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
    const settled = await Promise.allSettled(
      claims.map((claim) => this.#at(claim, (part) => part.finish(verb, [claim], options))),
    )
    const outcomes = settled.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
    const outcome = {
      kept: outcomes.flatMap(({ kept }) => kept),
      lost: outcomes.flatMap(({ lost }) => lost),
      dead: outcomes.flatMap(({ dead }) => dead),
    }
    const failed = settled.filter((each) => each.status === 'rejected')
    const errors = new Set<unknown>(failed.map(({ reason }) => reason as unknown))
    if (errors.size === 0) return outcome
    const [error] = errors
    if (failed.length === claims.length && errors.size === 1) throw error
    throw failureOf(this.#failuresOf(claims, settled), undefined, { outcome }) as Error
  }

  /** By primary, one error of each. */
  #failuresOf(
    claims: readonly Claim<R>[],
    settled: readonly PromiseSettledResult<unknown>[],
  ): readonly PrimaryFailure[] {
    const byName = new Map<string, unknown>()
    for (const [at, each] of settled.entries()) {
      if (each.status === 'fulfilled') continue
      const bucket = this.#bucketOf(claims[at] as Claim<R>)
      const name =
        bucket === undefined
          ? this.#claimedAt.get(claims[at] as Claim<R>)
          : this.#shards.guess([bucket])
      byName.set(name ?? 'nobody', each.reason)
    }
    return [...byName].map(([primary, error]) => ({ primary, error }))
  }

  async recover(limit: number): Promise<RecoveredSome> {
    const { answers, failure } = await askEach(this.#driver, (_, name) =>
      this.#part(name).recover(limit),
    )
    return {
      freed: answers.reduce((sum, { freed }) => sum + freed, 0),
      dead: answers.reduce((sum, { dead }) => sum + dead, 0),
      ...(failure === undefined ? {} : { failure }),
    }
  }

  tellLost(...args: Parameters<LeaseClaims<Tx, R>['tellLost']>): void {
    this.#joined.tellLost(...args)
  }

  placeOf(claim: Claim<R>): ReturnType<LeaseClaims<Tx, R>['placeOf']> {
    const bucket = this.#bucketOf(claim)
    if (bucket !== undefined) return { driver: this.#driver, scopes: [bucket] }
    return this.#part(this.#claimedFrom(claim)).placeOf(claim)
  }

  /** A bucket may be on its way, and a primary silent: others must not wait for it. */
  lineOf(claim: Claim<R>): unknown {
    return this.#bucketOf(claim) ?? this.#claimedAt.get(claim)
  }

  async #at<T>(claim: Claim<R>, run: (part: LeaseClaims<Tx, R>) => Promise<T>): Promise<T> {
    const bucket = this.#bucketOf(claim)
    const on = async (name: string): Promise<T> => {
      const { alone, claims } = this.#parts.get(name) as Part<Tx, R>
      return await heard(alone, this.#driver.engine, () => run(claims))
    }
    if (bucket === undefined) return await on(this.#claimedFrom(claim))
    return await this.#shards.routed([bucket], on)
  }

  #part(name: string): LeaseClaims<Tx, R> {
    return (this.#parts.get(name) as Part<Tx, R>).claims
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

/** How many rows each is asked for, as equal as can be; of few rows the first ones only. */
function sharesOf<P>(parts: readonly P[], rows: number): (readonly [part: P, rows: number])[] {
  const [each, over] = [Math.floor(rows / parts.length), rows % parts.length]
  return parts
    .map((part, at) => [part, each + (at < over ? 1 : 0)] as const)
    .filter(([, share]) => share > 0)
}
