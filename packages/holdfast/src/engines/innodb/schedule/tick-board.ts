import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
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
import { isDuplicate, waitEndedBy } from '../errno.ts'
import { rowName } from '../sql/row-name.ts'
import { isOpen, ShortCalls } from '../tx/short-call.ts'
import {
  awaitSchedule,
  endTick,
  forgetTick,
  lockSchedule,
  newSchedule,
  noteRule,
  openTick,
  pastTicks,
  readSchedule,
  readTicks,
  renewTick,
  setPaused,
  shareTick,
} from './schedule.ts'
import { scheduleTables, type ScheduleTexts } from './schedule-tables.ts'
import { numberIn, takeTickIn } from './take-tick.ts'

/** By the numbers in the column `state`. */
const states = ['running', 'waiting', 'done', 'failed', 'lost', 'skipped'] as const

/** Each a short transaction of its own, or a part of the one that is given. */
class RowBoard<Tx> implements TickBoard<Tx> {
  readonly #driver: Driver<Tx>
  readonly #calls: ShortCalls<Tx, keyof typeof scheduleTables>
  readonly #forMs: number

  constructor(driver: Driver<Tx>, database: string | undefined, forMs: number) {
    this.#driver = driver
    this.#calls = new ShortCalls(driver, scheduleTables, database)
    this.#forMs = forMs
  }

  async look(name: string, fromEver: boolean): Promise<Look> {
    const id = rowName(name)
    const read = (): Promise<readonly Row[]> => this.#alone((texts) => readSchedule(texts, id))
    let [schedule] = await read()
    if (schedule === undefined) {
      await this.#create(id, name, fromEver)
      ;[schedule] = await read()
    }
    const [open] = await this.#alone((texts) => openTick(texts, id))
    const atUs = numberIn(open, 'tick_at')
    const rule = schedule?.['rule']
    return {
      nowUs: Number(open?.['nowUs']),
      lastUs: numberIn(schedule, 'last_tick') || undefined,
      paused: numberIn(schedule, 'paused_at') !== undefined,
      rule: typeof rule === 'string' ? rule : null,
      open:
        atUs === undefined
          ? undefined
          : { atUs, manual: isManual(open), untilUs: Number(open?.['lease_until']) },
    }
  }

  /** Whoever is second finds it made. */
  async #create(id: string, name: string, fromEver: boolean): Promise<void> {
    try {
      await this.#alone((texts) => newSchedule(texts, id, name, fromEver))
    } catch (error) {
      if (!isDuplicate(error)) throw error
    }
  }

  async claim(claim: TickClaim, transaction?: Transaction<Tx>): Promise<ClaimAnswer> {
    return await this.#in(transaction, (given, texts) =>
      takeTickIn(given, texts, rowName(claim.name), claim),
    )
  }

  async renew(tick: TickKey, token: string, leaseMs: number): Promise<boolean> {
    const id = rowName(tick.name)
    return affectedBy(await this.#alone((texts) => renewTick(texts, id, tick, token, leaseMs))) > 0
  }

  async guard(tx: Tx, tick: TickKey, token: string): Promise<void> {
    const transaction = this.#driver.join(tx)
    await this.#calls.within(transaction, async (texts) => {
      const [row] = await transaction.query(shareTick(texts, rowName(tick.name), tick))
      const details = { subject: tick.name }
      if (!(await isOpen(transaction)))
        throw holdfastError('SCHEDULE_OUTSIDE_TRANSACTION', { details })
      if (Number(row?.['state']) !== 0 || row?.['token'] !== token)
        throw holdfastError('SCHEDULE_TICK_LOST', { details })
    })
  }

  async finish(
    tick: TickKey,
    token: string,
    keep: number,
    { error, retryMs }: TickFailure,
    transaction?: Transaction<Tx>,
  ): Promise<FinishAnswer> {
    const id = rowName(tick.name)
    const state = error === undefined ? 2 : retryMs === undefined ? 3 : 1
    const ending = { state, error, retryMs: retryMs ?? 0 }
    return await this.#in(transaction, async (given, texts) => {
      const ended = await given.query(endTick(texts, id, tick, token, ending))
      if (affectedBy(ended) === 0) return 'lost'
      for (const past of await given.query(pastTicks(texts, id, keep))) {
        const key = { atUs: Number(past['tick_at']), manual: isManual(past) }
        await given.query(forgetTick(texts, id, key))
      }
      return states[state] as FinishAnswer
    })
  }

  async pause(name: string, pause: boolean, limitMs: number): Promise<boolean> {
    const id = rowName(name)
    await this.look(name, false)
    try {
      return await this.#in(undefined, async (given, texts) => {
        const [schedule] = await given.query(awaitSchedule(texts, id, limitMs))
        if ((numberIn(schedule, 'paused_at') === undefined) !== pause) return false
        await given.query(setPaused(texts, id, pause))
        return true
      })
    } catch (error) {
      if (waitEndedBy(error) === undefined) throw error
      throw holdfastError('SCHEDULE_TIMEOUT', { cause: error, details: { subject: name } })
    }
  }

  async note(name: string, rule: string | null): Promise<void> {
    const id = rowName(name)
    await this.#in(undefined, async (given, texts) => {
      const [schedule] = await given.query(lockSchedule(texts, id))
      // If somebody is at work on it in a transaction, it is left for the next time.
      if (schedule === undefined || schedule['rule'] === rule) return
      await given.query(noteRule(texts, id, rule))
    })
  }

  async ticks(name: string, most: number): Promise<HistoryTick[]> {
    const rows = await this.#alone((texts) => readTicks(texts, rowName(name), most))
    return rows.map(tickOf)
  }

  /** @throws TX_NESTED */
  async #alone(statement: (texts: ScheduleTexts) => Statement): Promise<readonly Row[]> {
    assertNotNested(this.#driver)
    return await this.#calls.alone(this.#forMs, statement)
  }

  /** @throws TX_NESTED */
  async #in<T>(
    given: Transaction<Tx> | undefined,
    run: (transaction: Transaction<Tx>, texts: ScheduleTexts) => Promise<T>,
  ): Promise<T> {
    if (given !== undefined) return await this.#calls.within(given, (texts) => run(given, texts))
    assertNotNested(this.#driver)
    return await this.#calls.transaction(this.#forMs, run)
  }
}

function isManual(row: Row | undefined): boolean {
  return numberIn(row, 'by_hand') === 1
}

function tickOf(row: Row): HistoryTick {
  const { state, attempt, holder, started_at: started, missed, error } = row
  const finished = numberIn(row, 'finished_at')
  return {
    at: new Date(Number(row['tick_at']) / 1_000),
    manual: isManual(row),
    state: states[Number(state)] ?? 'lost',
    attempts: Number(attempt),
    holder: String(holder),
    startedAt: new Date(Number(started) / 1_000),
    finishedAt: finished === undefined ? undefined : new Date(finished / 1_000),
    missed: Number(missed),
    error: typeof error === 'string' ? error : undefined,
  }
}

/** The part of schedules of MariaDB and MySQL; the tables are in this database, or in that of the connection. */
export function innodbSchedules(database?: string): ScheduleEngine {
  return {
    of: 'innodb',
    board: (driver, _schema, forMs) => new RowBoard(driver, database, forMs),
  }
}
