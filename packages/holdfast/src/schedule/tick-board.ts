import type { Driver, Transaction } from '../core/driver.ts'
import {
  claimTick,
  finishTick,
  guardTick,
  lookAtSchedule,
  noteSchedule,
  pauseSchedule,
  readTicks,
  renewTick,
  type TickClaim,
  type TickKey,
} from '../engines/postgres/schedule/schedule.ts'
import type { FunctionCall } from '../engines/postgres/sql/function-call.ts'
import { holdfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { askAgain } from '../tx/ask-again.ts'
import { answerOf, callFunction, schemaMissing } from '../engines/postgres/sql/call-function.ts'

/** What the database says about a schedule. Microseconds since 1970. */
export interface Look {
  readonly nowUs: number
  /** The latest tick that was taken or passed over; `undefined` if there was none at all. */
  readonly lastUs: number | undefined
  readonly paused: boolean
  /** The rule that is noted for those who look at the schedule. */
  readonly rule: string | null
  /** The open tick whose lease, or whose pause before another attempt, ends first. */
  readonly open:
    | { readonly atUs: number; readonly manual: boolean; readonly untilUs: number }
    | undefined
}

/** What `claim_tick` answers. */
export type ClaimAnswer =
  | {
      readonly kind: 'claimed'
      readonly attempt: number
      readonly atUs: number
      readonly nowUs: number
    }
  | { readonly kind: 'early'; readonly inMs: number }
  | { readonly kind: 'skipped' | 'lost' | 'busy' | 'taken' | 'passed' | 'paused' }

/** How an attempt ended, by the database's word. */
export type FinishAnswer = 'done' | 'failed' | 'waiting' | 'lost'

/** A tick as `read_ticks` tells it. */
export interface StoredTick {
  readonly at: number
  readonly manual: boolean
  readonly state: number
  readonly attempt: number
  readonly holder: string
  readonly started: number
  readonly finished: number | null
  readonly missed: number
  readonly error: string | null
}

interface StoredLook {
  readonly now: number
  readonly last: number | null
  readonly paused: boolean
  readonly open: number | null
  readonly manual: boolean | null
  readonly until: number | null
  readonly rule: string | null
}

/** Everything a schedule asks the database, each in one round trip. */
export class TickBoard<Tx> {
  readonly #driver: Driver<Tx>
  readonly #schema: string
  readonly #forMs: number

  constructor(driver: Driver<Tx>, schema: string, forMs: number) {
    this.#driver = driver
    this.#schema = schema
    this.#forMs = forMs
  }

  async look(name: string, fromEver: boolean): Promise<Look> {
    const answer = await this.#alone(lookAtSchedule(this.#schema, name, fromEver))
    const { now, last, paused, open, manual, until, rule } = JSON.parse(answer) as StoredLook
    return {
      nowUs: now,
      lastUs: last ?? undefined,
      paused,
      rule,
      open:
        open === null || until === null
          ? undefined
          : { atUs: open, manual: manual === true, untilUs: until },
    }
  }

  /** In `transaction` the tick is taken when that commits, and nobody else gets it until then. */
  async claim(claim: TickClaim, transaction?: Transaction<Tx>): Promise<ClaimAnswer> {
    const call = claimTick(this.#schema, claim)
    const answer = await (transaction === undefined
      ? this.#alone(call)
      : this.#inside(call, transaction))
    const [kind, first, second, third] = answer.split(',')
    if (kind === 'claimed') {
      return { kind, attempt: Number(first), atUs: Number(second), nowUs: Number(third) }
    }
    if (kind === 'early') return { kind, inMs: Math.ceil(Number(first) / 1_000) }
    return { kind: kind as 'busy' }
  }

  async renew(tick: TickKey, token: string, leaseMs: number): Promise<boolean> {
    return (await this.#alone(renewTick(this.#schema, tick, token, leaseMs))) === 'renewed'
  }

  /** @throws SCHEDULE_TICK_LOST, SCHEDULE_OUTSIDE_TRANSACTION */
  async guard(tx: Tx, tick: TickKey, token: string): Promise<void> {
    const call = guardTick(this.#schema, tick, token)
    const answer = await callFunction(this.#driver, tx, call, 'SCHEDULE_OUTSIDE_TRANSACTION')
    if (answer !== 'held') {
      throw holdfastError('SCHEDULE_TICK_LOST', { details: { subject: tick.name } })
    }
  }

  async finish(
    tick: TickKey,
    token: string,
    keep: number,
    { error, retryMs }: { readonly error?: string; readonly retryMs?: number | undefined } = {},
    transaction?: Transaction<Tx>,
  ): Promise<FinishAnswer> {
    const call = finishTick(this.#schema, tick, token, error, retryMs, keep)
    const answer = await (transaction === undefined
      ? this.#alone(call)
      : this.#inside(call, transaction))
    return answer as FinishAnswer
  }

  /** Waits for a tick that is at work in a transaction. @throws SCHEDULE_TIMEOUT */
  async pause(name: string, pause: boolean, limitMs: number): Promise<boolean> {
    try {
      return (await this.#alone(pauseSchedule(this.#schema, name, pause, limitMs))) === 'true'
    } catch (error) {
      if (sqlStateOf(error) !== '55P03') throw error
      throw holdfastError('SCHEDULE_TIMEOUT', { cause: error, details: { subject: name } })
    }
  }

  /** Tells observers when the schedule ticks. */
  async note(name: string, rule: string | null): Promise<void> {
    await this.#alone(noteSchedule(this.#schema, name, rule))
  }

  async ticks(name: string, most: number): Promise<StoredTick[]> {
    return JSON.parse(await this.#alone(readTicks(this.#schema, name, most))) as StoredTick[]
  }

  /** Asked again after a lost connection: the token makes the second answer one to the first. */
  async #alone(call: FunctionCall): Promise<string> {
    const ask = async (): Promise<string> =>
      String(await callFunction(this.#driver, undefined, call, 'SCHEMA_MISSING'))
    return await askAgain(ask, { forMs: this.#forMs })
  }

  async #inside(call: FunctionCall, transaction: Transaction<Tx>): Promise<string> {
    try {
      return String(answerOf(await transaction.query(call.plain)))
    } catch (error) {
      throw schemaMissing(error) ?? error
    }
  }
}
