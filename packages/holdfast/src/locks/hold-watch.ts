import { type CallSite, callersOf } from '../core/locks/call-site.ts'
import type { Executor, TransactionState } from '../core/driver.ts'
import type { HeldLongEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { subjectOf } from '../core/locks/lock-key.ts'
import type { WantedLock } from '../core/locks/wanted-lock.ts'
import type { LockEngine, LockToken } from './engine.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** One transaction's locks, as long as they may be held. */
interface Hold {
  readonly pid: number
  locks: readonly WantedLock[]
  readonly token: LockToken
  readonly since: number
  /** Its stack is formatted only if the watch has something to say. */
  readonly site: CallSite
  /** `undefined` for transactions of ours, whose end we see. */
  readonly state: (() => TransactionState) | undefined
  level: 0 | 1
}

export interface HoldWatchOptions {
  /** First event. */
  readonly heldLongMs: number
  /** Second, louder event; also a process warning. */
  readonly heldTooLongMs: number
}

export const watchOptions: KnownOptions<Partial<HoldWatchOptions>> = {
  heldLongMs: 'checked',
  heldTooLongMs: 'checked',
}

/** A lock that was held too long is often so again; a single bad moment is not to cost something for ever. */
const worthItForMs = 600_000

/**
 * Whether it is worth the while to keep where a single lock was taken: where code is written, while somebody
 * listens, and for ten minutes after a lock was held too long.
 */
export class Places {
  readonly #developing: boolean
  #untilMs = -Infinity

  constructor(developing: boolean) {
    this.#developing = developing
  }

  get worthIt(): boolean {
    return (
      this.#developing || channels.lockHeldLong.hasSubscribers || performance.now() < this.#untilMs
    )
  }

  noteLongHold(): void {
    this.#untilMs = performance.now() + worthItForMs
  }
}

/**
 * Notices locks that are held too long. Keyed by backend: a backend that takes a first lock again
 * has ended its earlier transaction. Transactions of the caller end out of our sight, so before an
 * event is published the server is asked, once for all suspects of a look; one look at a time. Where
 * nobody would hear the answer nothing is asked.
 */
export class HoldWatch {
  readonly #holds = new Map<number, Hold>()
  readonly #engine: LockEngine
  readonly #alone: Executor
  readonly #options: HoldWatchOptions
  /** Who reads the warnings of a process is asked for, without a listener, only where code is written. */
  readonly #developing: boolean
  readonly #places: Places
  /** One for all holds, so a busy process does not arm one per transaction. */
  #timer: NodeJS.Timeout | undefined
  #timerAt = 0
  #looking = false
  /** After a look that failed: when the next one may be. */
  #looksFrom = 0

  constructor(
    engine: LockEngine,
    alone: Executor,
    options: HoldWatchOptions,
    developing: boolean,
    places: Places,
  ) {
    this.#engine = engine
    this.#alone = alone
    this.#options = options
    this.#developing = developing
    this.#places = places
  }

  /**
   * Starts watching; call `end` with the result when the transaction is over, if that is known.
   * `continues` says that the transaction held locks before: they count from their own start.
   */
  start(hold: Omit<Hold, 'level' | 'since'>, continues: boolean): Hold {
    const earlier = this.#holds.get(hold.pid)
    if (continues && earlier !== undefined) {
      earlier.locks = [...earlier.locks, ...hold.locks]
      return earlier
    }
    const started: Hold = { ...hold, since: performance.now(), level: 0 }
    this.#holds.set(hold.pid, started)
    this.#arm(this.#dueAt(started))
    return started
  }

  end(hold: Hold): void {
    if (this.#holds.get(hold.pid) === hold) this.#holds.delete(hold.pid)
  }

  #arm(at: number): void {
    if (this.#timer !== undefined) {
      if (this.#timerAt <= at) return
      clearTimeout(this.#timer)
    }
    this.#timerAt = at
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        this.#sweep()
      },
      Math.max(1, Math.ceil(at - performance.now())),
    )
    this.#timer.unref()
  }

  #dueAt({ since, level }: Hold): number {
    return since + (level === 0 ? this.#options.heldLongMs : this.#options.heldTooLongMs)
  }

  /** Ours are told at once; for the caller's a look is sent, if none is under way. */
  #sweep(): void {
    const now = performance.now()
    const suspects: Hold[] = []
    for (const hold of this.#holds.values()) {
      if (this.#dueAt(hold) > now) continue
      if (hold.state === undefined) this.#report(hold)
      else if (hold.state() === 'none') this.#holds.delete(hold.pid)
      else if (!this.#isHeard(hold)) this.#passOver(hold)
      else suspects.push(hold)
    }
    if (suspects.length > 0 && !this.#looking && this.#looksFrom <= now) void this.#look(suspects)
    this.#armNext()
  }

  /** While a look is under way, its end decides what comes next for the caller's. */
  #armNext(): void {
    let next = Infinity
    for (const hold of this.#holds.values()) {
      if (hold.state === undefined) next = Math.min(next, this.#dueAt(hold))
      else if (!this.#looking) next = Math.min(next, Math.max(this.#dueAt(hold), this.#looksFrom))
    }
    if (next < Infinity) this.#arm(next)
  }

  #isHeard({ level }: Hold): boolean {
    return channels.lockHeldLong.hasSubscribers || (this.#developing && level === 1)
  }

  #passOver(hold: Hold): void {
    if (hold.level === 0) hold.level = 1
    else this.#holds.delete(hold.pid)
  }

  async #look(suspects: readonly Hold[]): Promise<void> {
    this.#looking = true
    try {
      const live = await this.#engine.stillHeld(this.#alone, suspects)
      for (const hold of suspects) {
        if (this.#holds.get(hold.pid) !== hold) continue
        if (live.has(hold.pid)) this.#report(hold)
        else this.#holds.delete(hold.pid)
      }
    } catch {
      // Without an answer nothing is known; a server that is away is not asked all the time.
      this.#looksFrom = performance.now() + this.#options.heldTooLongMs
    } finally {
      this.#looking = false
      this.#armNext()
    }
  }

  #report(hold: Hold): void {
    const heldMs = performance.now() - hold.since
    const loud = hold.level === 1
    const event: HeldLongEvent = {
      level: loud ? 'error' : 'warning',
      names: hold.locks.map(({ key }) => key.name),
      locks: hold.locks,
      heldMs,
      pid: hold.pid,
      takenAt: callersOf(hold.site),
    }
    publish(channels.lockHeldLong, event)
    this.#places.noteLongHold()
    if (!loud) {
      hold.level = 1
      return
    }
    this.#holds.delete(hold.pid)
    process.emitWarning(
      `lock ${subjectOf(hold.locks)} has been held for ${Math.round(heldMs)} ms; keep I/O out of the locked section`,
      { code: 'HOLDFAST_LOCK_HELD_LONG', detail: event.takenAt },
    )
  }
}
