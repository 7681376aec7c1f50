import type { Row } from '../core/driver.ts'
import { splitApplication } from '../engines/postgres/tx/activity.ts'
import type { SeenLock, SeenLocks, SeenSession } from '../engines/postgres/observe/locks.ts'
import { labelMark } from '../engines/postgres/locks/locks.ts'
import { conflictsWith } from '../engines/postgres/rows/table-lock.ts'
import { sessionAdvice } from './advice.ts'
import { describeLock, lockTag, wantedRow, type WantedRow } from './describe-lock.ts'
import type { Block, LockTree, ObservedLock, ObservedSession } from './model.ts'
import type { Names } from './naming.ts'
import { waitersOf } from './waiters-of.ts'

/** What the server says of the query of somebody else's session. */
const hiddenQuery = 'hidden: this role is no member of pg_read_all_stats'

/** In a queue of hundreds everybody waits for everybody ahead: that is more than anybody wants to know. */
const mostSoft = 8

/** What is known besides. */
export interface TreeFacts {
  readonly names: Names
  /** Rows of `preparedTransactions`, if one of them blocks somebody. */
  readonly prepared: readonly Row[]
  /** This session is shown whatever it does. */
  readonly asked: number | undefined
}

/** Who blocks whom, out of what was seen. */
export function buildTree(
  seen: SeenLocks,
  { names, prepared, asked }: TreeFacts,
  tookMs: number,
): LockTree {
  const picture = new Picture(seen, names, aboutPrepared(prepared))
  const sessions = picture.sessions(asked)
  return { at: seen.at, roots: rootsOf(sessions), sessions, capped: seen.capped, tookMs }
}

/** One moment, indexed. */
class Picture {
  readonly #names: Names
  readonly #prepared: AboutSession
  readonly #sessions: ReadonlyMap<number, SeenSession>
  /** By pid. */
  readonly #locks: ReadonlyMap<number, readonly SeenLock[]>
  /** By tag: those that are granted. */
  readonly #granted: ReadonlyMap<string, readonly SeenLock[]>
  /** What a session waits for, and whom. */
  readonly #waits = new Map<
    number,
    { readonly lock: SeenLock; readonly blockedBy: readonly Block[] }
  >()
  readonly #waiters: ReadonlyMap<number, ReadonlySet<number>>

