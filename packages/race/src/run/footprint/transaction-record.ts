import type { Footprint, Touch, TransactionState } from '../../core/model.ts'
import { type Held, nothingHeld } from './held.ts'
import type { StatementShape } from '../statement/statement-shape.ts'
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
  /** Something may have set the session's level that is not understood: from now on its steps depend on everything. */
  doubtLevel(): void
  readonly levelInDoubt: boolean
  /** Code that the COMMIT will run: what each statement of it touches, undefined if nobody knows. */
  putOff(parts: readonly (readonly Touch[] | undefined)[]): void
  /** The same, told and forgotten: it is run now. */
  runLate(): readonly (readonly Touch[] | undefined)[]
  /** What the session has prepared by name, in this run. */
  readonly prepared: Map<string, StatementShape>
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
  /** What the end of the transaction means to others. */
  ends(how: 'commit' | 'rollback'): Footprint
  /** The same of a part of it, by ROLLBACK TO. */
  rollsBackTo(): Footprint
  /** What the end of the session means to others; it forgets the keys of its locks. */
  lost(): Footprint
  /** The transaction is over: what it has set stays, or is taken back. If nobody knows which, the level is in doubt. */
  clear(how?: 'commit' | 'rollback'): void
}

/** More of them tell nothing new. */
const mostLate = 40

/** Whatever came before what still does. */
function twiceEach<T>(parts: readonly T[]): readonly T[] {
  const each = [...new Map(parts.map((part) => [JSON.stringify(part), part])).values()]
  return [...each, ...each]
}

export function createTransactionRecord(standard: Isolation): TransactionRecord {
  let sessionLevel = standard
  /** What that was before the open transaction set it. */
  let levelBefore: Isolation | undefined
  let levelInDoubt = false
  let isolation = standard
  let held = nothingHeld
  let snapshot = false
  let savepoints = 0
  let writes = new Set<string>()
  let locks = new Set<string>()
  let excluded = new Set<string>()
  let deferred: readonly Touch[] = []
  let late: readonly (readonly Touch[] | undefined)[] = []
  let spoiled = false

  const sessionKeys = new Set<string>()
  const prepared = new Map<string, StatementShape>()

  /** With what the triggers do that were put off, each before the next, and all before the rows are to be seen. */
  function commits(): Footprint {
    const known = late.flatMap((part) => part ?? [])
    for (const { object, mode } of known) {
      if (mode === 'read' || mode === 'key-share') continue
      writes.add(object)
      locks.add(object)
    }
    const own = ends('commit')
    if (late.length === 0) return own
    const asPart = (part: readonly Touch[] | undefined): Footprint => ({
      opaque: part === undefined,
      touches: part ?? [],
      isolation,
    })
    return {
      ...own,
      opaque: own.opaque || late.includes(undefined),
      touches: [...own.touches, ...known],
      parts: [...late.map(asPart), own],
    }
  }

  function ends(how: 'commit' | 'rollback'): Footprint {
    const touches: Touch[] = [...excluded].map((object) => ({ object, mode: 'exclusive' }))
    if (how === 'commit') touches.push(...deferred)
    const end: Footprint = { opaque: spoiled || levelInDoubt, touches, isolation }
    // Under SSI even the end of a reader decides who may commit.
    const watched = isolation === 'serializable' && snapshot
    if (writes.size === 0 && locks.size === 0 && !watched) return end
    const written = how === 'commit' ? [...writes] : []
    return { ...end, ends: { how, writes: written, locks: [...locks] } }
  }

  function setSessionLevel(level: Isolation): void {
    levelBefore ??= sessionLevel
    sessionLevel = level
  }

  return {
    sessionKeys,
    prepared,
    putOff(parts) {
      late = [...late, ...parts]
      if (late.length > mostLate) late = twiceEach(late)
    },
    runLate() {
      const now = late
      late = []
      return now
    },
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
      if (forSession) setSessionLevel(level)
      else isolation = level
    },
    resetIsolation: () => setSessionLevel(standard),
    doubtLevel() {
      levelInDoubt = true
    },
    get levelInDoubt() {
      return levelInDoubt
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
    ends: (how) => (how === 'commit' ? commits() : ends(how)),
    rollsBackTo() {
      // Whether it was set before the savepoint or after it is not kept.
      if (levelBefore !== undefined) levelInDoubt = true
      return ends('rollback')
    },
    lost() {
      for (const key of sessionKeys) locks.add(advisoryObject(key))
      sessionKeys.clear()
      return ends('rollback')
    },
    clear(how) {
      if (how === undefined && levelBefore !== undefined) levelInDoubt = true
      if (how === 'rollback') sessionLevel = levelBefore ?? sessionLevel
      levelBefore = undefined
      held = nothingHeld
      isolation = sessionLevel
      snapshot = false
      savepoints = 0
      writes = new Set()
      locks = new Set()
      excluded = new Set()
      deferred = []
      late = []
      spoiled = false
    },
  }
}

/** What it changes of what is known about its session. */
export function applySetting(
  shape: StatementShape,
  before: TransactionState,
  record: TransactionRecord,
): void {
  if (shape.verb === 'savepoint') record.savepoint(1)
  if (shape.verb === 'release') record.savepoint(-1)
  if (shape.resetsIsolation) record.resetIsolation()
  if (shape.isolation) record.setIsolation(shape.isolation, shape.forSession)
  // Without a transaction it is committed at once.
  const stays = shape.resetsIsolation || (shape.isolation !== undefined && shape.forSession)
  if (before === 'I' && stays) record.clear('commit')
}
