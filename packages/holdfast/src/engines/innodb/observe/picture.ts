import type { AboutSession, Seen, SeenSession } from '../../../blocking/engine.ts'
import type { Block, ObservedLock } from '../../../blocking/model.ts'
import type { LockMemory } from '../../../core/locks/lock-memory.ts'
import { isInTheWay } from './metadata-conflicts.ts'
import { nameOfLock, nameOfRow } from './row-names.ts'
import type { SeenConnection, SeenRowLock, SeenServer, SeenTransaction } from './seen.ts'

/** Rows of locks by name that are written and not committed: of holders for whom nobody waits as well. */
export interface HeldRow {
  readonly row: string
  readonly pid: number
  readonly ageMs: number
}

/** What is known besides. */
export interface PictureFacts {
  /** Where the tables of Holdfast are. */
  readonly database: string | undefined
  readonly memory: LockMemory
  readonly held: readonly HeldRow[]
}

/** What a session waits for. */
interface Wait {
  readonly lock: ObservedLock
  readonly since: number | undefined
  readonly blockedBy: readonly Block[]
}

/** One moment, indexed. */
export class Picture {
  readonly #seen: SeenServer
  readonly #facts: PictureFacts
  readonly #connections: ReadonlyMap<number, SeenConnection>
  readonly #transactions: ReadonlyMap<number, SeenTransaction>
  readonly #locks: ReadonlyMap<string, SeenRowLock>
  /** Of InnoDB: who asks for a lock, by the lock. */
  readonly #askers: ReadonlyMap<string, readonly number[]>
  readonly #waits = new Map<number, Wait>()
  /** What somebody waits for, by who holds it. */
  readonly #wanted = new Map<number, ObservedLock[]>()

