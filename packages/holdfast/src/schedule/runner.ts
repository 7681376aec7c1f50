import { pause } from '../core/backoff.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import type { ScheduleTrouble } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { endedInTime, type StopOptions, type Stopped } from '../core/options/stopping.ts'
import type { Attempts, Halt, TickOutcome, WantedTick } from './attempt.ts'
import { type DueTicks, dueTicks } from './due-ticks.ts'
import type { Look, TickBoard } from './engine.ts'
import type { Settings } from './options.ts'
import type { Rule } from './rule.ts'

/** A schedule that is running in this process. */
export interface RunningSchedule {
  /**
   * Takes no further tick; resolves when handlers that are at work have ended. After `within` their
   * signal is aborted with `SCHEDULE_STOPPED`; one that rejects has failed, and is tried again as any
   * other. Those that do not heed it are left after `leaveAfter`: their ticks are not kept for them any
   * longer, and under `at-least-once` somebody else takes them over when the lease is over.
   */
  stop(options?: StopOptions): Promise<Stopped>
}

/** Looks that often even if nothing is due, to notice a clock that was set or a process that slept. */
const longestSleepMs = 60_000
/** How long those wait who found the schedule locked; at random, so that they do not come together. */
const busyMs = { least: 50, most: 500 }
/** After these the next tick is not begun in the same round. */
const halting: ReadonlySet<TickOutcome['outcome']> = new Set(['busy', 'paused', 'unknown'])
/** So many in a row are no hiccup. */
const manyTroubles = 5
const troubleMs = { first: 200, most: 15_000 }

/** What one look at a schedule led to. */
export interface Round {
  readonly outcomes: readonly TickOutcome[]
  /** When there may be something to do again; 0 if there is right now. */
  readonly sleepMs: number
  /** When the next tick is due. */
  readonly nextInMs: number | undefined
  /** From the next tick to the one after it. */
  gapMs(): number
}

/** A tick by its scheduled instant. */
type DueTick = WantedTick & { readonly atUs: number }

/** Does what is due, one tick at a time, in one process among many. */
export class Runner<Tx> {
  readonly #board: TickBoard<Tx>
  readonly #attempts: Attempts<Tx>
  readonly #settings: Settings<Tx>
  readonly #rule: Rule
  /** Handlers that were not waited for: overlap is allowed. */
  readonly #atWork = new Set<Promise<unknown>>()
  /** Of one that runs in the background; who fires a tick waits for it. */
  #halt: Halt | undefined

  constructor(board: TickBoard<Tx>, attempts: Attempts<Tx>, settings: Settings<Tx>, rule: Rule) {
    this.#board = board
    this.#attempts = attempts
    this.#settings = settings
    this.#rule = rule
  }

