import { fullJitterMs, pause } from '../core/backoff.ts'
import type { Driver, Executor, Row, Statement } from '../core/driver.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import {
  checkedStatement,
  readShards,
  shardRefusal,
  type ShardRefusalReason,
} from '../engines/postgres/shards/shards.ts'
import { bucketsOf, type Scope } from '../core/bucket.ts'
import { heard } from '../tx/ask-each.ts'
import { answerOf, schemaMissing } from '../engines/postgres/sql/call-function.ts'
import { confirmPrimaries } from './confirm.ts'
import { ShardMap, type ShardReading } from './shard-map.ts'

/** The server would not do it, because of where the buckets are. Nothing was done. */
export class ShardRefusal extends Error {
  readonly reason: ShardRefusalReason

  constructor(reason: ShardRefusalReason, cause: unknown) {
    super(`the server says that a bucket is ${reason}`, { cause })
    this.reason = reason
  }

  get code(): ErrorCode {
    return codes[this.reason]
  }

  /** For who cannot be sent elsewhere. */
  get typed(): Error {
    return holdfastError(this.code, { cause: this.cause })
  }
}

const codes: Readonly<Record<ShardRefusalReason, ErrorCode>> = {
  elsewhere: 'SHARD_ELSEWHERE',
  moving: 'SHARD_MOVING',
  unconfirmed: 'SHARD_UNCONFIRMED',
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

  /** The same, as statements on their own there; nothing if it is not known where, or this process was not told of it. */
  guessed(scopes: readonly Scope[]): Executor | undefined {
    return this.#executors.get(this.guess(scopes) ?? '')
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
    let refusal: ShardRefusal | undefined
    if (place.kind === 'at' && this.#primaries.has(place.primary)) {
      try {
        return await run(place.primary, this.at(place.primary))
      } catch (error) {
        if (!(error instanceof ShardRefusal)) throw error
        refusal = error
      }
    }
    return await this.#afterRefusal(buckets, run, refusal)
  }

  /** What was believed turned out to be wrong, or the bucket is on its way. */
  async #afterRefusal<T>(
    buckets: readonly number[],
    run: (primary: string, executor: Executor) => Promise<T>,
    first: ShardRefusal | undefined,
  ): Promise<T> {
    const until = performance.now() + this.#waitMs
    let refusal = first
    for (let attempt = 1; ; attempt += 1) {
      let isLost = false
      if (refusal?.reason === 'unconfirmed') await this.#readAll()
      else isLost = await this.read(buckets)
      const place = this.#map.placeOf(buckets)
      if (place.kind === 'split') throw holdfastError('SHARD_SPLIT')
      if (place.kind === 'at' && !this.#primaries.has(place.primary)) throw untold(place.primary)
      refusal = undefined
      if (place.kind === 'at') {
        try {
          return await run(place.primary, this.at(place.primary))
        } catch (error) {
          if (!(error instanceof ShardRefusal)) throw error
          refusal = error
        }
      }
      if (performance.now() >= until) {
        // Nobody had it before this was refused: a move that ended meanwhile would have let it through.
        if (isLost && refusal?.reason === 'elsewhere') {
          throw holdfastError('SHARD_BUCKET_LOST', { cause: refusal.cause })
        }
        throw (
          refusal?.typed ??
          holdfastError(place.kind === 'unknown' ? 'SHARD_MAP_MISSING' : 'SHARD_MOVING')
        )
      }
      await pause(fullJitterMs(attempt, pauseMs.first, pauseMs.most), undefined)
    }
  }

  /**
   * Asks all primaries about these buckets: the one that is wrong may be the one that is asked. If it is about all
   * buckets, those that were started since they were last compared with others are told what others have.
   *
   * Answers whether all of them were asked and one of these buckets is at none.
   */
  async read(buckets?: readonly number[]): Promise<boolean> {
    const readings = new Map<string, ShardReading>()
    const answers = await Promise.allSettled(
      [...this.#primaries.keys()].map(async (name) => {
        const answer = answerOf(await this.#ask(name, readShards(this.#schema, buckets)))
        if (answer === null) {
          throw holdfastError('SHARD_MAP_MISSING', { details: { subject: name } })
        }
        const reading = JSON.parse(answer) as ShardReading
        this.#map.merge(name, reading)
        readings.set(name, reading)
      }),
    )
    const isComplete = readings.size === this.#primaries.size
    if (buckets === undefined) {
      await confirmPrimaries(readings, { schema: this.#schema, isComplete }, (name, statement) =>
        this.#ask(name, statement),
      )
    }
    const failed = answers.filter((answer) => answer.status === 'rejected')
    // A primary that cannot be reached must not stop what the others have.
    const [error] = failed.map(({ reason }) => reason as unknown)
    const wrong = failed.some(({ reason }) => isAboutTheMap(reason))
    if (wrong || failed.length === answers.length) throw schemaMissing(error) ?? error
    return isComplete && !areAllHere(buckets ?? [], [...readings.values()])
  }

  async #ask(name: string, statement: Statement): Promise<readonly Row[]> {
    const { alone, engine } = this.#primaries.get(name) as Driver<Tx>
    return await heard(this.at(name), engine, () => alone.query(statement))
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
        const sent =
          scopes === undefined
            ? statement
            : checkedStatement(this.#schema, statement, bucketsOf(scopes))
        try {
          return await executor.query(sent).catch(async (error: unknown) => {
            // Nothing was done.
            if (shardRefusal(error) !== 'unconfirmed') throw error
            await this.#readAll()
            return await executor.query(sent)
          })
        } catch (error) {
          throw refusalOr(error)
        }
      },
    }
  }

  /** The error for a transaction that cannot be sent elsewhere. */
  async named(error: unknown): Promise<unknown> {
    const refusal = refusalOr(error)
    if (!(refusal instanceof ShardRefusal)) return refusal
    // Whoever runs it again must not be refused again.
    if (refusal.reason === 'unconfirmed') await this.#readAll().catch(() => undefined)
    return refusal.typed
  }
}

/** Whether each of these buckets is at one of those who were asked. */
function areAllHere(buckets: readonly number[], readings: readonly ShardReading[]): boolean {
  const found = readings.flatMap(({ map }) =>
    (map ?? []).flatMap(([bucket, , here]) => (here ? [bucket] : [])),
  )
  return buckets.every((bucket) => found.includes(bucket))
}

function untold(primary: string): Error {
  return holdfastError('SHARD_PRIMARY_UNKNOWN', { details: { primary, subject: primary } })
}

function isAboutTheMap(error: unknown): boolean {
  return isHoldfastError(error, 'SHARD_MAP_MISSING') || isHoldfastError(error, 'SHARD_MAP_INVALID')
}
