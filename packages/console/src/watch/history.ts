import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { LockTree } from 'holdfast/observe'
import type { ShownText } from '../core/shown-text.ts'
import type { HistoryPoint } from '../core/wire.ts'

interface Entry {
  readonly point: HistoryPoint
  readonly keptAtMs: number
  readonly packed: Buffer
  readonly locks: ReadonlyMap<string, LockUse>
  readonly bytes: number
}

interface LockUse {
  readonly holders: number[]
  waiting: number
  longestWaitMs: number
}

export interface HistoryLimits {
  readonly minutes: number
  readonly maxBytes: number
}

/** Trees of the last minutes, so that one can look back; the oldest go when time or room is up. */
export class History {
  readonly #limits: HistoryLimits
  readonly #entries: Entry[] = []
  #bytes = 0

  constructor(limits: HistoryLimits) {
    this.#limits = limits
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Keeps a tree, as it was after redaction. */
  add(json: ShownText, tree: LockTree): void {
    const locks = usesOf(tree)
    const packed = deflateRawSync(json, { level: 1 })
    let bytes = packed.length + 400
    for (const name of locks.keys()) bytes += 2 * name.length + 160
    const waiting = tree.sessions.filter(({ waitsFor }) => waitsFor !== undefined)
    const point = {
      at: tree.at,
      sessions: tree.sessions.length,
      waiting: waiting.length,
      longestWaitMs: Math.max(0, ...waiting.map(({ waitingMs = 0 }) => waitingMs)),
    }
    this.#entries.push({ point, keptAtMs: performance.now(), packed, locks, bytes })
    this.#bytes += bytes
    const oldestMs = performance.now() - this.#limits.minutes * 60_000
    for (;;) {
      const oldest = this.#entries[0]
      if (oldest === undefined) break
      if (this.#bytes <= this.#limits.maxBytes && oldest.keptAtMs >= oldestMs) break
      this.#entries.shift()
      this.#bytes -= oldest.bytes
    }
  }

  /** What happened, the oldest first; of one lock, or of all. */
  points(lock?: string): readonly HistoryPoint[] {
    if (lock === undefined) return thinned(this.#entries.map(({ point }) => point))
    return thinned(
      this.#entries.map(({ point, locks }) => {
        const { holders = [], waiting = 0, longestWaitMs = 0 } = locks.get(lock) ?? {}
        return { ...point, waiting, longestWaitMs, holders }
      }),
    )
  }

  /** The tree of a point, as JSON. */
  treeAt(at: string): ShownText | undefined {
    const entry = this.#entries.find(({ point }) => point.at === at)
    if (entry === undefined) return undefined
    // What comes out is what went in.
    return inflateRawSync(entry.packed).toString('utf8') as ShownText
  }
}

function usesOf({ sessions }: LockTree): Map<string, LockUse> {
  const uses = new Map<string, LockUse>()
  const useOf = (name: string): LockUse => {
    const use = uses.get(name) ?? { holders: [], waiting: 0, longestWaitMs: 0 }
    uses.set(name, use)
    return use
  }
  for (const { pid, holds, waitsFor, waitingMs = 0 } of sessions) {
    for (const { name } of holds) useOf(name).holders.push(pid)
    if (waitsFor === undefined) continue
    const use = useOf(waitsFor.name)
    use.waiting += 1
    use.longestWaitMs = Math.max(use.longestWaitMs, waitingMs)
  }
  return uses
}

const mostPoints = 2_000

/** Of too many points the worst of each stretch: what was bad must not get lost. */
function thinned(points: readonly HistoryPoint[]): readonly HistoryPoint[] {
  if (points.length <= mostPoints) return points
  const worst: HistoryPoint[] = []
  for (const [index, point] of points.entries()) {
    const stretch = Math.floor((index * mostPoints) / points.length)
    const known = worst[stretch]
    if (known === undefined || point.waiting >= known.waiting) worst[stretch] = point
  }
  return worst
}
