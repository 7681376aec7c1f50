import { ask, type Decide, inOrder } from './choices.ts'
import { giveUp } from './give-up.ts'
import type { Lane } from './lane.ts'
import { note, type Play } from './play.ts'
import { openStep } from './record-step.ts'
import { settle } from './settle.ts'

/**
 * Lets one of those who wait in a circle die. PostgreSQL would do so as soon as the deadlock_timeout
 * of one of them has passed, and whose does first is chance: so it is a choice of the schedule. The
 * statement is cancelled, and its error made the one of a deadlock; the server's side is the same.
 */
export async function endCircle(
  play: Play,
  decide: Decide,
  circle: readonly Lane[],
): Promise<void> {
  // A mere place in a queue: the server may resolve it by letting somebody pass.
  if (!(await isHard(play, circle))) return awaitServer(play)
  if (play.setting.victims === 'first') {
    note(play, 'server-chose-victim', 'Of a deadlock the one that waited first was ended.')
    const first = circle.reduce((one, other) => (one.since <= other.since ? one : other))
    return kill(play, first, circle)
  }
  const chosen = ask(play, decide, inOrder(circle), 'victim')
  if (!chosen) return
  const waiting = chosen.lane.draft
  const draft = openStep(play, chosen.lane, chosen.choice, 'whole')
  draft.statements = []
  draft.parameters = []
  await kill(play, chosen.lane, circle)
  if (!waiting) return
  draft.answer = waiting.answer
  draft.after = waiting.after
  draft.footprint = waiting.footprint
}

async function kill(play: Play, victim: Lane, circle: readonly Lane[]): Promise<void> {
  victim.connection?.answerAsDeadlock(
    circle
      .map(
        (lane, index) => `Process ${pidOf(lane)} waits for process ${pidOf(next(circle, index))}.`,
      )
      .join('\n'),
  )
  victim.victim = true
  victim.status = 'running'
  await play.setting.control.cancel(pidOf(victim))
  await settle(play)
}

async function isHard(play: Play, circle: readonly Lane[]): Promise<boolean> {
  for (const [index, lane] of circle.entries()) {
    const held = await play.setting.control.holdsAgainst(pidOf(lane), pidOf(next(circle, index)))
    if (!held) return false
  }
  return true
}

function next(circle: readonly Lane[], index: number): Lane | undefined {
  return circle[(index + 1) % circle.length]
}

function pidOf(lane: Lane | undefined): number {
  return lane?.connection?.pid ?? 0
}

/** Waits a little, and lets everything be looked at once more: the circle may be open by now. */
async function awaitServer(play: Play): Promise<void> {
  play.circleSince ??= performance.now()
  if (performance.now() - play.circleSince > play.setting.hangMs) return giveUp(play)
  await play.signal.wait(20)
  play.stale = true
}
