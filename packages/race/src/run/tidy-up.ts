import { setImmediate } from 'node:timers/promises'
import type { GatedConnection } from '../gate/gated-connection.ts'
import type { Played, ScheduleSetting } from './schedule.ts'
import { shapeOf } from './statement-shape.ts'

/**
 * Makes the connections fit for the next run. Most can be used again as they are, which saves more
 * than anything else; what may remember this run is closed.
 */
export async function tidyUp(setting: ScheduleSetting, played: Played): Promise<void> {
  const { stage, control, hangMs } = setting
  const spent = new Set(played.spent)
  const marked = new Set(
    played.steps.flatMap(({ pid, statements }) =>
      statements.some((text) => shapeOf(text).residue) ? [pid] : [],
    ),
  )
  const closing: GatedConnection[] = []
  const renewals: Promise<void>[] = []
  stage.wings.forEach((wing, flow) => {
    const dirty = [...wing.connections].filter(
      ({ phase, state, pid }) => phase !== 'idle' || state !== 'I' || marked.has(pid),
    )
    closing.push(...dirty)
    // A client that was taken from the pool and not given back is lost to it.
    const leaked = wing.pool.totalCount !== wing.pool.idleCount
    if (spent.has(flow) || leaked) {
      closing.push(...wing.connections)
      renewals.push(wing.renew())
    } else for (const connection of dirty) connection.hangUp()
  })
  await Promise.all(renewals)
  if (closing.length === 0) return
  const busy = closing.filter(({ phase }) => phase === 'passing').map(({ pid }) => pid)
  await control.terminate(busy)
  const deadline = performance.now() + hangMs
  while (closing.some(({ phase }) => phase !== 'closed') && performance.now() < deadline) {
    await setImmediate()
  }
}
