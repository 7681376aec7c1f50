import type { LockListener } from '../../core/events/lock-listener.ts'
import { bucketOf, latencyBoundsMs } from '../../core/events.ts'

/** Use of the locks of one namespace, as `note_locks` adds it to the minute. */
export interface NamespaceCounts {
  readonly namespace: string
  acquired: number
  timeouts: number
  busy: number
  readonly wait: number[]
  waitMaxMs: number
  readonly hold: number[]
  holdMaxMs: number
}

type Locks = Parameters<LockListener['requested']>[0]

/** More than a server keeps for one minute; what is beyond is counted together. */
const mostNamespaces = 200
/** Where the rest is counted; the server calls it the same. */
const rest = '(other)'

/** Counts how locks are used between two writes. A lock of several keys counts for each of them. */
export class LockCounts {
  readonly #most: number
  #counts = new Map<string, NamespaceCounts>()

  constructor(most: number = mostNamespaces) {
    this.#most = most
  }

  /** All counts since they were last taken. */
  take(): readonly NamespaceCounts[] {
    const taken = [...this.#counts.values()]
    this.#counts = new Map()
    return taken
  }

  /** Puts back what could not be written. */
  addAll(counts: readonly NamespaceCounts[]): void {
    for (const each of counts) {
      const sum = this.#of(each.namespace)
      sum.acquired += each.acquired
      sum.timeouts += each.timeouts
      sum.busy += each.busy
      sum.waitMaxMs = Math.max(sum.waitMaxMs, each.waitMaxMs)
      sum.holdMaxMs = Math.max(sum.holdMaxMs, each.holdMaxMs)
      each.wait.forEach((count, at) => (sum.wait[at] = (sum.wait[at] ?? 0) + count))
      each.hold.forEach((count, at) => (sum.hold[at] = (sum.hold[at] ?? 0) + count))
    }
  }

  acquired(locks: Locks, waitMs: number): void {
    const bucket = bucketOf(waitMs)
    for (const { key } of locks) {
      const sum = this.#of(key.namespace)
      sum.acquired += 1
      this.#waited(sum, bucket, waitMs)
    }
  }

  refused(locks: Locks, why: 'timeout' | 'busy', waitMs: number): void {
    const bucket = bucketOf(waitMs)
    for (const { key } of locks) {
      const sum = this.#of(key.namespace)
      if (why === 'busy') {
        sum.busy += 1
      } else {
        sum.timeouts += 1
        // What ended without a lock was waited for all the same.
        this.#waited(sum, bucket, waitMs)
      }
    }
  }

  released(locks: Locks, heldMs: number): void {
    const bucket = bucketOf(heldMs)
    for (const { key } of locks) {
      const sum = this.#of(key.namespace)
      sum.hold[bucket] = (sum.hold[bucket] as number) + 1
      if (heldMs > sum.holdMaxMs) sum.holdMaxMs = heldMs
    }
  }

  #waited(sum: NamespaceCounts, bucket: number, waitMs: number): void {
    sum.wait[bucket] = (sum.wait[bucket] as number) + 1
    if (waitMs > sum.waitMaxMs) sum.waitMaxMs = waitMs
  }

  #of(namespace: string): NamespaceCounts {
    const known = this.#counts.get(namespace)
    if (known !== undefined) return known
    if (this.#counts.size >= this.#most && namespace !== rest) return this.#of(rest)
    const made: NamespaceCounts = {
      namespace,
      acquired: 0,
      timeouts: 0,
      busy: 0,
      wait: emptyBuckets(),
      waitMaxMs: 0,
      hold: emptyBuckets(),
      holdMaxMs: 0,
    }
    this.#counts.set(namespace, made)
    return made
  }
}

function emptyBuckets(): number[] {
  return Array.from({ length: latencyBoundsMs.length + 1 }, () => 0)
}
