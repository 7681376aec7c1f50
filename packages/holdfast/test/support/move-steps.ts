import type { MoveStep } from '../../src/shards/index.ts'

/** Every step of a move after which something is written down, in order. */
export const untilTaken = [
  'opened',
  'expected',
  'published',
  'kept',
  'cleared',
  'subscribed',
  'copied',
  'marked',
  'quiet',
  'ended',
  'arrived',
  'counted',
] as const satisfies readonly MoveStep[]
export const afterwards = ['taken', 'handed over', 'closed'] as const satisfies readonly MoveStep[]
