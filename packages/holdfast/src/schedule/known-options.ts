import type { KnownOptions } from '../core/known-options.ts'
import { resolveOptions } from '../tx/known-options.ts'
import type { ScheduleRoomOptions, TickHistoryOptions } from './index.ts'
import type { AtLeastOnce, AtMostOnce, CommonOptions, Transactional } from './options.ts'
import type { CronHandlerOptions } from './platform.ts'
import type { When } from './rule.ts'

export const scheduleRoomOptions: KnownOptions<ScheduleRoomOptions> = {
  ...resolveOptions,
  schema: 'text',
}

const commonOptions: KnownOptions<CommonOptions & When> = {
  name: 'checked',
  missed: 'checked',
  grace: 'checked',
  jitter: 'checked',
  wait: 'checked',
  keep: 'checked',
  holder: 'checked',
  cron: 'checked',
  timeZone: 'checked',
  every: 'checked',
}

export const atMostOnceOptions: KnownOptions<CommonOptions & When & AtMostOnce<never>> = {
  ...commonOptions,
  guarantee: 'checked',
  overlap: 'checked',
  lease: 'checked',
  handler: 'function',
}

export const atLeastOnceOptions: KnownOptions<CommonOptions & When & AtLeastOnce<never>> = {
  ...atMostOnceOptions,
  attempts: 'checked',
  retryAfter: 'checked',
}

export const transactionalOptions: KnownOptions<CommonOptions & When & Transactional<never>> = {
  ...commonOptions,
  guarantee: 'checked',
  overlap: 'checked',
  attempts: 'checked',
  retryAfter: 'checked',
  deadline: 'checked',
  handler: 'function',
}

export const tickHistoryOptions: KnownOptions<TickHistoryOptions> = {
  limit: 'checked',
}

export const cronHandlerOptions: KnownOptions<CronHandlerOptions<never>> = {
  scheduledAt: 'function',
}
