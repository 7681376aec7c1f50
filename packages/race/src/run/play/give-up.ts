import type { Trouble } from '../../core/model.ts'
import { connectionsOf, flowOfPid, nameOf, type Play } from './play.ts'

/** Nobody can be let go on: waits for a flow that does something else, but not for ever. */
export async function waitForAnything(play: Play): Promise<void> {
  if (waitsForTheDead(play)) return
  const before = play.activity
  const deadline = performance.now() + play.setting.hangMs
  while (play.activity === before && performance.now() < deadline) {
    await play.signal.wait(Math.ceil(deadline - performance.now()))
  }
  if (play.activity === before) giveUp(play)
}

const leftOpen = 'its transaction was left open. Commit, roll back, and release the client.'
const leftLocked =
  'an advisory lock of its session, as pg_advisory_lock() takes it. Call pg_advisory_unlock() before the client is released, or take pg_advisory_xact_lock().'

/** A flow that has ended will not let go of what it still holds. */
function waitsForTheDead(play: Play): boolean {
  for (const lane of play.lanes.filter(({ status }) => status === 'blocked')) {
    const blocker = lane.blockers.find((pid) => {
      const flow = flowOfPid(play, pid)
      return flow !== undefined && play.performers[flow]?.outcome !== undefined
    })
    const owner = blocker === undefined ? undefined : flowOfPid(play, blocker)
    if (owner === undefined) continue
    // Outside of a transaction only a lock of the session is left.
    const open = connectionsOf(play).find(({ pid }) => pid === blocker)?.state !== 'I'
    play.trouble ??= {
      kind: 'hung-flow',
      flow: lane.flow,
      message:
        `${nameOf(play, lane.flow)} waits for a lock that ${nameOf(play, owner)} still holds although ` +
        `it has ended: ${open ? leftOpen : leftLocked}`,
    }
    return true
  }
  return false
}

/** A statement of a transaction was sent by another client than the one that began it. */
function waitsForItself(play: Play): Trouble | undefined {
  const lane = play.lanes.find(({ status, flow, blockers }) => {
    return status === 'blocked' && blockers.some((pid) => flowOfPid(play, pid) === flow)
  })
  const holder = play.lanes.find(({ connection }) => {
    return connection !== undefined && lane?.blockers.includes(connection.pid) === true
  })
  if (lane === undefined || holder === undefined) return undefined
  const text = (lane.unit?.statements[0] ?? '').replaceAll(/\s+/g, ' ').slice(0, 120)
  const place = lane.draft === undefined ? '' : ` (${lane.draft.index + 1})`
  return {
    kind: 'hung-flow',
    flow: lane.flow,
    message:
      `${nameOf(play, lane.flow)} waits for a lock that it holds itself: its connection ${holder.lane + 1} has the lock in an open transaction, ` +
      `and its connection ${lane.lane + 1} waits for it${place}: ${text}. ` +
      'Send every statement of a transaction through the client that began it: client.query(), not pool.query().',
  }
}

export function giveUp(play: Play): void {
  const { stage, hangMs } = play.setting
  const flow = play.performers.findIndex(({ outcome }) => outcome === undefined)
  const name = nameOf(play, flow)
  const waiting = stage.wings[flow]?.pool.waitingCount ?? 0
  play.trouble ??= waitsForItself(play)
  play.trouble ??=
    waiting > 0
      ? {
          kind: 'pool-too-small',
          flow,
          message:
            `${name} waits for a connection of its pool, and all of them are in use by itself. ` +
            'Give the pool as many connections as the flow uses at once.',
        }
      : {
          kind: 'hung-flow',
          flow,
          message:
            `${name} neither ended nor sent a statement for ${hangMs} ms. ` +
            'It waits for something that does not come: a promise, another flow, a connection.',
        }
}
