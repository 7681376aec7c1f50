import { fullJitterMs, pause } from '../core/backoff.ts'
import type { Driver, Executor } from '../core/driver.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { checkedStatement, readShards, shardRefusal } from '../engines/postgres/shards.ts'
import { bucketsOf, type Scope } from '../core/bucket.ts'
import { answerOf, schemaMissing } from '../tx/call-function.ts'
import { ShardMap, type ShardReading } from './shard-map.ts'

/** The server would not do it, because of where the buckets are. Nothing was done. */
export class ShardRefusal extends Error {
  readonly reason: 'elsewhere' | 'moving'

  constructor(reason: 'elsewhere' | 'moving', cause: unknown) {
    super(`the server says that a bucket is ${reason}`, { cause })
    this.reason = reason
  }

  /** For who cannot be sent elsewhere. */
  get typed(): Error {
    const code: ErrorCode = this.reason === 'moving' ? 'SHARD_MOVING' : 'SHARD_ELSEWHERE'
    return holdfastError(code, { cause: this.cause })
  }
}

/** An error of the server as the refusal that it is, anything else as it came. */
export function refusalOr(error: unknown): unknown {
  const reason = shardRefusal(error)
  return reason === undefined ? error : new ShardRefusal(reason, error)
}

/** Pauses between two looks at a bucket that is on its way. */
const pauseMs = { first: 10, most: 250 }

/** Sends work to the primary that has its buckets, and again when they have moved. */
export class Routing<Tx> {
  readonly #primaries: ReadonlyMap<string, Driver<Tx>>
  readonly #executors: ReadonlyMap<string, Executor>
  readonly #schema: string
  readonly #waitMs: number
  readonly #map = new ShardMap()
  #known = false
  #reading: Promise<void> | undefined

  constructor(primaries: ReadonlyMap<string, Driver<Tx>>, schema: string, waitMs: number) {
    this.#primaries = primaries
    this.#schema = schema
    this.#waitMs = waitMs
    this.#executors = new Map(
      [...primaries].map(([name, { alone }]) => [name, this.#checked(alone)]),
    )
  }

  /** Statements on their own, on this primary; those with scopes are checked there. */
  at(primary: string): Executor {
    return this.#executors.get(primary) as Executor
  }

  /** Where these are believed to be, if all of them are on one primary. */
  guess(scopes: readonly Scope[]): string | undefined {
    const place = this.#map.placeOf(bucketsOf(scopes))
    return place.kind === 'at' ? place.primary : undefined
  }

  /** See `Shards.routed`. */
  async routed<T>(
    scopes: readonly Scope[],
    run: (primary: string, executor: Executor) => Promise<T>,
  ): Promise<T> {
    if (scopes.length === 0) throw holdfastError('SHARD_NO_KEY')
    const buckets = bucketsOf(scopes)
    if (!this.#known) await this.#readAll()
    const place = this.#map.placeOf(buckets)
    if (place.kind === 'at') {
      try {
        return await run(place.primary, this.at(place.primary))
      } catch (error) {
        if (!(error instanceof ShardRefusal)) throw error
      }
    }
    return await this.#afterRefusal(buckets, run)
  }

  /** What was believed turned out to be wrong, or the bucket is on its way. */
  async #afterRefusal<T>(
    buckets: readonly number[],
    run: (primary: string, executor: Executor) => Promise<T>,
  ): Promise<T> {
    const until = performance.now() + this.#waitMs
    for (let attempt = 1; ; attempt += 1) {
      await this.read(buckets)
      const place = this.#map.placeOf(buckets)
      if (place.kind === 'split') throw holdfastError('SHARD_SPLIT')
      let refusal: ShardRefusal | undefined
      if (place.kind === 'at') {
        try {
          return await run(place.primary, this.at(place.primary))
        } catch (error) {
          if (!(error instanceof ShardRefusal)) throw error
          refusal = error
        }
      }
      if (performance.now() >= until) {
        throw (
          refusal?.typed ??
          holdfastError(place.kind === 'unknown' ? 'SHARD_MAP_MISSING' : 'SHARD_MOVING')
        )
      }
      await pause(fullJitterMs(attempt, pauseMs.first, pauseMs.most), undefined)
    }
  }

  /** Asks all primaries about these buckets: the one that is wrong may be the one that is asked. */
  async read(buckets?: readonly number[]): Promise<void> {
    const answers = await Promise.allSettled(
      [...this.#primaries].map(async ([name, { alone }]) => {
        const answer = answerOf(await inTime(alone.query(readShards(this.#schema, buckets))))
        if (answer === null) {
          throw holdfastError('SHARD_MAP_MISSING', { details: { subject: name } })
        }
        this.#map.merge(name, JSON.parse(answer) as ShardReading)
      }),
    )
    const failed = answers.filter((answer) => answer.status === 'rejected')
    // A primary that cannot be reached must not stop what the others have.
    const [error] = failed.map(({ reason }) => reason as unknown)
    const wrong = failed.some(({ reason }) => isAboutTheMap(reason))
    if (wrong || failed.length === answers.length) throw schemaMissing(error) ?? error
  }

  async #readAll(): Promise<void> {
    this.#reading ??= this.read()
      .then(() => {
        this.#known = true
      })
      .finally(() => {
        this.#reading = undefined
      })
    await this.#reading
  }

  #checked(executor: Executor): Executor {
    return {
      query: async (statement) => {
        const { scopes } = statement
        try {
          if (scopes === undefined) return await executor.query(statement)
          return await executor.query(checkedStatement(this.#schema, statement, bucketsOf(scopes)))
        } catch (error) {
          throw refusalOr(error)
        }
      },
    }
  }
}

/** How long a primary may take to say what it has; the others must not wait for one that is silent. */
const readLimitMs = 2_000

async function inTime<T>(asking: Promise<T>): Promise<T> {
  const told = new AbortController()
  const limit = pause(readLimitMs, told.signal).then(() => {
    throw holdfastError('CONNECTION_UNAVAILABLE')
  })
  for (const left of [asking, limit]) left.catch(() => undefined)
  try {
    return await Promise.race([asking, limit])
  } finally {
    told.abort()
  }
}

function isAboutTheMap(error: unknown): boolean {
  return isHoldfastError(error, 'SHARD_MAP_MISSING') || isHoldfastError(error, 'SHARD_MAP_INVALID')
}
