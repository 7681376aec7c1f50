import type { StoredTick } from './tick-board.ts'

/** What is remembered of a tick. */
export interface HistoryTick {
  readonly at: Date
  readonly manual: boolean
  readonly state: 'running' | 'waiting' | 'done' | 'failed' | 'lost' | 'skipped'
  /** Attempts so far; 0 of one that was skipped. */
  readonly attempts: number
  /** Who made the last one. */
  readonly holder: string
  readonly startedAt: Date
  readonly finishedAt: Date | undefined
  /** Ticks just before this one that nobody took; counted up to a thousand. */
  readonly missed: number
  /** What the last attempt failed with. */
  readonly error: string | undefined
}

/** By the numbers that `tick` in the database uses. */
const states = ['running', 'waiting', 'done', 'failed', 'lost', 'skipped'] as const

export function historyTick(stored: StoredTick): HistoryTick {
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
