import type { Driver } from '../core/driver.ts'
import type { KeyQueue, KeyQueues, Place } from '../core/locks/key-queues.ts'
import { atMost } from '../core/options/wait.ts'
import type { LockKey, WantedLock } from '../core/locks/wanted-lock.ts'
import type { Start } from '../tx/run.ts'
import type { AcquireTerms } from './acquire-options.ts'
import type { Acquisition } from './acquire.ts'
import type { Blocker } from '../core/events/event-map.ts'

type Attempt<T> = (start: Start) => Promise<T>

/** A guard's key among those of its process. */
export interface Queued {
  readonly queues: KeyQueues
  readonly key: LockKey
  readonly id: bigint | string
}

/**
 * A guard and its place among those of this process that want the same key. Every attempt takes a place of its
 * own: while a guard pauses before it tries again, the next one may go.
 *
 * No deadlock comes from it. A guard waits here holding nothing of its own, and behind one that is on its way to
 * this very lock as the first it takes, waits for it in PostgreSQL, or holds it: there it would wait for the same
 * one. Whoever has no limit, and so could wait for ever, does not wait here.
 */
export class QueuedGuard<Tx> {
  /** What is left of the call's wait when the attempt goes to the database. */
  #terms: AcquireTerms
  /** What its first statement asked for, if that went together with BEGIN. */
  asked: AcquireTerms
  /** When it did. */
  askedAt: number | undefined
  /** While it is first; a guard that went past the queue has none. */
  place: Place | undefined
  readonly #driver: Driver<Tx>
  readonly #acquisition: Acquisition<Tx>
  readonly #given: AcquireTerms
  /** How long one that does not wait for a lock waits for a connection. */
  readonly #usualMs: number | undefined
  /** Nothing if it does not wait here. */
  readonly #queued: Queued | undefined

  constructor(
    driver: Driver<Tx>,
    acquisition: Acquisition<Tx>,
    terms: AcquireTerms,
    usualMs: number | undefined,
    queued: Queued | undefined,
  ) {
    this.#driver = driver
    this.#acquisition = acquisition
    this.#given = this.#terms = this.asked = terms
    this.#usualMs = usualMs
    this.#queued = queued
  }

