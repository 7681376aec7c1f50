/** Who waits for whom, by pid: from a session to those that block it. */
export type Edges = ReadonlyMap<number, readonly number[]>

/** For each session everybody who waits for it, directly or not; in a circle also itself. */
export function waitersOf(edges: Edges): ReadonlyMap<number, ReadonlySet<number>> {
  const pids = [...new Set([...edges].flatMap(([pid, blockers]) => [pid, ...blockers]))]
  const numbers = new Map(pids.map((pid, at) => [pid, at]))
  const words = Math.ceil(pids.length / 32)
  // One row of bits for each: a queue of hundreds has tens of thousands of edges.
  const rows = pids.map(() => new Uint32Array(words))
  const links = [...edges].flatMap(([pid, blockers]) =>
    blockers.map((by) => [numbers.get(pid) as number, numbers.get(by) as number] as const),
  )
  for (let changed = true; changed; ) {
    changed = false
    for (const [waiter, blocker] of links) {
      const from = rows[waiter] as Uint32Array
      const to = rows[blocker] as Uint32Array
      for (let word = 0; word < words; word += 1) {
        const own = word === waiter >>> 5 ? 1 << (waiter & 31) : 0
        const merged = ((to[word] as number) | (from[word] as number) | own) >>> 0
        if (merged === to[word]) continue
        to[word] = merged
        changed = true
      }
    }
  }
  return new Map(
    pids.map((pid, at) => {
      const row = rows[at] as Uint32Array
      return [
        pid,
        new Set(pids.filter((_, bit) => ((row[bit >>> 5] as number) >>> (bit & 31)) & 1)),
      ]
    }),
  )
}
