import type { LockListener } from '../events/lock-listener.ts'
import { Recent } from '../recent.ts'
import { processWide } from '../process-wide.ts'
import type { LockKey } from './wanted-lock.ts'

/** A lock that was used here, and what it is called. */
export type NotedKey = Pick<LockKey, 'name' | 'namespace' | 'lock'>

/** A note, and when it was made by this process's own clock: only its age means anything. */
export interface NotedLock {
  readonly key: NotedKey
  readonly ageMs: number
}

interface Note {
  readonly key: NotedKey
  tick: number
  at: number
}

/** As many names as a server keeps. */
const most = 10_000

/**
 * The names of the locks that were used lately through one driver: PostgreSQL knows a lock by its number
 * only. Noting one costs a look into a map, so that every acquisition can afford it.
 */
export class LockMemory {
  /** Who counts how locks are used, if somebody does. */
  listener: LockListener | undefined
  readonly #notes = new Recent<bigint | string, Note>(most)
  #tick = 0

  note(key: NotedKey): void {
    const { lock } = key
    // Legacy keys have names of their own, and their number may be the server's to work out.
    const id = lock.kind === 'bigint' ? lock.id : key.name
    const note = this.#notes.get(id)
    if (note === undefined) {
      this.#notes.set(id, { key, tick: this.#tick, at: performance.now() })
      return
    }
    note.tick = this.#tick
    note.at = performance.now()
  }

  /** By its number, or by the name of a legacy key that is no plain number. */
  get(id: bigint | string): NotedKey | undefined {
    return this.#notes.get(id)?.key
  }

  /** Legacy keys whose number only the server can tell. */
  *hashed(): Generator<NotedKey> {
    for (const { key } of this.#notes.values()) if ('text' in key.lock) yield key
  }

  /** What was used since the tick that `tick()` gave; all that is remembered without one. */
  *since(tick = 0): Generator<NotedLock> {
    const now = performance.now()
    for (const note of this.#notes.values()) {
      if (note.tick >= tick) yield { key: note.key, ageMs: now - note.at }
    }
  }

  /** Begins a new tick: what is used from now on is `since` it. */
  tick(): number {
    this.#tick += 1
    return this.#tick
  }
}

const memories = /* @__PURE__ */ processWide(
  'lock-memories/1',
  () => new WeakMap<object, LockMemory>(),
)

/** The memory of a driver; all rooms over it share it. */
export function lockMemoryOf(driver: object): LockMemory {
  let memory = memories.get(driver)
  if (memory === undefined) memories.set(driver, (memory = new LockMemory()))
  return memory
}