  /** Runs the attempt when it may go to the database. */
  admit<T>(attempt: Attempt<T>, signal: AbortSignal | undefined): Promise<T> {
    this.place = undefined
    this.#terms = this.#given
    if (this.#queued === undefined) return attempt(this.#start())
    const { queues, id, key } = this.#queued
    const queue = queues.of(id)
    return queue === undefined
      ? this.#first(queues, queues.begin(id, key), attempt)
      : this.#behind(queues, queue, attempt, signal)
  }

  #first<T>(queues: KeyQueues, place: Place, attempt: Attempt<T>): Promise<T> {
    this.place = place
    const attempted = attempt(this.#start())
    const leave = (): void => queues.leave(place)
    attempted.then(leave, leave)
    return attempted
  }

  /**
   * The body is over. The next one may ask now, on a connection of its own: its question is with the server by
   * the time COMMIT is done, and no round trip passes in which nobody has the lock.
   */
  bodyEnded(): void {
    if (this.place !== undefined) this.#queued?.queues.leave(this.place)
  }

  /** What is left for the lock, of an attempt that has waited for its connection since then. */
  left(startedMs: number): AcquireTerms {
    const { wait } = this.#terms
    if (wait.limitMs === undefined) return this.#terms
    const leftMs = wait.limitMs - (performance.now() - startedMs)
    return { ...this.#terms, wait: atMost(wait, leftMs) }
  }

  #start(): Start {
    const withinMs = this.#terms.wait.limitMs ?? this.#usualMs
    if (this.#terms.keepTransaction) return { withinMs, bodyWaits: true }
    const opening: Start['opening'] = (startedMs) => {
      this.askedAt = performance.now()
      this.asked = this.left(startedMs)
      return this.#acquisition.opening(this.asked)
    }
    return { opening, marked: true, bodyWaits: true, withinMs }
  }

  async #behind<T>(
    queues: KeyQueues,
    queue: KeyQueue,
    attempt: Attempt<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const acquisition = this.#acquisition
    const { how, limitMs: waitMs = 0 } = this.#given.wait
    if (how === 'wait' && waitMs === 0) return await attempt(this.#start())
    signal?.throwIfAborted()
    const began = performance.now()
    acquisition.requested()
    try {
      const place =
        how === 'nowait'
          ? await this.#busy(queue)
          : await this.#untilFirst(queues, queue, waitMs, signal)
      const wait = atMost(this.#given.wait, began + waitMs - performance.now())
      this.#terms = { ...this.#given, wait }
      return await this.#first(queues, place, attempt)
    } catch (error) {
      // Aborted here, or without a connection afterwards.
      acquisition.failed(error)
      throw error
    }
  }

  async #untilFirst(
    queues: KeyQueues,
    queue: KeyQueue,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Place> {
    const { first } = queue
    const place = await queues.wait(queue, waitMs, signal)
    if (typeof place !== 'number') return place
    const { waitedMs } = this.#acquisition
    const seen = await this.#look(queue)
    // One that was first all the time, and does not hold the lock, is not about to come back.
    const instead = seen?.length === 0 ? queues.overtake(first) : undefined
    if (instead !== undefined) return instead
    const told = { waitedMs, ahead: place }
    throw this.#acquisition.refusedHere('LOCK_TIMEOUT', seen ?? ofPlace(queue.first), told)
  }

  /** The first may itself only wait for the lock: who has it is what the server says. */
  async #busy(queue: KeyQueue): Promise<never> {
    const seen = await this.#look(queue)
    const told = { waitedMs: 0, ahead: 1 }
    throw this.#acquisition.refusedHere('LOCK_BUSY', seen ?? ofPlace(queue.first), told)
  }

  #look(queue: KeyQueue): Promise<readonly Blocker[] | undefined> {
    const executor = queue.first.beside ?? this.#driver.alone
    // Only this key: who asks at the same time may want others besides.
    return queue.look(() => this.#acquisition.look(executor, queue.key))
  }
}

/** What is known here of the one that is first, if the server does not answer. */
function ofPlace({ pid, grantedAt, queue }: Place): readonly Blocker[] {
  if (pid === undefined) return []
  const ageMs = performance.now() - grantedAt
  return [{ pid, name: queue.key.name, ageMs, state: 'unknown', query: '' }]
}

/** Where a guard waits, if it does: the number is that of a lock on one server, and several primaries have each their own. */
export function queuedAt<Tx>(
  driver: Driver<Tx>,
  queues: KeyQueues,
  wanted: readonly WantedLock[],
): Queued | undefined {
  const key = wanted.length === 1 ? exclusive(wanted[0]) : lowest(wanted)
  if (key === undefined) return undefined
  const { lock, name, scope } = key
  const id = lock.kind === 'bigint' ? lock.id : name
  return { queues, key, id: driver.shards === undefined ? id : `${id}/${scope}` }
}

function exclusive(wanted: WantedLock | undefined): LockKey | undefined {
  return wanted?.mode === 'exclusive' ? wanted.key : undefined
}

/**
 * Of several keys the one that PostgreSQL locks first, if it is known here and wanted exclusively. Only that one
 * has a queue: whoever were first at a second key while it waits for the first one would keep back guards of the
 * second that PostgreSQL lets pass.
 */
function lowest(wanted: readonly WantedLock[]): LockKey | undefined {
  let first: { id: bigint; wanted: WantedLock } | undefined
  for (const each of wanted) {
    // Where the server works out the number, only the server knows the order.
    if (each.key.lock.kind !== 'bigint') return undefined
    const { id } = each.key.lock
    const isStronger = id === first?.id && each.mode === 'exclusive'
    if (first === undefined || id < first.id || isStronger) first = { id, wanted: each }
  }
  return exclusive(first?.wanted)
}
