import { type AsyncHook, createHook } from 'node:async_hooks'
import { type FlowIdentity, flowIdentity } from './flow-identity.ts'

/** Longer ones are limits that somebody sets, not pauses that somebody makes. */
const longestPauseMs = 2000

interface Timer {
  hasRef(): boolean
  readonly _idleTimeout: number
  readonly _repeat: number | null
}

/** Pauses that flows make: a retry that waits before it tries again. */
export interface FlowTimers {
  /** The flow pauses: it will go on by itself. */
  pauses(identity: FlowIdentity): boolean
  stop(): void
}

/**
 * Watches the timers that are set by code of a flow. A pause before a statement is to the others the
 * same as a statement that waits at the gate, so it is waited for and not taken for idleness.
 */
export function watchTimers(): FlowTimers {
  const timers = new Map<number, { readonly identity: FlowIdentity; readonly timer: Timer }>()
  const hook: AsyncHook = createHook({
    init(id, type, _, resource) {
      const identity = type === 'Timeout' ? flowIdentity.getStore() : undefined
      if (identity) timers.set(id, { identity, timer: resource as Timer })
    },
    destroy(id) {
      timers.delete(id)
    },
    // Promises are of no interest; to watch them too would cost.
    trackPromises: false,
  })
  hook.enable()

  return {
    pauses: (identity) =>
      [...timers.values()].some(
        ({ identity: owner, timer }) =>
          owner === identity &&
          timer._repeat === null &&
          timer._idleTimeout >= 0 &&
          timer._idleTimeout <= longestPauseMs &&
          timer.hasRef(),
      ),
    stop: () => void hook.disable(),
  }
}
