import type { Driver, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import type {
  TickBoard as Board,
  ClaimAnswer,
  FinishAnswer,
  HistoryTick,
  Look,
  ScheduleEngine,
  TickClaim,
  TickFailure,
  TickKey,
} from '../../../schedule/engine.ts'
import { askAgain } from '../../../tx/ask-again.ts'
import { callFunction, callIn } from '../sql/call-function.ts'
import type { FunctionCall } from '../sql/function-call.ts'
import {
  claimTick,
  finishTick,
  guardTick,
  lookAtSchedule,
  noteSchedule,
  pauseSchedule,
  readTicks,
  renewTick,
} from './schedule.ts'

/** A look as `look_at_schedule` tells it. */
interface StoredLook {
  readonly now: number
  readonly last: number | null
  readonly paused: boolean
  readonly open: number | null
  readonly manual: boolean | null
  readonly until: number | null
  readonly rule: string | null
}

/** A tick as `read_ticks` tells it. */
interface StoredTick {
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

/** By the numbers that `tick` in the database uses. */
const states = ['running', 'waiting', 'done', 'failed', 'lost', 'skipped'] as const
/** By the numbers that `claim_tick` takes. */
const overlaps = ['skip', 'wait', 'allow'] as const

/** Each in one call of a function. */
export class TickBoard<Tx> implements Board<Tx> {
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

  async claim(claim: TickClaim, transaction?: Transaction<Tx>): Promise<ClaimAnswer> {
    const overlap = overlaps.indexOf(claim.overlap)
    const call = claimTick(this.#schema, { ...claim, overlap })
    const answer = String(await this.#call(call, transaction))
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
    { error, retryMs }: TickFailure,
    transaction?: Transaction<Tx>,
  ): Promise<FinishAnswer> {
    const call = finishTick(this.#schema, tick, token, error, retryMs, keep)
    return (await this.#call(call, transaction)) as FinishAnswer
  }

  async pause(name: string, pause: boolean, limitMs: number): Promise<boolean> {
    try {
      return (await this.#alone(pauseSchedule(this.#schema, name, pause, limitMs))) === 'true'
    } catch (error) {
      if (sqlStateOf(error) !== '55P03') throw error
      throw holdfastError('SCHEDULE_TIMEOUT', { cause: error, details: { subject: name } })
    }
  }

  async note(name: string, rule: string | null): Promise<void> {
    await this.#alone(noteSchedule(this.#schema, name, rule))
  }

  async ticks(name: string, most: number): Promise<HistoryTick[]> {
    const answer = await this.#alone(readTicks(this.#schema, name, most))
    return (JSON.parse(answer) as StoredTick[]).map(tickOf)
  }

  #call(call: FunctionCall, transaction: Transaction<Tx> | undefined): Promise<string | null> {
    return transaction === undefined ? this.#alone(call) : callIn(transaction, call)
  }

  async #alone(call: FunctionCall): Promise<string> {
    const ask = async (): Promise<string> =>
      String(await callFunction(this.#driver, undefined, call, 'SCHEMA_MISSING'))
    return await askAgain(ask, { forMs: this.#forMs })
  }
}

function tickOf(stored: StoredTick): HistoryTick {
  return {
    at: new Date(stored.at / 1_000),
    manual: stored.manual,
    state: states[stored.state] ?? 'lost',
    attempts: stored.attempt,
    holder: stored.holder,
    startedAt: new Date(stored.started / 1_000),
    finishedAt: stored.finished === null ? undefined : new Date(stored.finished / 1_000),
    missed: stored.missed,
    error: stored.error ?? undefined,
  }
}

/** PostgreSQL's part of schedules. */
export const postgresSchedules: ScheduleEngine = {
  of: 'postgres',
  board: (driver, schema, forMs) => new TickBoard(driver, schema, forMs),
}
