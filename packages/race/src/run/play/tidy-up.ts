import { setTimeout } from 'node:timers/promises'
import type { GatedConnection } from '../../gate/gated-connection.ts'
import type { FlowIdentity } from '../connection/flow-identity.ts'
import type { ScheduleSetting } from './play.ts'
import type { Played } from './schedule.ts'
import { dormant, sharedConnections } from '../connection/shared-connections.ts'
import { untilClosed } from '../connection/sessions.ts'
import { shapeOf } from '../statement/statement-shape.ts'

/** How long the code of a crashed flow may take to come to its end. */
const lastWordsMs = 100

/**
 * Makes the connections fit for the next run. Most can be used again as they are, which saves more
 * than anything else; what may remember this run is reset or closed. Tells whose session may do so all the same.
 */
export async function tidyUp(
  setting: ScheduleSetting,
  played: Played,
): Promise<number | undefined> {
  await resetSound(setting, played)
  if (played.spent.length > 0) await replaceSpent(setting, played)
  const isPooled = (connection: GatedConnection): boolean =>
    setting.stage.wings.some((wing) => wing.isPooled(connection))
  // The clients of the code under test know what they have set; a new session would not have it.
  const lasting = [...played.leaving].find(
    (connection) => connection.phase === 'idle' && !isPooled(connection),
  )
  if (!lasting) return undefined
  const wing = setting.stage.wings.findIndex(({ connections }) => connections.has(lasting))
  return wing === -1 ? flowOf(lasting) : wing
}

/** Connections of flows that came to their end. */
async function resetSound({ stage, hangMs }: ScheduleSetting, played: Played): Promise<void> {
  const spent = new Set(played.spent)
  const residues = residuesOf(played)
  const leaving: GatedConnection[] = []
  const resets: Promise<void>[] = []

  function reset(connection: GatedConnection): void {
    const { phase, state, pid } = connection
    if (phase === 'closing') leaving.push(connection)
    if (phase !== 'idle') return
    if (state !== 'I') resets.push(connection.inject('ROLLBACK'))
    else if (residues.get(pid) === 'locks' || played.leaving.has(connection)) {
      resets.push(connection.inject('SELECT pg_catalog.pg_advisory_unlock_all()'))
    }
  }

  stage.wings.forEach((wing, flow) => {
    if (spent.has(flow)) return
    // A client that was taken from the pool and not given back is lost to it.
    const leaked = wing.pool.totalCount !== wing.pool.idleCount
    for (const connection of wing.connections) {
      const { phase, state, pid } = connection
      // Nobody has to see what is left of it: a new session has nothing of it.
      const isUsed = residues.has(pid) || played.leaving.has(connection)
      const dirty = phase !== 'idle' || state !== 'I' || isUsed
      if (!wing.isPooled(connection)) reset(connection)
      else if (leaked || dirty) {
        // Code that is still at it, which nobody waits for, must not learn of it by an error: that ends the process.
        if (!wing.isResting(connection)) connection.freeze()
        connection.hangUp()
        leaving.push(connection)
      }
    }
    if (leaked) wing.renewPool()
  })
  for (const connection of sharedConnections) {
    if (!spent.has(flowOf(connection))) reset(connection)
  }
  await Promise.all(resets)
  await untilClosed(leaving, hangMs)
}

/** Connections of flows that crashed, or did not come to an end. */
async function replaceSpent(setting: ScheduleSetting, played: Played): Promise<void> {
  const { stage, control, hangMs } = setting
  const ended = new Map(played.frozen.map(({ connection, flow }) => [connection, flow]))
  const busy: number[] = []
  for (const flow of played.spent) {
    stage.wings[flow]?.bar(true)
    const borrowed = [...sharedConnections].filter(
      (connection) => flowOf(connection) === flow && connection.phase !== 'idle',
    )
    for (const connection of [...(stage.wings[flow]?.connections ?? []), ...borrowed]) {
      // Whoever waits for a lock does not notice that nobody waits for it.
      if (connection.phase === 'passing') busy.push(connection.pid)
      connection.freeze()
      connection.hangUp()
      ended.set(connection, flow)
    }
  }
  await control.terminate(busy)
  await untilClosed([...ended.keys()], hangMs)

  for (const connection of ended.keys()) connection.bury()
  const lingering = await lastWords(played)
  for (const flow of played.spent) {
    const wing = stage.wings[flow]
    wing?.bar(false)
    if (lingering.has(flow)) await wing?.renew()
  }
  const revived = [...ended].filter(([, flow]) => !lingering.has(flow))
  await Promise.all(revived.map(([connection]) => connection.revive()))
  for (const flow of played.spent) {
    const wing = stage.wings[flow]
    if (wing && wing.pool.totalCount !== wing.pool.idleCount) wing.renewPool()
  }
  for (const connection of dormant) await connection.revive()
  dormant.clear()
}

/** Lets the code of spent flows come to its end, now that everything fails; tells whose does not. */
async function lastWords(played: Played): Promise<Set<number>> {
  const lingering = new Set(played.spent)
  const ends = played.spent.map(async (flow) => {
    await played.performances[flow]
    lingering.delete(flow)
  })
  await Promise.race([Promise.all(ends), setTimeout(lastWordsMs, undefined, { ref: false })])
  return lingering
}

function flowOf(connection: GatedConnection): number {
  return (connection.owner as FlowIdentity | undefined)?.flow ?? -1
}

/** What statements may have left in which session. */
function residuesOf(played: Played): Map<number, 'locks' | 'settings'> {
  const residues = new Map<number, 'locks' | 'settings'>()
  for (const { pid, statements } of played.steps) {
    for (const text of statements) {
      const { residue } = shapeOf(text)
      if (residue && residues.get(pid) !== 'locks') residues.set(pid, residue)
    }
  }
  return residues
}
