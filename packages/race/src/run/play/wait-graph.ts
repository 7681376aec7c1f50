import type { Wait } from '../connection/control.ts'
import type { Lane } from './lane.ts'

/** Which lanes wait for whom. */

function pidOf(lane: Lane): number {
  return lane.connection?.pid ?? 0
}

/**
 * Of the lanes that are under way, those that surely wait for others of this run: whoever is in their
 * way is at rest, or waits as well. A blocker that is still moving may let them go by itself.
 */
export function surelyBlocked(
  running: readonly Lane[],
  waits: readonly Wait[],
  ours: ReadonlySet<number>,
): Map<Lane, readonly number[]> {
  const blocked = new Map<Lane, readonly number[]>()
  for (const lane of running) {
    const blockers = waits.find(({ pid }) => pid === pidOf(lane))?.blockers ?? []
    const own = blockers.filter((pid) => ours.has(pid))
    if (own.length > 0) blocked.set(lane, own)
  }
  for (let changed = true; changed; ) {
    changed = false
    const moving = new Set(running.filter((lane) => !blocked.has(lane)).map(pidOf))
    for (const [lane, blockers] of blocked) {
      if (!blockers.every((pid) => moving.has(pid))) continue
      blocked.delete(lane)
      changed = true
    }
  }
  return blocked
}

/** A circle of lanes each of which waits for the next, if there is one. */
export function findCircle(lanes: readonly Lane[]): Lane[] | undefined {
  const blocked = lanes.filter((lane) => lane.status === 'blocked')
  const byPid = new Map(blocked.map((lane) => [pidOf(lane), lane]))
  const clear = new Set<Lane>()

  function follow(lane: Lane, path: readonly Lane[]): Lane[] | undefined {
    const at = path.indexOf(lane)
    if (at !== -1) return path.slice(at)
    if (clear.has(lane)) return undefined
    for (const pid of lane.blockers) {
      const next = byPid.get(pid)
      const circle = next && follow(next, [...path, lane])
      if (circle) return circle
    }
    clear.add(lane)
    return undefined
  }

  for (const lane of blocked) {
    const circle = follow(lane, [])
    if (circle) return circle
  }
  return undefined
}
