import type { Block, LockTree, ObservedSession } from './model.ts'

/** A session with those that are drawn below it. */
export interface Branch {
  readonly session: ObservedSession
  /** Others it waits for as well. */
  readonly also: readonly Block[]
  readonly below: readonly Branch[]
}

/**
 * A tree to draw: a session may wait for several others, but is drawn once, below one that holds what it
 * wants, or else below one ahead in the queue. Roots first, whoever waits longest first.
 *
 * @example
 * for (const { session, below } of lockBranches(await hf.observe.locks())) print(session, below)
 */
export function lockBranches(tree: LockTree): readonly Branch[] {
  const sessions = new Map(tree.sessions.map((session) => [session.pid, session]))
  const parents = parentsIn(tree, sessions)
  const children = Map.groupBy(
    tree.sessions.filter(({ pid }) => parents.has(pid)),
    ({ pid }) => parents.get(pid) as number,
  )
  const drawn = new Set<number>()
  const branch = (session: ObservedSession): Branch => {
    drawn.add(session.pid)
    const below = (children.get(session.pid) ?? [])
      .filter(({ pid }) => !drawn.has(pid))
      .toSorted((a, b) => (b.waitingMs ?? 0) - (a.waitingMs ?? 0) || a.pid - b.pid)
    const parent = parents.get(session.pid)
    return {
      session,
      also: session.blockedBy.filter(({ pid }) => pid !== parent),
      below: below.map(branch),
    }
  }
  return tree.roots.flatMap((pid) => {
    const session = sessions.get(pid)
    return session === undefined || drawn.has(pid) ? [] : [branch(session)]
  })
}

/** Whom each is drawn below. Where the favourites go round in a circle, one that is drawn already. */
function parentsIn(
  tree: LockTree,
  sessions: ReadonlyMap<number, ObservedSession>,
): ReadonlyMap<number, number> {
  const parents = new Map<number, number>()
  const placed = new Set(tree.roots)
  let open = tree.sessions.filter(({ pid, blockedBy }) => !placed.has(pid) && blockedBy.length > 0)
  const place = (choice: (session: ObservedSession) => number | undefined): boolean => {
    const before = open.length
    open = open.filter((session) => {
      const parent = choice(session)
      if (parent === undefined || !placed.has(parent)) return true
      parents.set(session.pid, parent)
      placed.add(session.pid)
      return false
    })
    return open.length < before
  }
  const favourite = ({ blockedBy }: ObservedSession): number | undefined => {
    const [first] = blockedBy.toSorted(
      (a, b) =>
        Number(b.kind === 'hard') - Number(a.kind === 'hard') ||
        (sessions.get(b.pid)?.transactionMs ?? 0) - (sessions.get(a.pid)?.transactionMs ?? 0),
    )
    return first?.pid
  }
  const any = ({ blockedBy }: ObservedSession): number | undefined =>
    blockedBy.find(({ pid }) => placed.has(pid))?.pid
  while (open.length > 0 && (place(favourite) || place(any)));
  return parents
}
