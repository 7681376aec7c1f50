import type { AboutSession, Seen, SeenSession as Told } from '../../blocking/engine.ts'
import type { Block, LockTree, ObservedLock } from '../../blocking/model.ts'
import { inOrder, treeOf } from '../../blocking/tree.ts'
import type { Row } from '../../core/driver.ts'
import { adviceWords } from '../../engines/postgres/observe/advice-words.ts'
import { splitApplication } from '../../engines/postgres/tx/activity.ts'
import type { SeenLock, SeenLocks, SeenSession } from '../../engines/postgres/observe/locks.ts'
import { labelMark } from '../../engines/postgres/locks/locks.ts'
import { conflictsWith } from '../../engines/postgres/rows/table-lock.ts'
import { describeLock, lockTag, wantedRow, type WantedRow } from './describe-lock.ts'
import type { Names } from './naming.ts'

/** What the server says of the query of somebody else's session. */
const hiddenQuery = 'hidden: this role is no member of pg_read_all_stats'

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
  const told: Seen = { at: seen.at, sessions: picture.sessions(), capped: seen.capped }
  return treeOf(told, { words: adviceWords, asked, tookMs })
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
  }

  /** Whoever is gone since does not block; pids come twice where workers are behind them. */
  #blocksOf(pid: number, lock: SeenLock, by: readonly number[]): readonly Block[] {
    const holders = new Set(
      (this.#granted.get(lockTag(lock)) ?? [])
        .filter(({ mode }) => conflictsWith(lock.mode, mode))
        .map((holder) => holder.pid),
    )
    const blockers = [...new Set(by)].filter(
      (blocker) => blocker !== pid && (blocker === 0 || this.#sessions.has(blocker)),
    )
    return inOrder(
      blockers.map((blocker) => ({ pid: blocker, kind: holders.has(blocker) ? 'hard' : 'soft' })),
    )
  }

  sessions(): Told[] {
    const all = [...this.#sessions.values()].map((session) => ({
      about: aboutSession(session),
      ours: session.ours,
    }))
    const isPrepared = [...this.#waits.values()].some(({ blockedBy }) =>
      blockedBy.some(({ pid }) => pid === 0),
    )
    const prepared = { about: this.#prepared, ours: true }
    return [...all, ...(isPrepared ? [prepared] : [])].map(({ about, ours }) => {
      const { pid, transactionMs } = about
      const wait = this.#waits.get(pid)
      const told = { about, ours, holds: this.#holds(pid, transactionMs) }
      if (wait === undefined) return told
      const { lock, blockedBy } = wait
      const waitingMs = lock.waitMs ?? 0
      return { ...told, wait: { lock: this.#describe(pid, lock), waitingMs, blockedBy } }
    })
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
    return [...held.values()]
  }

  #waitersFor(lock: SeenLock): number[] {
    const tag = lockTag(lock)
    return [...this.#waits].filter(([, wait]) => lockTag(wait.lock) === tag).map(([pid]) => pid)
  }
}

/** PostgreSQL does not tell prepared transactions apart where they block, so they are shown as one. */
function aboutPrepared(rows: readonly Row[]): AboutSession {
  const oldest = Math.max(0, ...rows.map((row) => Number(row['age'])))
  return {
    pid: 0,
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
    pid: seen.pid,
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
