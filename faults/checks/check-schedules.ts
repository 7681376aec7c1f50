import type { Violation } from '../core/model.ts'
import { grouped, type Operation } from '../history/operations-of.ts'
import { Findings } from './findings.ts'

export interface TickRow {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly state: string
}

export interface TickEffect {
  readonly tick: number
}

export interface ScheduleState {
  /** Up to where ticks were taken; nothing if none was. */
  readonly lastTick: number | undefined
  readonly everyMs: number
  readonly ticks: readonly TickRow[]
  readonly effects: readonly TickEffect[]
}

/** Transactional ticks: every one that was due has its effect, once, unless it is still to come. */
export function checkSchedules(
  operations: readonly Operation[],
  { lastTick, everyMs, ticks, effects }: ScheduleState,
): Violation[] {
  const findings = new Findings('schedules')
  const times = new Map(
    [...grouped(effects, ({ tick }) => String(tick))].map(([tick, some]) => [
      Number(tick),
      some.length,
    ]),
  )
  for (const [tick, count] of times) {
    if (count > 1) findings.add('applied_twice', `the tick of ${textOf(tick)} ran ${count} times`)
  }
  for (const { outcome, answered, attempt } of operations) {
    if (outcome !== 'ok' && outcome !== 'refused') continue
    for (const told of answered as readonly { readonly at?: string; readonly outcome: string }[]) {
      const tick = Date.parse(told.at ?? '')
      if (told.outcome === 'done' && !times.has(tick)) {
        findings.add('acknowledged_lost', `${attempt} was told that the tick of ${told.at} is done`)
      }
    }
  }
  const open = new Set(
    ticks.filter(({ state }) => state === 'running' || state === 'waiting').map(({ at }) => at),
  )
  const first = Math.min(...times.keys())
  for (let tick = first; tick <= (lastTick ?? 0); tick += everyMs) {
    if (!times.has(tick) && !open.has(tick)) {
      findings.add('tick_lost', `the tick of ${textOf(tick)} was due and has left nothing`)
    }
    if (times.has(tick) && open.has(tick)) {
      findings.add('torn', `the tick of ${textOf(tick)} has its effect and is to run again`)
    }
  }
  return findings.violations
}

function textOf(tick: number): string {
  return new Date(tick).toISOString()
}