  start(): RunningSchedule {
    const stopping = new AbortController()
    const [told, left] = [new AbortController(), new AbortController()]
    this.#halt = { told: told.signal, left: left.signal }
    const ended = this.#loop(stopping.signal).then(() => this.settled())
    return {
      stop: async (options = {}) => {
        stopping.abort()
        const reason = holdfastError('SCHEDULE_STOPPED', {
          details: { subject: this.#settings.name },
        })
        if (await endedInTime(ended, options, () => told.abort(reason))) return { left: 0 }
        left.abort()
        this.#trouble(reason, 0)
        // With no handler at work, it is a statement of ours that has no answer.
        return { left: Math.max(1, this.#attempts.atWork) }
      },
    }
  }

  #trouble(error: unknown, retryInMs: number): void {
    const trouble: ScheduleTrouble = { schedule: this.#settings.name, error, retryInMs }
    publish(channels.scheduleTrouble, trouble)
  }

  /** A schedule that cannot run does not throw to anybody. */
  #warn(error: unknown): void {
    const said = isHoldfastError(error) ? error.message : 'see the channel of schedules for why'
    process.emitWarning(`schedule ${this.#settings.name} cannot run: ${said}`, {
      code: 'HOLDFAST_SCHEDULE_TROUBLE',
    })
  }

  /** Resolves when handlers that were not waited for have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#atWork)
  }

  async #loop(signal: AbortSignal): Promise<void> {
    let troubles = 0
    let isSaid = false
    while (!signal.aborted) {
      let sleepMs: number
      try {
        sleepMs = (await this.round(signal)).sleepMs
        troubles = 0
        isSaid = false
      } catch (error) {
        sleepMs = Math.min(troubleMs.most, troubleMs.first * 2 ** troubles)
        troubles += 1
        this.#trouble(error, sleepMs)
        if (!isSaid && (troubles >= manyTroubles || isLasting(error))) {
          isSaid = true
          this.#warn(error)
        }
      }
      if (sleepMs > 0) await pause(sleepMs, signal).catch(() => undefined)
    }
  }

  /** Looks once and runs what is due, one after the other. */
  async round(signal?: AbortSignal): Promise<Round> {
    const outcomes: TickOutcome[] = []
    const { name, graceMs, ruleText } = this.#settings
    const look = await this.#board.look(name, false)
    if (look.rule !== ruleText) await this.#board.note(name, ruleText)
    const nowMs = look.nowUs / 1_000
    const lastMs = look.lastUs === undefined ? nowMs - graceMs : look.lastUs / 1_000
    const due = dueTicks({ ...this.#settings, rule: this.#rule }, lastMs, nowMs)
    const owed = owedOf(look)
    const nextInMs = due.nextMs === undefined ? undefined : due.nextMs - nowMs
    let again = false
    if (owed !== undefined) {
      again = this.#note(outcomes, await this.#run({ atUs: owed.atUs, manual: owed.manual }))
    } else if (!look.paused) {
      again = await this.#runDue(due, look.lastUs, outcomes, signal)
    }
    const gapMs = (): number => {
      const nextMs = this.#rule.next(nowMs) ?? nowMs
      return (this.#rule.next(nextMs) ?? Number.POSITIVE_INFINITY) - nextMs
    }
    return { outcomes, nextInMs, gapMs, sleepMs: sleepOf(look, due, outcomes, again) }
  }

  /** True if there may be more to do at once. */
  async #runDue(
    { run, passed }: DueTicks,
    lastUs: number | undefined,
    outcomes: TickOutcome[],
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (run.length === 0 && passed !== undefined) {
      const outcome = await this.#attempts.run({
        atUs: passed.atMs * 1_000,
        manual: false,
        missed: passed.count - 1,
        pass: true,
        afterUs: lastUs,
      })
      return 'outcome' in outcome && this.#note(outcomes, outcome)
    }
    let afterUs = lastUs
    for (const [index, tickMs] of run.entries()) {
      if (signal?.aborted === true) return false
      const missed = index === 0 ? (passed?.count ?? 0) : 0
      const atUs = tickMs * 1_000
      if (!this.#note(outcomes, await this.#run({ atUs, manual: false, missed, afterUs }))) {
        return false
      }
      afterUs = atUs
    }
    return run.length > 0
  }

  /** With overlap allowed, in the background: the next tick does not wait for this one. */
  async #run(wanted: DueTick): Promise<TickOutcome | undefined> {
    const { atUs } = wanted
    const running = this.#attempts.run(wanted, this.#halt)
    if (this.#settings.overlap !== 'allow') return this.#outcomeOf(await running, atUs)
    const settled = running.catch((error: unknown) => this.#trouble(error, 0))
    this.#atWork.add(settled)
    void settled.finally(() => this.#atWork.delete(settled))
    // Once it is taken it shows in the database; until then nobody else need hurry.
    const quick = await Promise.race([settled, pause(busyMs.least, undefined)])
    return quick === undefined ? undefined : this.#outcomeOf(quick, atUs)
  }

  /** The tick was worked out from the database's own clock: if it is early, that was set back. */
  #outcomeOf(outcome: Awaited<ReturnType<Attempts<Tx>['run']>>, atUs: number): TickOutcome {
    if ('outcome' in outcome) return outcome
    const { name } = this.#settings
    return {
      schedule: name,
      outcome: 'busy',
      at: new Date(atUs / 1_000),
      manual: false,
      attempt: 0,
    }
  }

  /**
   * True unless it has to be left alone for a while. Whether one ran that nobody knows of shows at the next
   * look; a later tick taken before that would pass over it for good.
   */
  #note(outcomes: TickOutcome[], outcome: TickOutcome | undefined): boolean {
    if (outcome === undefined) return true
    outcomes.push(outcome)
    return !halting.has(outcome.outcome)
  }
}

/** An attempt that ended without a result, and whose time to be tried again has come. */
function owedOf({ open, nowUs, paused }: Look): Look['open'] {
  if (open === undefined || open.untilUs > nowUs) return undefined
  return paused && !open.manual ? undefined : open
}

function sleepOf(
  { nowUs, open }: Look,
  { nextMs }: DueTicks,
  outcomes: readonly TickOutcome[],
  again: boolean,
): number {
  if (outcomes.some(({ outcome }) => outcome === 'busy' || outcome === 'unknown')) {
    return busyMs.least + Math.random() * (busyMs.most - busyMs.least)
  }
  if (again) return 0
  const nowMs = nowUs / 1_000
  const moments = [nowMs + longestSleepMs, nextMs ?? Number.POSITIVE_INFINITY]
  if (open !== undefined && open.untilUs > nowUs) moments.push(open.untilUs / 1_000)
  return Math.max(1, Math.ceil(Math.min(...moments) - nowMs))
}

/** It does not pass by itself, as a missing schema does not. */
function isLasting(error: unknown): boolean {
  return isHoldfastError(error) && !error.retryable
}
