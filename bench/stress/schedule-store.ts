import type { ScheduleOptions } from '../../packages/holdfast/src/schedule/options.ts'
import type { Schedule } from '../../packages/holdfast/src/schedule/schedule.ts'
import { isInnodb } from '../engines/engine.ts'

/** How often one tick of one schedule left something behind. */
export interface TickEffects {
  readonly name: string
  readonly atMs: number
  readonly runs: number
}

/** Schedules and what their ticks leave behind, in words that are the same for all products. */
export interface ScheduleStore<Tx> extends AsyncDisposable {
  prepare(): Promise<void>
  schedule(options: ScheduleOptions<Tx>): Pick<Schedule, 'start'>
  /** In a transaction, or by itself. */
  effect(tx: Tx | undefined, name: string, atMs: number, by: number): Promise<void>
  /** The control: runs the body if a lock that is only tried is free. */
  ifFree(body: (tx: Tx) => Promise<void>): Promise<void>
  /** By the server's clock. */
  nowMs(): Promise<number>
  /** Whether every tick up to then has ended. */
  isSettled(untilMs: number): Promise<boolean>
  effects(): Promise<readonly TickEffects[]>
}

/** Opens at most so many connections. The URL says of which product it is. */
export async function openScheduleStore(
  url: string,
  size: number,
): Promise<ScheduleStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./schedule-innodb.ts')).innodbScheduleStore(url, size)
    : await (await import('./schedule-postgres.ts')).postgresScheduleStore(url, size)
  return opened as ScheduleStore<unknown>
}
