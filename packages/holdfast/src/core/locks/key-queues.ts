import type { Executor } from '../driver.ts'
import { timerMs } from '../options/duration.ts'
import { processWide } from '../process-wide.ts'
import type { Blocker } from '../events/event-map.ts'
import type { LockKey } from './wanted-lock.ts'

/** A key that guards of this process want, and who of them waits. */
export interface QueuedKey {
  readonly name: string
  readonly namespace: string
  /** The guard that is under way: it asks PostgreSQL for the lock, or holds it. */
  readonly first: {
    readonly state: 'asking' | 'holding'
    /** Since it asked, or since the lock was granted. */
    readonly forMs: number
    /** Of the backend, once the lock was granted. */
    readonly pid?: number
  }
  /** In their order: place 1 comes next. They have no connection yet. */
  readonly waiting: readonly {
    readonly place: number
    readonly waitingMs: number
    /** Until its wait ends without the lock. */
    readonly leftMs: number
  }[]
}

/** The number of the lock, or the name of one whose number only the server can work out. */
type QueueId = bigint | string

/** Of a guard that is first: it may take a connection and ask PostgreSQL. */
export class Place {
  readonly queue: KeyQueue
  readonly since: number = performance.now()
  /** Of the backend that has the lock; undefined while it is asked for. */
  pid: number | undefined
  grantedAt = 0
  /** Connections to the server that has the lock, of one of several primaries. */
  beside: Executor | undefined
  /** It is no longer first: it has left, or was overtaken. */
  isOver = false

  constructor(queue: KeyQueue) {
    this.queue = queue
  }

  granted(pid: number, beside: Executor | undefined): void {
    this.pid = pid
    this.beside = beside
    this.grantedAt = performance.now()
  }
}

interface Waiter {
  readonly since: number
  readonly limitMs: number
  before: Waiter | undefined
  behind: Waiter | undefined
  enter(place: Place): void
}

/** The guards of one process that want one key: one is first, the others wait behind it. */
class KeyQueue {
  readonly id: QueueId
  readonly key: LockKey
  first: Place = new Place(this)
  /** Linked, because who gives up may stand anywhere: nobody else is moved, however long the queue is. */
  #next: Waiter | undefined
  #last: Waiter | undefined
  #looking: Promise<readonly Blocker[] | undefined> | undefined

  constructor(id: QueueId, key: LockKey) {
    this.id = id
    this.key = key
  }

  get next(): Waiter | undefined {
    return this.#next
  }

  add(waiter: Waiter): void {
    waiter.before = this.#last
    if (this.#last === undefined) this.#next = waiter
    else this.#last.behind = waiter
    this.#last = waiter
  }

  remove(waiter: Waiter): void {
    const { before, behind } = waiter
    if (before === undefined) this.#next = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
  }

  *waiting(): Generator<Waiter> {
    for (let at = this.#next; at !== undefined; at = at.behind) yield at
  }

  /** One look for all who want to know at the same time. */
  look(
    ask: () => Promise<readonly Blocker[] | undefined>,
  ): Promise<readonly Blocker[] | undefined> {
    this.#looking ??= ask().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }
}

export type { KeyQueue }

/**
 * Lets one guard of a key at a time go to the database through one driver; the others wait here, where waiting
 * costs neither a connection nor a backend. The lock is PostgreSQL's: this changes who asks for it, never who may
 * have it.
 *
 * Nobody waits for the first without an end: each has a limit, and only who has one may wait.
 */
export class KeyQueues {
  readonly #queues = new Map<QueueId, KeyQueue>()

  /** How many keys are under way. */
  get size(): number {
    return this.#queues.size
  }

  /** The queue of a key, if somebody is under way. */
  of(id: QueueId): KeyQueue | undefined {
    return this.#queues.get(id)
  }

  /** Makes the caller first of a key that nobody is under way with. */
  begin(id: QueueId, key: LockKey): Place {
    const queue = new KeyQueue(id, key)
    this.#queues.set(id, queue)
    return queue.first
  }

  /**
   * Waits until it is first. Gives its place then, or, if the limit is reached before, how many guards were to go
   * first. An abort rejects with its reason.
   */
  wait(queue: KeyQueue, limitMs: number, signal: AbortSignal | undefined): Promise<Place | number> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        queue.remove(waiter)
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      const onAbort = (): void => {
        end()
        reject(signal?.reason as Error)
      }
      const waiter: Waiter = {
        since: performance.now(),
        limitMs,
        before: undefined,
        behind: undefined,
        enter(place) {
          end()
          resolve(place)
        },
      }
      const timer = setTimeout(() => {
        let ahead = 1
        // Those ahead have mostly given up before: their time began earlier.
        for (let at = waiter.before; at !== undefined; at = at.before) ahead += 1
        end()
        resolve(ahead)
      }, timerMs(limitMs))
      signal?.addEventListener('abort', onAbort, { once: true })
      queue.add(waiter)
    })
  }

  /** The next one is first. Does nothing for a place that is over. */
  leave(place: Place): void {
    if (place.isOver) return
    place.isOver = true
    const { queue } = place
    const { next } = queue
    if (next === undefined) {
      this.#queues.delete(queue.id)
      return
    }
    queue.first = new Place(queue)
    next.enter(queue.first)
  }

  /**
   * Makes the caller first in the place of one that does not hold the lock and does not come back either, such as
   * on a connection to a server that has vanished. Nothing if that place is over.
   */
  overtake(place: Place): Place | undefined {
    if (place.isOver) return undefined
    place.isOver = true
    const { queue } = place
    queue.first = new Place(queue)
    return queue.first
  }

  /** Every key that somebody waits for, the longest queue first. */
  report(): readonly QueuedKey[] {
    const now = performance.now()
    return [...this.#queues.values()]
      .filter(({ next }) => next !== undefined)
      .map((queue) => reportOf(queue, now))
      .toSorted((a, b) => b.waiting.length - a.waiting.length)
  }
}

function reportOf(queue: KeyQueue, now: number): QueuedKey {
  const { name, namespace } = queue.key
  const { pid, since, grantedAt } = queue.first
  return {
    name,
    namespace,
    first:
      pid === undefined
        ? { state: 'asking', forMs: now - since }
        : { state: 'holding', forMs: now - grantedAt, pid },
    waiting: [...queue.waiting()].map((waiter, at) => ({
      place: at + 1,
      waitingMs: now - waiter.since,
      leftMs: Math.max(0, waiter.limitMs - (now - waiter.since)),
    })),
  }
}

const queuesOf = /* @__PURE__ */ processWide('key-queues/1', () => new WeakMap<object, KeyQueues>())

/** The queues of a driver; everybody who uses it shares them. */
export function keyQueuesOf(driver: object): KeyQueues {
  let queues = queuesOf.get(driver)
  if (queues === undefined) queuesOf.set(driver, (queues = new KeyQueues()))
  return queues
}
