import type { Block, LockTree, ObservedLock, ObservedSession } from 'holdfast/observe'

/** A session in the place where it is shown: under the one that stands in its way. */
export interface Branch {
  readonly session: ObservedSession
  /** How its parent blocks it; absent at a root. */
  readonly kind?: Block['kind']
  /** Who else is in its way. */
  readonly also: readonly Block[]
  /** Those it blocks, in groups by the lock that they want; the fullest group first. */
  readonly groups: readonly LockGroup[]
}

/** Sessions that wait for one lock of one holder, the longest wait first. */
export interface LockGroup {
  readonly lock: ObservedLock | undefined
  readonly branches: readonly Branch[]
}

/**
 * Everybody who blocks or is blocked, as trees: roots first, each session once. A session with several
 * blockers stands under one that holds the lock, if there is such a one; a circle is cut at its first.
 */
export function blockingForest(tree: LockTree): readonly Branch[] {
  const sessions = new Map(tree.sessions.map((session) => [session.pid, session]))
  for (const session of tree.sessions) {
    for (const { pid } of session.blockedBy) {
      if (!sessions.has(pid)) sessions.set(pid, unseen(pid))
    }
  }
  const { roots, children } = place(tree, sessions)
  const build = (session: ObservedSession, kind?: Block['kind'], parent?: number): Branch => ({
    session,
    ...(kind === undefined ? {} : { kind }),
    also: session.blockedBy.filter((block) => block.pid !== parent),
    groups: groupByLock(
      (children.get(session.pid) ?? []).map(([child, how]) => build(child, how, session.pid)),
    ),
  })
  return roots.map((root) => build(root))
}

/** The first of many, and whoever blocks others among the rest: what a picture or a list has room for. */
export function firstOf(branches: readonly Branch[], most: number): readonly Branch[] {
  if (branches.length <= most + 1) return branches
  return branches.filter(({ groups }, at) => at < most || groups.length > 0)
}

interface Places {
  readonly roots: readonly ObservedSession[]
  readonly children: ReadonlyMap<number, readonly [ObservedSession, Block['kind']][]>
}

function place(tree: LockTree, sessions: ReadonlyMap<number, ObservedSession>): Places {
  const behind = Map.groupBy(
    [...sessions.values()].flatMap((session) =>
      session.blockedBy.map((block) => ({ session, ...block })),
    ),
    ({ pid }) => pid,
  )
  const open = new Map(
    [...sessions].filter(
      // A root may be one that waits for somebody whom the server does not tell.
      ([pid, { blockedBy }]) => blockedBy.length > 0 || behind.has(pid) || tree.roots.includes(pid),
    ),
  )
  const children = new Map<number, [ObservedSession, Block['kind']][]>()
  const roots: ObservedSession[] = []

  const settle = (root: ObservedSession | undefined): void => {
    if (root === undefined || !open.delete(root.pid)) return
    roots.push(root)
    const queue = [root]
    for (const { pid } of queue) {
      for (const { session, kind } of behind.get(pid) ?? []) {
        // Whoever waits for a holder stands under a holder, wherever else it queues.
        const holders = session.blockedBy.some((block) => block.kind === 'hard')
        if ((kind === 'soft' && holders) || !open.delete(session.pid)) continue
        children.set(pid, [...(children.get(pid) ?? []), [session, kind]])
        queue.push(session)
      }
    }
  }
  for (const pid of tree.roots) settle(sessions.get(pid))
  for (const session of sessions.values()) if (session.blockedBy.length === 0) settle(session)
  while (open.size > 0) settle([...open.values()][0])
  return { roots, children }
}

function groupByLock(branches: readonly Branch[]): LockGroup[] {
  const groups = Map.groupBy(branches, ({ session }) => session.waitsFor?.name)
  return [...groups.values()]
    .map((members) => ({
      lock: members[0]?.session.waitsFor,
      branches: members.toSorted((a, b) => (b.session.waitingMs ?? 0) - (a.session.waitingMs ?? 0)),
    }))
    .toSorted((a, b) => weight(b) - weight(a))
}

function weight(group: LockGroup): number {
  return group.branches.reduce((sum, { session }) => sum + 1 + session.waiters, 0)
}

/** A blocker that the server named and did not describe: it has ended since, or has no session. */
function unseen(pid: number): ObservedSession {
  return {
    pid,
    application: pid === 0 ? 'prepared transaction' : 'not visible',
    user: '',
    hidden: false,
    state: pid === 0 ? 'prepared' : 'unknown',
    stateMs: 0,
    query: '',
    holds: [],
    blockedBy: [],
    waiters: 0,
    advice: [],
  }
}
