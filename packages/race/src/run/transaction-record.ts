import type { Footprint, Touch } from '../core/model.ts'
import { type Held, nothingHeld } from './held.ts'
import { advisoryObject, type Touched } from './touches.ts'

type Isolation = Footprint['isolation']

/** What the open transaction of one session has done so far. */
export interface TransactionRecord {
  readonly held: Held
  readonly isolation: Isolation
  /** Adds what a statement did and what the session holds since. */
  add(touched: Touched, held: Held): void
  /** The level was set for this transaction, or by a session setting for all. */
  setIsolation(level: Isolation, forSession: boolean): void
  /** The session's own level is the server's again. */
  resetIsolation(): void
  /** Something was done that is not known: neither is what the end of the transaction means. */
  spoil(): void
  /** Whether this query takes the snapshot of the whole transaction; asked once per query. */
  takesSnapshot(): boolean
  savepoint(change: 1 | -1): void
  /** Nothing was done so far that anybody notices when the transaction ends. */
  readonly quiet: boolean
  /** Keys of advisory locks that outlive a transaction, or may do so. */
  readonly sessionKeys: Set<string>
  readonly savepoints: number
  /** What the end of the transaction, or of a part of it, means to others. */
  ends(how: 'commit' | 'rollback'): Footprint
  /** What the end of the session means to others; it forgets the keys of its locks. */
  lost(): Footprint
  clear(): void
}

export function createTransactionRecord(standard: Isolation): TransactionRecord {
  let sessionLevel = standard
  let isolation = standard
  let held = nothingHeld
  let snapshot = false
  let savepoints = 0
  let writes = new Set<string>()
  let locks = new Set<string>()
  let excluded = new Set<string>()
  let deferred: readonly Touch[] = []
  let spoiled = false

  const sessionKeys = new Set<string>()

  function ends(how: 'commit' | 'rollback'): Footprint {
    const touches: Touch[] = [...excluded].map((object) => ({ object, mode: 'exclusive' }))
    if (how === 'commit') touches.push(...deferred)
    const end: Footprint = { opaque: spoiled, touches, isolation }
    // Under SSI even the end of a reader decides who may commit.
    const watched = isolation === 'serializable' && snapshot
    if (writes.size === 0 && locks.size === 0 && !watched) return end
    const written = how === 'commit' ? [...writes] : []
    return { ...end, ends: { how, writes: written, locks: [...locks] } }
  }

  return {
    sessionKeys,
    get held() {
      return held
    },
    get isolation() {
      return isolation
    },
    get savepoints() {
      return savepoints
    },
    get quiet() {
      const watched = isolation === 'serializable' && snapshot
      return writes.size === 0 && locks.size === 0 && !watched && !spoiled
    },
    add(touched, now) {
      held = now
      for (const object of touched.writes) writes.add(object)
      for (const { object, mode } of touched.touches) {
        if (mode !== 'read') locks.add(object)
        if (mode === 'exclusive' && !object.startsWith('advisory')) excluded.add(object)
      }
      deferred = [...deferred, ...touched.deferred]
    },
    setIsolation(level, forSession) {
      if (forSession) sessionLevel = level
      else isolation = level
    },
    resetIsolation() {
      sessionLevel = standard
    },
    spoil() {
      spoiled = true
    },
    takesSnapshot() {
      const first = !snapshot && isolation !== 'read committed'
      snapshot = true
      return first
    },
    savepoint(change) {
      savepoints = Math.max(0, savepoints + change)
    },
    ends,
    lost() {
      for (const key of sessionKeys) locks.add(advisoryObject(key))
      sessionKeys.clear()
      return ends('rollback')
    },
    clear() {
      held = nothingHeld
      isolation = sessionLevel
      snapshot = false
      savepoints = 0
      writes = new Set()
      locks = new Set()
      excluded = new Set()
      deferred = []
      spoiled = false
    },
  }
}
