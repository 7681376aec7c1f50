import type { Blocker, LockRequestedEvent } from '../core/events/event-map.ts'
import { channels } from '../core/events.ts'
import type { LockMemory } from '../core/locks/lock-memory.ts'
import type { WantedLock } from '../core/locks/wanted-lock.ts'
import type { LockAnswer } from './engine.ts'

const { lockRequested, lockAcquired, lockReleased, lockTimeout, lockBusy, lockFailed } = channels

/**
 * Tells how one acquisition goes: on channels, and to who counts. Where nobody listens nothing is measured
 * and nothing made.
 */
export class LockEvents {
  readonly #locks: readonly WantedLock[]
  readonly #memory: LockMemory
  #about: LockRequestedEvent | undefined
  /** Undefined if nobody listened when it began: then there is no wait to tell. */
  #began: number | undefined
  #granted: number | undefined
  /** Requested, and the end of it not told yet. */
  #isOpen = false

  constructor(locks: readonly WantedLock[], memory: LockMemory) {
    this.#locks = locks
    this.#memory = memory
  }

  get names(): readonly string[] {
    return this.#of().names
  }

  /** How long it has been waiting; 0 if nobody wants to know. */
  get waitedMs(): number {
    return this.#began === undefined ? 0 : performance.now() - this.#began
  }

  /** Does nothing in a request that is already under way: a wait may begin before there is a connection. */
  requested(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    const { listener } = this.#memory
    this.#granted = undefined
    this.#began = listener !== undefined || isHeard() ? performance.now() : undefined
    if (this.#began !== undefined) listener?.requested(this.#locks, this.#began)
    if (lockRequested.hasSubscribers) lockRequested.publish(this.#of())
  }

  acquired({ granted, pid }: LockAnswer): void {
    this.#isOpen = false
    const { listener } = this.#memory
    const began = this.#began
    if (began !== undefined || lockReleased.hasSubscribers) this.#granted = performance.now()
    if (began === undefined || this.#granted === undefined) return
    const waitMs = this.#granted - began
    listener?.acquired(this.#locks, waitMs)
    if (!lockAcquired.hasSubscribers) return
    const { names, locks } = this.#of()
    lockAcquired.publish({ names, pid, locks, granted, waitMs })
  }

  /** Told once, when the transaction is over. */
  released(pid: number): void {
    if (this.#granted === undefined) return
    const heldMs = performance.now() - this.#granted
    this.#granted = undefined
    this.#memory.listener?.released(this.#locks, heldMs)
    if (lockReleased.hasSubscribers) lockReleased.publish({ ...this.#of(), pid, heldMs })
  }

  /** `waitMs` is from before the blockers were looked for. */
  timeout(waitMs: number, blockers: readonly Blocker[]): void {
    this.#isOpen = false
    if (this.#began === undefined) return
    this.#memory.listener?.refused(this.#locks, 'timeout', waitMs)
    if (lockTimeout.hasSubscribers) lockTimeout.publish({ ...this.#of(), waitMs, blockers })
  }

  busy(): void {
    this.#isOpen = false
    if (this.#began === undefined) return
    const waitMs = this.waitedMs
    this.#memory.listener?.refused(this.#locks, 'busy', waitMs)
    if (lockBusy.hasSubscribers) lockBusy.publish({ ...this.#of(), waitMs })
  }

  /** Does nothing if its end was told in another way. */
  failed(error: unknown): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#began === undefined) return
    this.#memory.listener?.failed(this.#locks)
    if (!lockFailed.hasSubscribers) return
    lockFailed.publish({ ...this.#of(), waitMs: this.waitedMs, error })
  }

  #of(): LockRequestedEvent {
    const locks = this.#locks
    return (this.#about ??= { names: locks.map(({ key }) => key.name), locks })
  }
}

function isHeard(): boolean {
  return (
    lockAcquired.hasSubscribers ||
    lockRequested.hasSubscribers ||
    lockTimeout.hasSubscribers ||
    lockBusy.hasSubscribers ||
    lockFailed.hasSubscribers
  )
}
