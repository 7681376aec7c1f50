import { channels } from '../core/events.ts'

const { onceRan, onceReplayed, onceRefused } = channels

/** Tells what became of a call, given the arguments of `once` with or without a transaction. */
export function tellOnce(
  outcome: 'ran' | 'replayed' | 'mismatch' | 'in-progress',
  args: readonly unknown[],
  began: number,
): void {
  const to = outcome === 'ran' ? onceRan : outcome === 'replayed' ? onceReplayed : onceRefused
  if (!to.hasSubscribers) return
  const joined = typeof args[1] !== 'function'
  const key = String(args[joined ? 1 : 0])
  const { scope = key } = (args[joined ? 3 : 2] ?? {}) as { readonly scope?: string }
  const about = { key, scope, durationMs: performance.now() - began, joined }
  to.publish(outcome === 'ran' || outcome === 'replayed' ? about : { ...about, reason: outcome })
}
