import { type AdviceWords, sessionAdvice } from './advice.ts'
import type { Seen, SeenSession } from './engine.ts'
import type { Block, HotKey, LockTree, ObservedSession } from './model.ts'
import { waitersOf } from './waiters-of.ts'

/** In a queue of hundreds everybody waits for everybody ahead: that is more than anybody wants to know. */
const mostSoft = 8

/** How a tree is made. */
export interface TreeTerms {
  readonly words: AdviceWords
  /** This session is shown whatever it does. */
  readonly asked: number | undefined
  readonly tookMs: number
}

/** Who blocks whom, out of what an engine has seen. */
export function treeOf(seen: Seen, { words, asked, tookMs }: TreeTerms): LockTree {
  const sessions = new Forest(seen, words).sessions(asked)
  return { at: seen.at, roots: rootsOf(sessions), sessions, capped: seen.capped, tookMs }
}

/** Transactions of this database that are open or prepared, the oldest first. */
export function longestIn(seen: Seen, words: AdviceWords): ObservedSession[] {
  return new Forest(seen, words)
    .ours()
    .filter(({ transactionMs }) => transactionMs !== undefined)
    .toSorted((a, b) => (b.transactionMs ?? 0) - (a.transactionMs ?? 0) || a.pid - b.pid)
}

/** Keys that most sessions wait for: the one that most wait for first. */
export function hotKeysIn({ sessions }: LockTree): HotKey[] {
  const keys = Map.groupBy(
    sessions.filter(({ waitsFor }) => waitsFor !== undefined),
    ({ waitsFor }) => `${waitsFor?.kind}/${waitsFor?.id ?? waitsFor?.name}`,
  )
  return [...keys.values()]
    .map((waiting) => {
      const lock = waiting[0]?.waitsFor
      return {
        name: lock?.name ?? '',
        ...(lock?.namespace === undefined ? {} : { namespace: lock.namespace }),
        waiting: waiting.length,
        longestWaitMs: Math.max(...waiting.map(({ waitingMs }) => waitingMs ?? 0)),
      }
    })
    .toSorted((a, b) => b.waiting - a.waiting || b.longestWaitMs - a.longestWaitMs)
}

/** One moment, indexed. */
class Forest {
  readonly #words: AdviceWords
  readonly #sessions: ReadonlyMap<number, SeenSession>
  readonly #waiters: ReadonlyMap<number, ReadonlySet<number>>

  constructor(seen: Seen, words: AdviceWords) {
    this.#words = words
    this.#sessions = new Map(seen.sessions.map((session) => [session.about.pid, session]))
    const waits = seen.sessions.flatMap(({ about, wait }) =>
      wait === undefined ? [] : [[about.pid, wait.blockedBy.map(({ pid }) => pid)] as const],
    )
    this.#waiters = waitersOf(new Map(waits))
  }

  sessions(asked: number | undefined): ObservedSession[] {
    return [...this.#sessions.values()]
      .filter(({ about: { pid } }) => pid === asked || this.#isNear(pid))
      .map((session) => this.#session(session))
      .filter((session) => session.pid === asked || isShown(session))
      .toSorted(byWeight)
  }

  ours(): ObservedSession[] {
    return [...this.#sessions.values()]
      .filter(({ ours }) => ours)
      .map((each) => this.#session(each))
  }

  /** Of this database, or in one tree with somebody who is. */
  #isNear(pid: number): boolean {
    const isOurs = (one: number): boolean => one === 0 || this.#sessions.get(one)?.ours === true
    if (isOurs(pid) || [...(this.#waiters.get(pid) ?? [])].some(isOurs)) return true
    return [...this.#waiters].some(([blocker, waiters]) => waiters.has(pid) && isOurs(blocker))
  }

  #session({ about, holds, wait }: SeenSession): ObservedSession {
    const waiting = this.#waiters.get(about.pid)
    const inCircle = waiting?.has(about.pid) === true
    const facts = {
      ...about,
      holds: holds.toSorted(byKind),
      blockedBy: this.#shown(wait?.blockedBy ?? []),
      waiters: (waiting?.size ?? 0) - (inCircle ? 1 : 0),
    }
    const { transactionMs } = about
    return {
      ...facts,
      ...(wait === undefined
        ? {}
        : { waitsFor: wait.lock, waitingMs: Math.max(0, wait.waitingMs) }),
      advice: sessionAdvice(
        { ...facts, transactionMs, waitsFor: wait?.lock, inCircle },
        this.#words,
      ),
    }
  }

  /** Those who came last before it; in a long queue the others wait for these, or for whom these wait. */
  #shown(blocks: readonly Block[]): readonly Block[] {
    const sorted = inOrder(blocks)
    const soft = sorted.filter(({ kind }) => kind === 'soft')
    if (soft.length <= mostSoft) return sorted
    const waitMs = ({ pid }: Block): number => this.#sessions.get(pid)?.wait?.waitingMs ?? 0
    const nearest = soft.toSorted((a, b) => waitMs(a) - waitMs(b)).slice(0, mostSoft)
    return [...sorted.filter(({ kind }) => kind === 'hard'), ...nearest]
  }
}

/** Who holds it comes first. */
export function inOrder(blocks: readonly Block[]): readonly Block[] {
  return blocks.toSorted((a, b) => (a.kind === b.kind ? a.pid - b.pid : a.kind === 'hard' ? -1 : 1))
}

/** Others may hold advisory locks of their own, which are shown only if somebody waits for them. */
function isShown({ waiters, waitsFor, holds, label }: ObservedSession): boolean {
  if (waiters > 0 || waitsFor !== undefined) return true
  return holds.some(({ kind }) => kind === 'named' || (kind === 'advisory' && label !== undefined))
}

/** Locks by name first, the rest in a fixed order. */
function byKind(a: ObservedSession['holds'][number], b: typeof a): number {
  const rank = ({ id }: typeof a): number => (id === undefined ? 1 : 0)
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
  // Who waits for somebody that the server does not tell is as far as one can see.
  const roots = sessions
    .filter(
      (session) => isUntold(session) || (session.waiters > 0 && session.blockedBy.length === 0),
    )
    .map(({ pid }) => pid)
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

function isUntold({ advice }: ObservedSession): boolean {
  return advice.some(({ code }) => code === 'blocker-not-told')
}

function byWaiters(a: ObservedSession, b: ObservedSession): number {
  return b.waiters - a.waiters || (b.waitingMs ?? 0) - (a.waitingMs ?? 0)
}
