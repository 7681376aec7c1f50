import type { Driver, Executor, Row, Transaction } from '../../../core/driver.ts'
import { holdfastError, isHoldfastError } from '../../../core/errors.ts'
import { assertNotNested } from '../../../core/open-transactions.ts'
import type {
  ClaimAnswer,
  FinishAnswer,
  HistoryTick,
  Look,
  ScheduleEngine,
  TickBoard,
  TickClaim,
  TickFailure,
  TickKey,
} from '../../../schedule/engine.ts'
import { affectedBy } from '../driver.ts'
import { dateOf, numberIn } from '../sql/clock.ts'
import { ShortCalls } from '../tx/short-call.ts'
import { takeWriterIn, writerTimeout } from '../tx/taking-writer.ts'
import {
  endTick,
  forgetTicks,
  newSchedule,
  noteRule,
  openTick,
  readSchedule,
  readTick,
  readTicks,
  renewTick,
  setPaused,
  touchTicks,
} from './schedule.ts'
import { takeTickIn } from './take-tick.ts'

/** By the numbers in the column `state`. */
const states = ['running', 'waiting', 'done', 'failed', 'lost', 'skipped'] as const

/** How long a caller's transaction waits for the right to write, unless it has it. */
const withinMs = 10_000

/** Each a short transaction of its own, or a part of the one that is given. */
class FileBoard<Tx> implements TickBoard<Tx> {
  readonly #driver: Driver<Tx>
  readonly #calls: ShortCalls<Tx>
  readonly #forMs: number

  constructor(driver: Driver<Tx>, forMs: number) {
    this.#driver = driver
    this.#calls = new ShortCalls(driver)
    this.#forMs = forMs
  }

  async look(name: string, fromEver: boolean): Promise<Look> {
    assertNotNested(this.#driver)
    let [schedule] = await this.#calls.read(readSchedule(name))
    if (schedule === undefined) {
      await this.#in(undefined, (given) => given.query(newSchedule(name, fromEver)))
      ;[schedule] = await this.#calls.read(readSchedule(name))
    }
    const [open] = await this.#calls.read(openTick(name))
    const atUs = numberIn(open, 'tick_at')
    const rule = schedule?.['rule']
    return {
      nowUs: Number(schedule?.['nowUs']),
      lastUs: numberIn(schedule, 'last_tick') || undefined,
      paused: numberIn(schedule, 'paused_at') !== undefined,
      rule: typeof rule === 'string' ? rule : null,
      open:
        atUs === undefined
          ? undefined
          : { atUs, manual: isManual(open), untilUs: Number(open?.['lease_until']) },
    }
  }

  async claim(claim: TickClaim, transaction?: Transaction<Tx>): Promise<ClaimAnswer> {
    return await this.#in(transaction, (given) => takeTickIn(given, claim))
  }

  async renew(tick: TickKey, token: string, leaseMs: number): Promise<boolean> {
    return await this.#in(
      undefined,
      async (given) => affectedBy(await given.query(renewTick(tick, token, leaseMs))) > 0,
    )
  }

  async guard(tx: Tx, tick: TickKey, token: string): Promise<void> {
    const transaction = this.#driver.join(tx)
    const details = { subject: tick.name }
    const terms = { attempt: false, limitMs: withinMs, names: [tick.name], by: touchTicks }
    await takeWriterIn(this.#driver, transaction, terms, {
      outside: () => holdfastError('SCHEDULE_OUTSIDE_TRANSACTION', { details }),
      ended: (cause, blockers) => writerTimeout(tick.name, cause, blockers),
    })
    const [row] = await this.#calls.within(() => transaction.query(readTick(tick)))
    if (Number(row?.['state']) !== 0 || row?.['token'] !== token)
      throw holdfastError('SCHEDULE_TICK_LOST', { details })
  }

  async finish(
    tick: TickKey,
    token: string,
    keep: number,
    { error, retryMs }: TickFailure,
    transaction?: Transaction<Tx>,
  ): Promise<FinishAnswer> {
    const state = error === undefined ? 2 : retryMs === undefined ? 3 : 1
    return await this.#in(transaction, async (given) => {
      const ending = { state, error, retryMs: retryMs ?? 0 }
      if (affectedBy(await given.query(endTick(tick, token, ending))) === 0) return 'lost'
      await given.query(forgetTicks(tick.name, keep))
      return states[state] as FinishAnswer
    })
  }

  async pause(name: string, pause: boolean, limitMs: number): Promise<boolean> {
    await this.look(name, false)
    const change = async (given: Executor): Promise<boolean> => {
      const [schedule] = await given.query(readSchedule(name))
      if ((numberIn(schedule, 'paused_at') === undefined) !== pause) return false
      await given.query(setPaused(name, pause))
      return true
    }
    try {
      return await this.#calls.write(this.#forMs, change, limitMs)
    } catch (error) {
      if (!isHoldfastError(error, 'LOCK_TIMEOUT')) throw error
      const { blockers } = error
      throw holdfastError('SCHEDULE_TIMEOUT', {
        cause: error,
        details: { subject: name },
        blockers,
      })
    }
  }

  async note(name: string, rule: string | null): Promise<void> {
    await this.#in(undefined, (given) => given.query(noteRule(name, rule)))
  }

  async ticks(name: string, most: number): Promise<HistoryTick[]> {
    assertNotNested(this.#driver)
    return (await this.#calls.read(readTicks(name, most))).map(tickOf)
  }

  /** @throws TX_NESTED */
  async #in<T>(
    given: Transaction<Tx> | undefined,
    run: (transaction: Executor) => Promise<T>,
  ): Promise<T> {
    if (given !== undefined) return await this.#calls.within(() => run(given))
    return await this.#calls.write(this.#forMs, run)
  }
}

function isManual(row: Row | undefined): boolean {
  return numberIn(row, 'by_hand') === 1
}

function tickOf(row: Row): HistoryTick {
  const { state, attempt, holder, missed, error } = row
  return {
    at: new Date(Number(row['tick_at']) / 1_000),
    manual: isManual(row),
    state: states[Number(state)] ?? 'lost',
    attempts: Number(attempt),
    holder: String(holder),
    startedAt: new Date(Number(row['started_at']) / 1_000),
    finishedAt: dateOf(row['finished_at'] ?? 0),
    missed: Number(missed),
    error: typeof error === 'string' ? error : undefined,
  }
}

/** The part of schedules of SQLite. */
export const sqliteSchedules: ScheduleEngine = {
  of: 'sqlite',
  board: (driver, _schema, forMs) => new FileBoard(driver, forMs),
}
