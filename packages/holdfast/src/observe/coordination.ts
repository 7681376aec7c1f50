import { readLeases, readSchedules } from '../engines/postgres/observe/coordination.ts'
import { notedRule, type NotedRule } from '../schedule/rule.ts'
import { ask, lengthText, limitOf, type Looking, withoutNulls } from './answer.ts'
import type { Advice, ObservedLease, ObservedSchedule, ObservedTick } from './model.ts'

export async function observeLeases<Tx>(
  looking: Looking<Tx>,
  { limit = 100 }: { readonly limit?: number } = {},
): Promise<readonly ObservedLease[]> {
  const statement = readLeases(looking.schema, limitOf(limit, 'limit'))
  return (await ask<Tx, ObservedLease[]>(looking, statement)).map(withoutNulls)
}

interface StoredTick extends ObservedTick {
  /** Said to be running, but nobody has renewed its lease. */
  readonly leaseOver: boolean
}

interface StoredSchedule {
  readonly name: string
  readonly rule: string | null
  readonly lastTick: string | null
  readonly paused: boolean
  readonly running: number
  readonly waiting: number
  readonly ticks: readonly StoredTick[]
}

/** Processes look at least this often; who is later has nobody who runs it. */
const patienceMs = 90_000

export async function observeSchedules<Tx>(
  looking: Looking<Tx>,
  { ticks = 10 }: { readonly ticks?: number } = {},
): Promise<readonly ObservedSchedule[]> {
  const statement = readSchedules(looking.schema, limitOf(ticks, 'ticks', 100))
  const { at, schedules } = await ask<
    Tx,
    { readonly at: string; readonly schedules: readonly StoredSchedule[] }
  >(looking, statement)
  return schedules.map((schedule) => scheduleOf(schedule, new Date(at).getTime()))
}

/** One schedule as it was at `nowMs` by the server's clock. */
function scheduleOf(stored: StoredSchedule, nowMs: number): ObservedSchedule {
  const { name, rule: text, lastTick: takenUntil, paused, running, waiting, ticks } = stored
  const known = text === null ? undefined : notedRule(text)
  const nextMs = paused ? undefined : known?.rule.next(nowMs)
  const missedMs =
    known === undefined || takenUntil === null
      ? undefined
      : known.rule.next(new Date(takenUntil).getTime())
  const late =
    missedMs === undefined || paused || running > 0
      ? 0
      : nowMs - missedMs - (known?.noted.jitterMs ?? 0)
  const lateMs = late >= patienceMs ? late : undefined
  return {
    name,
    ...(known === undefined ? {} : { rule: ruleWords(known.noted) }),
    // Not the moment up to which they count as taken: that is its start, or when it was resumed, until there is one.
    ...(ticks[0] === undefined ? {} : { lastTick: ticks[0].at }),
    ...(nextMs === undefined ? {} : { next: new Date(nextMs).toISOString() }),
    ...(lateMs === undefined ? {} : { lateMs }),
    paused,
    running,
    waiting,
    ticks: ticks.map(tickOf),
    advice: [...adviceOnLate(lateMs), ...adviceOnTicks(ticks, lateMs)],
  }
}

function tickOf(stored: StoredTick): ObservedTick {
  const { leaseOver: _, ...tick } = stored
  return withoutNulls(tick)
}

function ruleWords({ cron, timeZone, everyMs }: NotedRule): string {
  return cron === undefined ? `every ${lengthText(everyMs ?? 0)}` : `cron ${cron} (${timeZone})`
}

function adviceOnLate(lateMs: number | undefined): Advice[] {
  if (lateMs === undefined) return []
  return [
    {
      code: 'schedule-late',
      what: `A tick was due ${lengthText(lateMs)} ago and is not done: no process runs the schedule, or a transactional tick is still at work.`,
      fix: 'Start it in a process that stays alive, or check the platform that fires it.',
    },
  ]
}

function adviceOnTicks(ticks: readonly StoredTick[], lateMs: number | undefined): Advice[] {
  const [latest] = ticks.filter(({ state }) => state !== 'skipped')
  const over = ticks.some(({ leaseOver }) => leaseOver)
  const advice: Advice[] = []
  if (over && lateMs === undefined) {
    advice.push({
      code: 'schedule-late',
      what: 'A tick is said to be running, but its process has not renewed its lease.',
      fix: 'Look whether its process is alive; another one takes the tick over when it looks next.',
    })
  }
  if (latest?.state === 'failed' || latest?.state === 'lost') {
    advice.push({
      code: 'schedule-failed',
      what: `The latest tick ${latest.state === 'lost' ? 'was lost with its process' : 'failed for the last time'}.`,
      fix: 'Read its error and fix the handler, then run the schedule by hand if the tick is still wanted.',
    })
  }
  return advice
}