  constructor(seen: SeenServer, facts: PictureFacts) {
    this.#seen = seen
    this.#facts = facts
    this.#connections = new Map(seen.connections.map((each) => [each.pid, each]))
    // Of those that are prepared, which are one session here, the oldest.
    const oldestLast = seen.transactions.toSorted((a, b) => b.startedAt - a.startedAt)
    this.#transactions = new Map(oldestLast.map((each) => [each.pid, each]))
    this.#locks = new Map(seen.locks.map((lock) => [lock.id, lock]))
    const asked = new Map<string, Set<number>>()
    for (const { by, lock } of seen.waits)
      for (const pid of this.#pidsOf(by, lock))
        asked.set(lock, (asked.get(lock) ?? new Set()).add(pid))
    this.#askers = new Map([...asked].map(([lock, pids]) => [lock, [...pids]]))
    this.#addRowWaits()
    this.#addMetadataWaits()
    this.#addUntold()
  }

  /** Everything, in the words of the room. */
  told(): Seen {
    const pids = new Set(this.#connections.keys())
    // A transaction that is prepared has no connection.
    if (this.#transactions.has(0)) pids.add(0)
    return {
      at: isoOf(this.#seen.at),
      sessions: [...pids].map((pid) => this.#session(pid)),
      capped: this.#seen.capped,
    }
  }

  /**
   * Which connections have a transaction. On MariaDB all that have written nothing have the number 0: one that waits is
   * known by what it waits for; others are not told apart.
   */
  #pidsOf(transaction: string, wantedLock: string | undefined): readonly number[] {
    const all = this.#seen.transactions.filter(({ id }) => id === transaction)
    if (transaction !== '0') return all.map(({ pid }) => pid)
    if (wantedLock !== undefined)
      return all.filter((each) => each.wantedLock === wantedLock).map(({ pid }) => pid)
    return all.filter(({ hasLocks }) => hasLocks).map(({ pid }) => pid)
  }

  #addRowWaits(): void {
    const rows = Map.groupBy(this.#seen.waits, ({ lock }) => lock)
    for (const [id, waits] of rows) {
      const lock = this.#locks.get(id)
      if (lock === undefined) continue
      const described = this.#describe(lock)
      for (const pid of this.#askers.get(id) ?? []) {
        const blocks = new Map<number, Block>()
        const seenTimes = new Map<string, number>()
        for (const { blocker, blockingLock } of waits) {
          const times = (seenTimes.get(blockingLock) ?? 0) + 1
          seenTimes.set(blockingLock, times)
          // MariaDB calls what somebody holds of a row and what he wants of it the same; then it stands there twice.
          const isSoft = (this.#askers.get(blockingLock)?.length ?? 0) > 0 && times === 1
          const by = this.#blockersIn(blocker, blockingLock, isSoft)
          for (const one of by) {
            if (one === pid) continue
            if (!isSoft) this.#note(one, { ...described, mode: this.#modeOf(blockingLock, lock) })
            const kind = isSoft && blocks.get(one)?.kind !== 'hard' ? 'soft' : 'hard'
            blocks.set(one, { pid: one, kind })
          }
        }
        const since = this.#transactions.get(pid)?.waitsSince
        this.#waits.set(pid, { lock: described, since, blockedBy: [...blocks.values()] })
      }
    }
  }

  /** Those of which it is not told which of them it is are none. */
  #blockersIn(transaction: string, lock: string, isSoft: boolean): readonly number[] {
    if (isSoft) return this.#askers.get(lock) ?? []
    const pids = this.#pidsOf(transaction, undefined)
    return transaction === '0' && pids.length > 1 ? [] : pids
  }

  #modeOf(id: string, otherwise: SeenRowLock): string {
    return (this.#locks.get(id) ?? otherwise).mode
  }

  #addMetadataWaits(): void {
    for (const [pid, waits] of Map.groupBy(this.#seen.metadataWaits, (wait) => wait.pid)) {
      const [first] = waits
      if (first === undefined) continue
      const blocks = new Map<number, Block>()
      for (const { by, held, wanted, isGranted } of waits) {
        if (by === pid || !isInTheWay(wanted, held, isGranted)) continue
        const lock = definitionLock(first, held)
        if (isGranted) this.#note(by, lock)
        const kind = isGranted || blocks.get(by)?.kind === 'hard' ? 'hard' : 'soft'
        blocks.set(by, { pid: by, kind })
      }
      const lock = definitionLock(first, first.wanted)
      this.#waits.set(pid, { lock, since: undefined, blockedBy: [...blocks.values()] })
    }
  }

  /** Of what a server says no more than that somebody waits. */
  #addUntold(): void {
    for (const { pid, doing } of this.#connections.values()) {
      const what =
        /^Waiting for (.*lock)$/.exec(doing)?.[1] ?? (doing === 'User lock' && 'GET_LOCK')
      if (typeof what !== 'string' || this.#waits.has(pid)) continue
      const lock: ObservedLock = { kind: 'other', name: what, source: 'none', mode: '' }
      this.#waits.set(pid, { lock, since: undefined, blockedBy: [] })
    }
  }

  #note(pid: number, lock: ObservedLock): void {
    const locks = this.#wanted.get(pid) ?? []
    if (!locks.some((each) => each.name === lock.name && each.row === lock.row)) locks.push(lock)
    this.#wanted.set(pid, locks)
  }

  #describe(lock: SeenRowLock): ObservedLock {
    const { database, table, index, data, isRow, mode } = lock
    const name = nameOfLock(lock, this.#facts.database, this.#facts.memory)
    if (name !== undefined) return { kind: 'named', ...name, mode }
    const full = database === '' ? table : `${database}.${table}`
    if (!isRow) {
      return { kind: 'table', name: `table ${full}`, source: 'catalogue', table: full, mode }
    }
    const isGap = data?.startsWith('supremum') === true || mode.split(',').includes('GAP')
    return {
      kind: 'row',
      name: `${isGap ? 'rows' : 'row'} of ${full}`,
      source: 'catalogue',
      table: full,
      ...(data === undefined ? {} : { row: `${index ?? 'PRIMARY'}: ${data}` }),
      mode,
    }
  }

  #session(pid: number): SeenSession {
    const wait = this.#waits.get(pid)
    const holds = this.#holds(pid)
    const about = pid === 0 ? this.#prepared() : this.#about(pid)
    const { database } = this.#seen
    const chosen = this.#connections.get(pid)?.database
    const isThere = ({ table, kind }: ObservedLock): boolean =>
      kind === 'named' || table?.startsWith(`${database ?? ''}.`) === true
    const touches = [...holds, ...(wait === undefined ? [] : [wait.lock])].some(isThere)
    // One that has chosen no database may work in each, and so may one that is prepared.
    const ours = database === undefined || chosen === undefined || chosen === database || touches
    if (wait === undefined) return { about, ours, holds }
    const { lock, since, blockedBy } = wait
    const known = blockedBy.filter((by) => by.pid === 0 || this.#connections.has(by.pid))
    return {
      about,
      ours,
      holds,
      wait: { lock, waitingMs: this.#waitingMs(pid, since), blockedBy: known },
    }
  }

  /** To the second by InnoDB; a wait is no longer than the statement that waits. */
  #waitingMs(pid: number, since: number | undefined): number {
    const statementMs = this.#connections.get(pid)?.stateMs ?? Infinity
    const waitMs = since === undefined ? Infinity : (this.#seen.at - since) * 1_000
    const ms = Math.min(statementMs, waitMs)
    return ms === Infinity ? 0 : Math.max(0, Math.round(ms))
  }

  #holds(pid: number): readonly ObservedLock[] {
    const wanted = this.#wanted.get(pid) ?? []
    const openMs = this.#openMs(pid)
    const bounded = wanted.map((lock) =>
      openMs === undefined ? lock : { ...lock, heldAtMostMs: openMs },
    )
    const named = new Map<string, ObservedLock>()
    for (const { row, pid: by, ageMs } of this.#facts.held) {
      const name = by === pid ? nameOfRow(row, this.#facts.memory) : undefined
      if (name?.id === undefined) continue
      named.set(name.id, { kind: 'named', ...name, mode: 'X', heldAtMostMs: Math.round(ageMs) })
    }
    const others = bounded.filter(({ id }) => id === undefined || !named.has(id))
    return [...named.values(), ...others]
  }

  #openMs(pid: number): number | undefined {
    const exact = this.#connections.get(pid)?.transactionMs
    const started = this.#transactions.get(pid)?.startedAt
    if (exact !== undefined || started === undefined) return exact
    return Math.max(0, Math.round((this.#seen.at - started) * 1_000))
  }

  #prepared(): AboutSession {
    const transactionMs = this.#openMs(0)
    return {
      pid: 0,
      application: '',
      hidden: false,
      user: '',
      state: 'prepared',
      stateMs: transactionMs ?? 0,
      ...(transactionMs === undefined ? {} : { transactionMs }),
      query: 'XA PREPARE',
    }
  }

  #about(pid: number): AboutSession {
    const seen = this.#connections.get(pid) as SeenConnection
    const openMs = this.#openMs(pid)
    const isIdle = seen.command === 'Sleep'
    const runs = seen.command === 'Query' || seen.command === 'Execute'
    const idle = openMs === undefined ? 'idle' : 'idle in transaction'
    const started = this.#transactions.get(pid)?.startedAt
    const beganAt = started ?? (openMs === undefined ? undefined : this.#seen.at - openMs / 1_000)
    const stateMs = Math.max(0, Math.round(seen.stateMs))
    return {
      pid,
      startedAt: isoOf(this.#seen.startedAt),
      hidden: false,
      application: seen.application,
      user: seen.user,
      ...(seen.client === undefined ? {} : { client: seen.client }),
      ...(seen.database === undefined || seen.database === this.#seen.database
        ? {}
        : { database: seen.database }),
      state: isIdle ? idle : runs ? 'active' : seen.command.toLowerCase(),
      stateMs,
      ...(beganAt === undefined ? {} : { transactionStartedAt: isoOf(Math.floor(beganAt)) }),
      ...(openMs === undefined ? {} : { transactionMs: openMs }),
      ...(seen.transactionId === undefined ? {} : { transactionId: seen.transactionId }),
      query: seen.query,
      ...(isIdle ? {} : { queryMs: stateMs }),
    }
  }
}

/** A lock on what something is, rather than on what is in it. */
function definitionLock(
  { type, database, name }: SeenServer['metadataWaits'][number],
  mode: string,
): ObservedLock {
  const full = [database, name].filter((part) => part !== undefined).join('.')
  if (type === 'TABLE')
    return { kind: 'table', name: `table ${full}`, source: 'catalogue', table: full, mode }
  if (type === 'USER LEVEL LOCK')
    return { kind: 'advisory', name: `GET_LOCK ${name ?? ''} (not ours)`, source: 'none', mode }
  const kind = type.toLowerCase()
  return { kind: 'other', name: full === '' ? kind : `${kind} ${full}`, source: 'catalogue', mode }
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString()
}
