import type { Lane } from './lane.ts'
import { connectionsOf, flowOfPid, nameOf, type Play, seen } from './play.ts'
import { recordStep } from './record-step.ts'
import { surelyBlocked } from './wait-graph.ts'

/** How long somebody outside of the run may stand in the way. */
const foreignMs = 1000

/** Waits until every statement that was let pass is back, or surely waits for another flow. */
export async function settle(play: Play): Promise<void> {
  let delay = 1
  while (!play.trouble) {
    for (let back = play.returns.shift(); back; back = play.returns.shift()) {
      await recordStep(play, back)
      play.stale = true
      delay = 1
    }
    const running = play.lanes.filter(({ status }) => status === 'running')
    if (running.length === 0) {
      const blocked = play.lanes.filter(({ status }) => status === 'blocked')
      if (!play.stale || blocked.length === 0) return
      play.stale = false
      await recheck(play, blocked)
      continue
    }
    // Answers mostly come by themselves; who looks too early only keeps the server busy.
    if (await play.signal.wait(delay)) continue
    await probe(play, running)
    delay = Math.min(delay * 2, 10)
  }
}

function ourPids(play: Play): Set<number> {
  return new Set(connectionsOf(play).map(({ pid }) => pid))
}

async function probe(play: Play, running: readonly Lane[]): Promise<void> {
  const { control, reader } = play.setting
  const waits = await control.waits(running.map((lane) => lane.connection?.pid ?? 0))
  const ours = ourPids(play)
  // The victim of a deadlock waits until the server has heard of it, and not for a lock.
  const asked = running.filter(({ victim }) => !victim)
  for (const [lane, blockers] of surelyBlocked(asked, waits, ours)) {
    const waitedFor = await reader.waitedFor(lane.connection?.pid ?? 0)
    // It may have come back while we asked.
    if (lane.status !== 'running') continue
    lane.status = 'blocked'
    lane.blockers = blockers
    lane.waitedFor = waitedFor
    nameBlockers(play, lane)
    seen(play, lane.flow)
  }
  for (const lane of running) {
    if (lane.status !== 'running') continue
    const blockers = waits.find(({ pid }) => pid === lane.connection?.pid)?.blockers ?? []
    await watch(play, lane, blockers, ours)
  }
}

/** Gives the run up for a statement that takes too long, and says what it waits for. */
async function watch(
  play: Play,
  lane: Lane,
  blockers: readonly number[],
  ours: ReadonlySet<number>,
): Promise<void> {
  const { control, hangMs } = play.setting
  const now = performance.now()
  const foreign = blockers.length > 0 && blockers.every((pid) => !ours.has(pid))
  lane.foreignSince = foreign ? (lane.foreignSince ?? now) : undefined
  const name = nameOf(play, lane.flow)
  if (lane.foreignSince !== undefined && now - lane.foreignSince > foreignMs) {
    play.trouble ??= {
      kind: 'external-blocker',
      flow: lane.flow,
      message:
        `${name} waits for a lock of a session that is not part of the run: ` +
        `${await control.describe(blockers)}. End it, or give the test a database of its own.`,
    }
  } else if (blockers.length === 0 && now - lane.since > hangMs) {
    play.trouble ??= {
      kind: 'hung-flow',
      flow: lane.flow,
      message:
        `A statement of ${name} ran for more than ${hangMs} ms without waiting for a lock: ` +
        `${lane.unit?.statements[0] ?? ''}`,
    }
  }
}

function nameBlockers(play: Play, lane: Lane): void {
  if (!lane.draft) return
  const flows = new Set(lane.draft.waitedFor)
  for (const pid of lane.blockers) {
    const flow = flowOfPid(play, pid)
    if (flow !== undefined) flows.add(flow)
  }
  lane.draft.waitedFor = [...flows].sort((one, other) => one - other)
}

async function recheck(play: Play, blocked: readonly Lane[]): Promise<void> {
  const waits = await play.setting.control.waits(blocked.map((lane) => lane.connection?.pid ?? 0))
  const still = surelyBlocked(blocked, waits, ourPids(play))
  for (const lane of blocked) {
    if (lane.status !== 'blocked') continue
    const blockers = still.get(lane)
    if (blockers) {
      lane.blockers = blockers
      nameBlockers(play, lane)
    } else {
      lane.status = 'running'
      lane.since = performance.now()
    }
  }
}
