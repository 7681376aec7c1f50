import { errorText } from '../core/errors/error-text.ts'
import { randomUUID } from 'node:crypto'
import { fullJitterMs } from '../core/backoff.ts'
import type { Driver } from '../core/driver.ts'
import { isHoldfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { handlerPlacesOf } from '../core/handler-places.ts'
import { type Span, traced } from '../core/events/tracing.ts'
import { runTransaction } from '../tx/run.ts'
import type {
  ClaimAnswer,
  FinishAnswer,
  TickBoard,
  TickClaim,
  TickFailure,
  TickKey,
} from './engine.ts'
import type { LeasedTick, Settings, Tick, Transactional } from './options.ts'
import { keepTick } from './tick-lease.ts'

/** As long as a pool is waited for. */
const placeMs = 30_000

/**
 * What became of a tick.
 *
 * | outcome | meaning |
 * | --- | --- |
 * | `done` | the handler ran here and succeeded |
 * | `waiting` | it failed here and will be tried again |
 * | `failed` | it failed here, for the last time |
 * | `lost` | its process died or fell silent, and it is not tried again; or it was taken from us |
 * | `skipped` | dropped: another one was at work, or it was missed |
 * | `taken` | somebody else has or had it |
 * | `passed` | a later one was taken before |
 * | `busy` | another one is at work right now; this one stays due |
 * | `paused` | the schedule is paused |
 * | `unknown` | the connection was lost while it committed; the database knows, and will not repeat it |
 */
export interface TickOutcome {
  readonly schedule: string
  readonly outcome: FinishAnswer | Exclude<ClaimAnswer['kind'], 'claimed' | 'early'> | 'unknown'
  /** The scheduled instant; `undefined` of a `runNow` that did not run. */
  readonly at: Date | undefined
  readonly manual: boolean
  /** 0 if the handler did not run here. */
  readonly attempt: number
  /** What the handler threw, or what made the attempt fail. */
  readonly error?: unknown
}

/** Which tick is wanted, and how. */
export interface WantedTick {
  /** `undefined`: now, by hand. */
  readonly atUs: number | undefined
  readonly manual: boolean
  /** Ticks before it that nobody took. */
  readonly missed?: number
  /** Pass over it instead. */
  readonly pass?: boolean
  /** The tick before it that was seen taken: a server without that one has to be looked at again. */
  readonly afterUs?: number | undefined
}

/** How those who run ticks in the background are stopped. */
export interface Halt {
  /** Handlers are told to stop. */
  readonly told: AbortSignal
  /** Nobody waits for them any longer: their ticks are not kept for them. */
  readonly left: AbortSignal
}

const longestPauseMs = 300_000
const longestError = 1_000

/** How late a handler began, once it has. */
interface Late {
  ms: number
}

type Early = Extract<ClaimAnswer, { kind: 'early' }>
type Claimed = Extract<ClaimAnswer, { kind: 'claimed' }>

/** Takes a tick and runs its handler, under the guarantee that the schedule was given. */
export class Attempts<Tx> {
  readonly #driver: Driver<Tx>
  readonly #board: TickBoard<Tx>
  readonly #settings: Settings<Tx>
  #atWork = 0

  constructor(driver: Driver<Tx>, board: TickBoard<Tx>, settings: Settings<Tx>) {
    this.#driver = driver
    this.#board = board
    this.#settings = settings
  }

  /** Handlers that are running. */
  get atWork(): number {
    return this.#atWork
  }

  /** `early` if the database's clock has not come that far. Rejects if the database cannot be asked. */
  async run(wanted: WantedTick, halt?: Halt): Promise<TickOutcome | Early> {
    const { name } = this.#settings
    const subject = () => ({ target: name, attributes: { 'holdfast.schedule': name } })
    return await traced('tick', subject, (span) => this.#told(wanted, halt, span))
  }

  async #told(
    wanted: WantedTick,
    halt: Halt | undefined,
    span: Span | undefined,
  ): Promise<TickOutcome | Early> {
    const { work } = this.#settings
    const began = performance.now()
    const late: Late = { ms: 0 }
    const outcome =
      work.guarantee === 'transactional' && wanted.pass !== true
        ? await this.#leavingRoom(halt, () => this.#transactional(work, wanted, late, halt))
        : await this.#leased(wanted, late, halt)
    if (!('outcome' in outcome)) return outcome
    span?.set({ 'holdfast.outcome': outcome.outcome })
    if (outcome.error !== undefined) span?.fail(outcome.error)
    const { scheduleTick } = channels
    if (scheduleTick.hasSubscribers && told.has(outcome.outcome)) {
      const durationMs = performance.now() - began
      scheduleTick.publish({ ...outcome, lateMs: late.ms, durationMs })
    }
    return outcome
  }

  async #leased(
    wanted: WantedTick,
    late: Late,
    halt: Halt | undefined,
  ): Promise<TickOutcome | Early> {
    const { work, leaseMs } = this.#settings
    const claim = this.#claimOf(wanted)
    const sentMs = performance.now()
    const claimed = await this.#board.claim(claim)
    if (claimed.kind !== 'claimed') return this.#notTaken(wanted, claimed)
    late.ms = lateMs(claimed)
    const key = keyOf(claim, claimed)
    const lease = keepTick(() => this.#board.renew(key, claim.token, leaseMs), leaseMs, sentMs)
    halt?.left.addEventListener('abort', lease.stop)
    const signal = halt === undefined ? lease.signal : AbortSignal.any([lease.signal, halt.told])
    const tick: LeasedTick<Tx> = {
      ...tickOf(claimed, wanted.manual, signal),
      guard: (tx) => this.#board.guard(tx, key, claim.token),
    }
    let ended: { error?: unknown; failed: boolean } = { failed: false }
    try {
      if (work.guarantee !== 'transactional') await this.#counted(() => work.handler(tick), halt)
    } catch (error) {
      ended = { error, failed: true }
    } finally {
      lease.stop()
      halt?.left.removeEventListener('abort', lease.stop)
    }
    const outcome = await this.#board.finish(
      key,
      claim.token,
      this.#settings.keep,
      ended.failed ? this.#failure(ended.error, claimed.attempt) : {},
    )
    return this.#outcome(outcome, claimed, wanted.manual, ended.error)
  }

  /** A handler in a transaction leaves a connection of the pool to heartbeats and renewals. */
  async #leavingRoom<T>(halt: Halt | undefined, run: () => Promise<T>): Promise<T> {
    const leave = await handlerPlacesOf(this.#driver).take(halt?.told, placeMs)
    try {
      return await run()
    } finally {
      leave()
    }
  }

  async #transactional(
    work: Transactional<Tx>,
    wanted: WantedTick,
    late: Late,
    halt: Halt | undefined,
  ): Promise<TickOutcome | Early> {
    const { deadlineMs, name, keep } = this.#settings
    const claim = this.#claimOf(wanted)
    let claimed: ClaimAnswer | undefined
    try {
      await runTransaction(
        this.#driver,
        async (transaction, { signal }) => {
          claimed = undefined
          claimed = await this.#board.claim(claim, transaction)
          if (claimed.kind !== 'claimed') return
          late.ms = lateMs(claimed)
          const tick = tickOf(claimed, wanted.manual, signal ?? neverAborted)
          await this.#counted(() => work.handler(transaction.native, tick), halt)
          await this.#board.finish(keyOf(claim, claimed), claim.token, keep, {}, transaction)
        },
        // The lock is taken first, so that what the handler reads is younger.
        {
          isolation: 'read committed',
          scopes: [name],
          ...(deadlineMs === undefined ? {} : { deadlineMs }),
          ...(halt === undefined ? {} : { signal: halt.told }),
        },
        undefined,
        'schedule',
      )
    } catch (error) {
      const taken = claimed as ClaimAnswer | undefined
      // Before the tick was ours nothing of it has failed.
      if (taken?.kind !== 'claimed') throw error
      if (isHoldfastError(error, 'COMMIT_UNKNOWN')) {
        return this.#outcome('unknown', taken, wanted.manual, error)
      }
      return await this.#recordFailure(wanted, taken, error)
    }
    const taken = claimed as unknown as ClaimAnswer
    if (taken.kind !== 'claimed') return this.#notTaken(wanted, taken)
    return this.#outcome('done', taken, wanted.manual)
  }

  async #counted(handler: () => unknown, halt: Halt | undefined): Promise<void> {
    // Taken by a call that was under way when the schedule was stopped.
    halt?.told.throwIfAborted()
    this.#atWork += 1
    try {
      await handler()
    } finally {
      this.#atWork -= 1
    }
  }

  /**
   * Rolled back, the attempt left no trace: it is counted in a transaction of its own. In one, because a
   * tick that was taken for it and not finished would keep the others waiting for a whole lease.
   */
  async #recordFailure(
    wanted: WantedTick,
    { atUs }: Claimed,
    error: unknown,
  ): Promise<TickOutcome | Early> {
    const { name, keep } = this.#settings
    const claim = this.#claimOf({ ...wanted, atUs })
    return await runTransaction(
      this.#driver,
      async (transaction) => {
        const claimed = await this.#board.claim(claim, transaction)
        // Somebody else was faster and is trying it again already.
        if (claimed.kind !== 'claimed') return { ...this.#notTaken(wanted, claimed), error }
        const failure = this.#failure(error, claimed.attempt)
        const key = keyOf(claim, claimed)
        const outcome = await this.#board.finish(key, claim.token, keep, failure, transaction)
        return this.#outcome(outcome, claimed, wanted.manual, error)
      },
      { isolation: 'read committed', scopes: [name] },
      undefined,
      'schedule',
    )
  }

  #claimOf({ atUs, manual, missed = 0, pass = false, afterUs }: WantedTick): TickClaim {
    const { name, holder, leaseMs, overlap, attempts, work } = this.#settings
    return {
      name,
      atUs,
      manual,
      token: randomUUID(),
      holder,
      leaseMs,
      overlap,
      retake: work.guarantee !== 'at-most-once',
      most: attempts,
      missed,
      run: !pass,
      afterUs,
    }
  }

  #failure(error: unknown, attempt: number): TickFailure {
    const { attempts, retryAfterMs } = this.#settings
    const capMs = Math.min(longestPauseMs, retryAfterMs * 2 ** (attempt - 1))
    return {
      error: errorText(error, longestError, { named: true }),
      // Half of it for sure, the rest by chance: others may have failed at the same moment.
      retryMs:
        attempt < attempts
          ? Math.ceil(capMs / 2 + fullJitterMs(1, capMs / 2, capMs / 2))
          : undefined,
    }
  }

  #notTaken(
    { atUs, manual }: WantedTick,
    answer: Exclude<ClaimAnswer, Claimed>,
  ): TickOutcome | Early {
    if (answer.kind === 'early') return answer
    return {
      schedule: this.#settings.name,
      outcome: answer.kind,
      at: atUs === undefined ? undefined : new Date(atUs / 1_000),
      manual,
      attempt: 0,
    }
  }

  #outcome(
    outcome: TickOutcome['outcome'],
    { atUs, attempt }: Claimed,
    manual: boolean,
    error?: unknown,
  ): TickOutcome {
    return {
      schedule: this.#settings.name,
      outcome,
      at: new Date(atUs / 1_000),
      manual,
      attempt,
      ...(error === undefined ? {} : { error }),
    }
  }
}

/** Outcomes that are news; the others are what happens at every tick to those who come second. */
const told: ReadonlySet<TickOutcome['outcome']> = new Set([
  'done',
  'waiting',
  'failed',
  'lost',
  'skipped',
  'unknown',
])

const neverAborted = new AbortController().signal

function keyOf({ name, manual }: TickClaim, { atUs }: Claimed): TickKey {
  return { name, atUs, manual }
}

function lateMs({ atUs, nowUs }: Claimed): number {
  return (nowUs - atUs) / 1_000
}

function tickOf(claimed: Claimed, manual: boolean, signal: AbortSignal): Tick {
  return {
    at: new Date(claimed.atUs / 1_000),
    attempt: claimed.attempt,
    lateMs: lateMs(claimed),
    manual,
    signal,
  }
}