  constructor(seen: SeenLocks, names: Names, prepared: AboutSession) {
    this.#names = names
    this.#prepared = prepared
    this.#sessions = new Map(seen.sessions.map((session) => [session.pid, session]))
    this.#locks = Map.groupBy(seen.locks, ({ pid }) => pid)
    this.#granted = Map.groupBy(
      seen.locks.filter(({ granted }) => granted),
      lockTag,
    )
    for (const { pid, by } of seen.blocks) {
      const lock = this.#locks.get(pid)?.find(({ granted }) => !granted)
      if (lock === undefined || !this.#sessions.has(pid)) continue
      this.#waits.set(pid, { lock, blockedBy: this.#blocksOf(pid, lock, by) })
    }
    this.#waiters = waitersOf(
      new Map([...this.#waits].map(([pid, { blockedBy }]) => [pid, blockedBy.map((b) => b.pid)])),
    )
  }

  /** Whoever is gone since does not block; pids come twice where workers are behind them. */
  #blocksOf(pid: number, lock: SeenLock, by: readonly number[]): readonly Block[] {
    const holders = new Set(
      (this.#granted.get(lockTag(lock)) ?? [])
        .filter(({ mode }) => conflictsWith(lock.mode, mode))
        .map((holder) => holder.pid),
    )
    return [...new Set(by)]
      .filter((blocker) => blocker !== pid && (blocker === 0 || this.#sessions.has(blocker)))
      .map((blocker): Block => ({ pid: blocker, kind: holders.has(blocker) ? 'hard' : 'soft' }))
      .toSorted((a, b) => (a.kind === b.kind ? a.pid - b.pid : a.kind === 'hard' ? -1 : 1))
  }

  /** Those who came last before it; in a long queue the others wait for these, or for whom these wait. */
  #shown(blocks: readonly Block[]): readonly Block[] {
    const soft = blocks.filter(({ kind }) => kind === 'soft')
    if (soft.length <= mostSoft) return blocks
    const waitMs = ({ pid }: Block): number =>
      this.#locks.get(pid)?.find(({ granted }) => !granted)?.waitMs ?? 0
    const nearest = soft.toSorted((a, b) => waitMs(a) - waitMs(b)).slice(0, mostSoft)
    return [...blocks.filter(({ kind }) => kind === 'hard'), ...nearest]
  }

  sessions(asked: number | undefined): ObservedSession[] {
    const pids = new Set(this.#sessions.keys())
    if (this.#waiters.has(0)) pids.add(0)
    return [...pids]
      .filter((pid) => pid === asked || this.#isNear(pid))
      .map((pid) => this.#session(pid))
      .filter((session) => session.pid === asked || isShown(session))
      .toSorted(byWeight)
  }

  /** Of this database, or in one tree with somebody who is. */
  #isNear(pid: number): boolean {
    const isOurs = (one: number): boolean => one === 0 || this.#sessions.get(one)?.ours === true
    if (isOurs(pid) || [...(this.#waiters.get(pid) ?? [])].some(isOurs)) return true
    return [...this.#waiters].some(([blocker, waiters]) => waiters.has(pid) && isOurs(blocker))
  }

  #session(pid: number): ObservedSession {
    const seen = this.#sessions.get(pid)
    const wait = this.#waits.get(pid)
    const waiting = this.#waiters.get(pid)
    const waitsFor = wait === undefined ? undefined : this.#describe(pid, wait.lock)
    const about = seen === undefined ? this.#prepared : aboutSession(seen)
    const holds = this.#holds(pid, about.transactionMs)
    const inCircle = waiting?.has(pid) === true
    const facts = {
      ...about,
      pid,
      holds,
      blockedBy: this.#shown(wait?.blockedBy ?? []),
      waiters: (waiting?.size ?? 0) - (inCircle ? 1 : 0),
    }
    return {
      ...facts,
      ...(waitsFor === undefined
        ? {}
        : { waitsFor, waitingMs: Math.max(0, wait?.lock.waitMs ?? 0) }),
      advice: sessionAdvice({
        ...facts,
        transactionMs: facts.transactionMs,
        waitsFor,
        inCircle,
      }),
    }
  }

  /** What a waiter waits for. */
  #describe(pid: number, lock: SeenLock): ObservedLock {
    const row = this.#wantedRow(pid, lock)
    const holder = this.#waits.get(pid)?.blockedBy[0]?.pid
    return describeLock(lock, {
      names: this.#names,
      row,
      holder,
      isLabelled: this.#isLabelled(lock),
    })
  }

  /** Whether one of those who hold it shows that it is in a transaction of Holdfast's. */
  #isLabelled(lock: SeenLock): boolean {
    return (this.#granted.get(lockTag(lock)) ?? []).some(
      ({ pid }) => this.#sessions.get(pid)?.application.includes(labelMark) === true,
    )
  }

  #wantedRow(pid: number, lock: SeenLock): WantedRow | undefined {
    return wantedRow(lock, this.#locks.get(pid) ?? [])
  }

  /** Everything advisory, and whatever somebody waits for: under the name that those who wait give it. */
  #holds(pid: number, transactionMs: number | undefined): ObservedLock[] {
    const held = new Map<string, ObservedLock>()
    const add = (lock: ObservedLock): void => {
      const mayBeOlder =
        lock.kind === 'advisory' || lock.meaning !== undefined || lock.kind === 'other'
      const bound = transactionMs === undefined || mayBeOlder ? {} : { heldAtMostMs: transactionMs }
      held.set(`${lock.kind}/${lock.id ?? lock.name}/${lock.row ?? ''}/${lock.mode}`, {
        ...lock,
        ...bound,
      })
    }
    for (const lock of this.#locks.get(pid) ?? []) {
      if (!lock.granted) continue
      if (lock.type === 'advisory') add(this.#describe(pid, lock))
      else
        for (const waiter of this.#waitersFor(lock))
          add({ ...this.#describe(waiter, lock), mode: lock.mode })
    }
    return [...held.values()].toSorted(byKind)
  }

  #waitersFor(lock: SeenLock): number[] {
    const tag = lockTag(lock)
    return [...this.#waits].filter(([, wait]) => lockTag(wait.lock) === tag).map(([pid]) => pid)
  }
}

/** What all sessions have in common. */
type AboutSession = Omit<
  ObservedSession,
  'pid' | 'holds' | 'waitsFor' | 'waitingMs' | 'blockedBy' | 'waiters' | 'advice'
>

/** PostgreSQL does not tell prepared transactions apart where they block, so they are shown as one. */
function aboutPrepared(rows: readonly Row[]): AboutSession {
  const oldest = Math.max(0, ...rows.map((row) => Number(row['age'])))
  return {
    application: rows.map((row) => String(row['gid'])).join(', '),
    hidden: false,
    user: [...new Set(rows.map((row) => String(row['owner'])))].join(', '),
    state: 'prepared',
    stateMs: oldest,
    transactionMs: oldest,
    query: 'PREPARE TRANSACTION',
  }
}

function aboutSession(seen: SeenSession): AboutSession {
  const { application, label } = splitApplication(seen.application)
  const of = <K extends string, V>(key: K, value: V | null | undefined): { [P in K]?: V } =>
    value === null || value === undefined ? {} : ({ [key]: value } as { [P in K]?: V })
  const age = (ms: number | null): number | undefined => (ms === null ? undefined : Math.max(0, ms))
  return {
    application,
    ...of('label', label),
    ...of('startedAt', seen.startedAt),
    ...of('database', seen.ours ? undefined : seen.database),
    hidden: seen.hidden,
    user: seen.user ?? '',
    ...of('client', seen.client),
    state: seen.hidden ? 'hidden' : (seen.state ?? seen.type ?? ''),
    stateMs: age(seen.stateMs) ?? 0,
    ...of('transactionStartedAt', seen.transactionStartedAt),
    ...of('transactionMs', age(seen.transactionMs)),
    query: seen.hidden ? hiddenQuery : seen.query,
    ...of('queryMs', age(seen.queryMs)),
  }
}

/** Others may hold advisory locks of their own, which are shown only if somebody waits for them. */
function isShown({ waiters, waitsFor, holds, label }: ObservedSession): boolean {
  if (waiters > 0 || waitsFor !== undefined) return true
  return holds.some(({ kind }) => kind === 'named' || (kind === 'advisory' && label !== undefined))
}

/** Locks by name first, the rest in a fixed order. */
function byKind(a: ObservedLock, b: ObservedLock): number {
  const rank = ({ id }: ObservedLock): number => (id === undefined ? 1 : 0)
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1)
}

/** Roots first, then whoever more wait for, then whoever waits longer. */
function byWeight(a: ObservedSession, b: ObservedSession): number {
  const rank = ({ blockedBy, waiters }: ObservedSession): number =>
    waiters > 0 && blockedBy.length === 0 ? 0 : blockedBy.length > 0 ? 1 : 2
  return (
    rank(a) - rank(b) ||
    b.waiters - a.waiters ||
    (b.waitingMs ?? b.transactionMs ?? 0) - (a.waitingMs ?? a.transactionMs ?? 0) ||
    a.pid - b.pid
  )
}

/** Those that wait for nobody, and one of each circle that nobody else leads to. */
function rootsOf(sessions: readonly ObservedSession[]): number[] {
  const waited = sessions.filter(({ waiters }) => waiters > 0)
  const roots = waited.filter(({ blockedBy }) => blockedBy.length === 0).map(({ pid }) => pid)
  const behind = Map.groupBy(
    sessions.flatMap(({ pid, blockedBy }) => blockedBy.map((block) => ({ pid, by: block.pid }))),
    ({ by }) => by,
  )
  const reached = new Set<number>()
  const reach = (pid: number): void => {
    const open = [pid]
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (reached.has(next)) continue
      reached.add(next)
      open.push(...(behind.get(next) ?? []).map((edge) => edge.pid))
    }
  }
  roots.forEach(reach)
  // Whoever is in a circle has the most waiters of those behind it, so it comes first.
  for (const { pid } of waited.toSorted(byWaiters)) {
    if (reached.has(pid)) continue
    roots.push(pid)
    reach(pid)
  }
  return roots
}

function byWaiters(a: ObservedSession, b: ObservedSession): number {
  return b.waiters - a.waiters || (b.waitingMs ?? 0) - (a.waitingMs ?? 0)
}
