import { hostname } from 'node:os'
import { pause } from '../core/backoff.ts'
import type { Driver } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { momentText } from '../core/options/moment-text.ts'
import { resolveMs, type ResolveOptions, resolveOptions } from '../tx/ask-again.ts'
import { Attempts, type TickOutcome, type WantedTick } from './attempt.ts'
import type { HistoryTick, ScheduleEngine } from './engine.ts'
import { countOf, type ScheduleOptions, settingsOf } from './options.ts'
import { Runner, type RunningSchedule } from './runner.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Settings of the room. */
export interface ScheduleRoomOptions extends ResolveOptions {
  /** Where its tables are. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** Options of `history`. */
export interface TickHistoryOptions {
  /** @defaultValue 20 */
  readonly limit?: number
}

export const scheduleRoomOptions: KnownOptions<ScheduleRoomOptions> = {
  ...resolveOptions,
  schema: 'text',
}

const tickHistoryOptions: KnownOptions<TickHistoryOptions> = {
  limit: 'checked',
}

/** One schedule, the same in every process that declares it by this name. */
export interface Schedule {
  /**
   * Runs what is due in this process, together with all others that do the same, until stopped, and keeps
   * the process alive. Does what has to be done about ticks that were missed or whose process died.
   *
   * @throws OPTION_INVALID if the schedule has neither `cron` nor `every`
   */
  start(): RunningSchedule
  /**
   * Runs what is due by the database's clock, and resolves when it is over. For timers of somebody else
   * (node-cron, `@nestjs/schedule`), which may be early, late or in many processes at once: one that is
   * early, by up to 30 s and less than half the gap between ticks, waits for its tick. While another tick is
   * at work it waits as long as the schedule's `wait` says, and then tells the tick as `busy`: it stays due.
   *
   * @example cron.schedule('0 3 * * *', nightly.fire)
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  readonly fire: () => Promise<TickOutcome[]>
  /**
   * Runs the tick of a scheduled instant that somebody else decided on: a platform's cron, whose request
   * carries it. An instant between two ticks stands for the earlier one.
   *
   * @throws SCHEDULE_TOO_EARLY, OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  fireAt(at: Date | string | number): Promise<TickOutcome>
  /** Runs the handler now, beside the schedule, also while it is paused. @throws SCHEMA_MISSING, TX_NESTED */
  runNow(): Promise<TickOutcome>
  /**
   * Takes no further ticks, in no process. Resolves when that is so, after a transactional tick that is
   * at work. `false` if it was paused before.
   *
   * @throws SCHEDULE_TIMEOUT if that tick takes longer than the schedule's `wait`
   */
  pause(): Promise<boolean>
  /** Goes on with the next tick; those of the pause are passed over. `false` if it was not paused. */
  resume(): Promise<boolean>
  /** The latest ticks, newest first. */
  history(options?: TickHistoryOptions): Promise<HistoryTick[]>
}

/** How early somebody else's timer may be. */
const earlyMs = 30_000
/** How early a scheduled instant may be by the database's clock; more than that is a mistake. */
const instantEarlyMs = 60_000
const busyMs = { least: 20, most: 200 }
const patienceMs = { tick: 10_000, runNow: 2_000 }

/** A schedule over a driver, whose engine keeps the ticks. */
export function scheduleOver<Tx>(
  engine: ScheduleEngine,
  driver: Driver<Tx>,
  options: ScheduleOptions<Tx>,
  given: ScheduleRoomOptions = {},
): Schedule {
  assertDriver(driver, 'createSchedule', engine.of)
  const { schema = 'holdfast', ...resolving } = optionsGiven(given, scheduleRoomOptions)
  const settings = settingsOf(options, `${hostname()}:${process.pid}`)
  const board = engine.board(driver, schema, resolveMs(resolving))
  const attempts = new Attempts(driver, board, settings)
  const { name, rule, waitMs } = settings
  const runner = (): Runner<Tx> => {
    if (rule !== undefined) return new Runner(board, attempts, settings, rule)
    throw invalid('cron', 'a schedule without cron and every runs by fireAt and runNow')
  }

  /** Somebody may have the schedule locked, for a moment or for as long as a tick takes. */
  const insist = async (wanted: WantedTick, limitMs: number): Promise<TickOutcome> => {
    const untilMs = performance.now() + limitMs
    for (;;) {
      const outcome = await attempts.run(wanted)
      if (!('outcome' in outcome)) {
        if (outcome.inMs > instantEarlyMs) {
          throw holdfastError('SCHEDULE_TOO_EARLY', { details: { subject: name } })
        }
        await pause(outcome.inMs, undefined)
      } else if (outcome.outcome !== 'busy' || performance.now() >= untilMs) {
        return outcome
      } else {
        await pause(Math.min(randomMs(busyMs), untilMs - performance.now()), undefined)
      }
    }
  }

  return {
    start: () => runner().start(),
    async fire() {
      const running = runner()
      const outcomes: TickOutcome[] = []
      const untilMs = performance.now() + (waitMs ?? patienceMs.tick)
      for (let waited = false; ; ) {
        const { outcomes: some, sleepMs, nextInMs, gapMs } = await running.round()
        const busy = some.some(({ outcome }) => outcome === 'busy')
        const leftMs = untilMs - performance.now()
        const last = busy && leftMs <= 0
        outcomes.push(...some.filter(({ outcome }) => last || outcome !== 'busy'))
        if (last) break
        if (busy) await pause(Math.min(sleepMs, leftMs), undefined)
        else if (sleepMs > 0) {
          const soon = nextInMs !== undefined && nextInMs <= Math.min(earlyMs, gapMs() / 2)
          if (waited || outcomes.length > 0 || !soon) break
          waited = true
          await pause(nextInMs, undefined)
        }
      }
      await running.settled()
      return outcomes
    },
    async fireAt(at) {
      const isMoment = at instanceof Date || typeof at === 'string' || typeof at === 'number'
      const instant = new Date(isMoment ? at : NaN)
      momentText(instant, 'at')
      const instantMs = instant.getTime()
      await board.look(name, true)
      const tickMs = rule === undefined ? instantMs : rule.latest(instantMs, 1)[0]
      if (tickMs === undefined) throw invalid('at', 'at is before the first tick')
      return await insist({ atUs: tickMs * 1_000, manual: false }, waitMs ?? patienceMs.tick)
    },
    async runNow() {
      await board.look(name, false)
      return await insist({ atUs: undefined, manual: true }, waitMs ?? patienceMs.runNow)
    },
    pause: () => board.pause(name, true, waitMs ?? patienceMs.tick),
    resume: () => board.pause(name, false, waitMs ?? patienceMs.tick),
    async history(given) {
      const { limit = 20 } = optionsGiven(given, tickHistoryOptions)
      return await board.ticks(name, countOf(limit, 'limit'))
    },
  }
}

function randomMs({ least, most }: { readonly least: number; readonly most: number }): number {
  return least + Math.random() * (most - least)
}

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
