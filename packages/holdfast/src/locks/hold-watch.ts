import type { Executor, TransactionState } from '../core/driver.ts'
import type { HeldLongEvent } from '../core/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { stillHeld } from '../engines/postgres/lock-holders.ts'
import type { LockToken, WantedLock } from '../engines/postgres/locks.ts'

/** Where a lock was taken. */
export interface CallSite {
  readonly stack?: string
}

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

/**
 * Notices locks that are held too long. Keyed by backend: a backend that takes a first lock again
 * has ended its earlier transaction. Transactions of the caller end out of our sight, so before an
 * event is published the server is asked, once for all suspects of a sweep.
 */
export class HoldWatch {
  readonly #holds = new Map<number, Hold>()
  readonly #alone: Executor
  readonly #options: HoldWatchOptions
  /** One for all holds, so a busy process does not arm one per transaction. */
  #timer: NodeJS.Timeout | undefined

  constructor(alone: Executor, options: HoldWatchOptions) {
    this.#alone = alone
    this.#options = options
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
    this.#arm(this.#options.heldLongMs)
    return started
  }

  end(hold: Hold): void {
    if (this.#holds.get(hold.pid) === hold) this.#holds.delete(hold.pid)
  }

  #arm(ms: number): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#sweep()
    }, ms)
    this.#timer.unref()
  }

  #dueAt(hold: Hold): number {
    return hold.since + (hold.level === 0 ? this.#options.heldLongMs : this.#options.heldTooLongMs)
  }

  async #sweep(): Promise<void> {
    const now = performance.now()
    const due = [...this.#holds.values()].filter((hold) => this.#dueAt(hold) <= now)
    const suspects = due.filter((hold) => hold.state !== undefined)
    const live = await this.#stillHeld(suspects)
    for (const hold of due) {
      if (this.#holds.get(hold.pid) !== hold) continue
      if (hold.state !== undefined && !live.has(hold.pid)) this.#holds.delete(hold.pid)
      else this.#report(hold)
    }
    const next = Math.min(...[...this.#holds.values()].map((hold) => this.#dueAt(hold)))
    if (Number.isFinite(next)) this.#arm(Math.max(1, Math.ceil(next - performance.now())))
  }

  async #stillHeld(suspects: readonly Hold[]): Promise<ReadonlySet<number>> {
    const asked = suspects.filter((hold) => hold.state?.() !== 'none')
    if (asked.length === 0) return new Set()
    try {
      const rows = await this.#alone.query(
        stillHeld(asked.map(({ pid, token }) => ({ pid, space: token.space, id: token.id }))),
      )
      return new Set(rows.map((row) => Number(row['pid'])))
    } catch {
      // Without an answer there is nothing to report; the next sweep asks again.
      return new Set()
    }
  }

  #report(hold: Hold): void {
    const heldMs = performance.now() - hold.since
    const names = hold.locks.map(({ key }) => key.name)
    const loud = hold.level === 1
    const event: HeldLongEvent = {
      level: loud ? 'error' : 'warning',
      names,
      locks: hold.locks,
      heldMs,
      pid: hold.pid,
      takenAt: callersOf(hold.site),
    }
    publish(channels.lockHeldLong, event)
    if (!loud) {
      hold.level = 1
      return
    }
    this.#holds.delete(hold.pid)
    process.emitWarning(
      `lock ${names.join(', ')} has been held for ${Math.round(heldMs)} ms; keep I/O out of the locked section`,
      { code: 'HOLDFAST_LOCK_HELD_LONG', detail: event.takenAt },
    )
  }
}

const ownFolder = new URL('..', import.meta.url).pathname

/** Where the caller asked for it: the first line of the stack that is not ours. */
function callersOf(site: { readonly stack?: string }): string {
  const lines = (site.stack ?? '').split('\n').slice(1)
  return lines.find((line) => !line.includes(ownFolder)) ?? ''
}
