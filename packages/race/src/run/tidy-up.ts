import { setImmediate } from 'node:timers/promises'
import type { GatedConnection } from '../gate/gated-connection.ts'
import type { ScheduleSetting } from './play.ts'
import type { Played } from './schedule.ts'
import { sharedConnections } from './shared-connections.ts'
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
  // Whoever waits for a lock does not notice that nobody waits for it.
  const all = [...stage.wings.flatMap((wing) => [...wing.connections]), ...sharedConnections]
  const busy = all.flatMap(({ phase, pid }) => (phase === 'passing' ? [pid] : []))
  const isDirty = ({ phase, state, pid }: GatedConnection): boolean =>
    phase !== 'idle' || state !== 'I' || marked.has(pid)
  const closing: GatedConnection[] = []
  const renewals: Promise<void>[] = []
  stage.wings.forEach((wing, flow) => {
    const dirty = [...wing.connections].filter(isDirty)
    closing.push(...dirty)
    // A client that was taken from the pool and not given back is lost to it.
    const leaked = wing.pool.totalCount !== wing.pool.idleCount
    if (spent.has(flow) || leaked) {
      closing.push(...wing.connections)
      renewals.push(wing.renew())
    } else for (const connection of dirty) connection.hangUp()
  })
  for (const connection of sharedConnections) {
    if (!isDirty(connection)) continue
    closing.push(connection)
    connection.hangUp()
  }
  await Promise.all(renewals)
  // A pool that flows share must learn that a connection is gone.
  for (const connection of played.frozen) if (connection.owner !== undefined) connection.thaw()
  if (closing.length === 0) return
  await control.terminate(busy)
  const deadline = performance.now() + hangMs
  while (closing.some(({ phase }) => phase !== 'closed') && performance.now() < deadline) {
    await setImmediate()
  }
}
