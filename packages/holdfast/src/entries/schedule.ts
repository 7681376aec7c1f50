/** `holdfast/schedule`: schedules whose ticks run once, on PostgreSQL. */
import type { Driver } from '../core/driver.ts'
import { postgresSchedules } from '../engines/postgres/schedule/tick-board.ts'
import type { ScheduleOptions } from '../schedule/options.ts'
import { type Schedule, scheduleOver, type ScheduleRoomOptions } from '../schedule/schedule.ts'

export type { ScheduleTrouble } from '../core/events/event-map.ts'
export type { Stopped, StopOptions } from '../core/options/stopping.ts'
export type { TickOutcome } from '../schedule/attempt.ts'
export type { HistoryTick } from '../schedule/engine.ts'
export {
  type AtLeastOnce,
  type AtMostOnce,
  assertScheduleOptions,
  type LeasedTick,
  type Missed,
  type Overlap,
  type ScheduleOptions,
  type Tick,
  type Transactional,
} from '../schedule/options.ts'
export {
  type CronHandlerOptions,
  type CronRequest,
  cronHandler,
  type FiredByRequest,
  scheduledTimeOf,
} from '../schedule/platform.ts'
export type { When } from '../schedule/rule.ts'
export type { RunningSchedule } from '../schedule/runner.ts'
export type { Schedule, ScheduleRoomOptions, TickHistoryOptions } from '../schedule/schedule.ts'

/** A schedule over a driver. */
export function createSchedule<Tx>(
  driver: Driver<Tx>,
  options: ScheduleOptions<Tx>,
  given: ScheduleRoomOptions = {},
): Schedule {
  return scheduleOver(postgresSchedules, driver, options, given)
}
