import type { Choice, Decision, Pending, Step } from '../../core/model.ts'
import { crash } from './crash.ts'
import { fingerprint } from './fingerprint.ts'
import { joinFootprints } from '../footprint/derived.ts'
import type { DraftStep, Lane } from './lane.ts'
import { nameOf, note, type Play, seen } from './play.ts'
import { openStep } from './record-step.ts'
import { shapeOf } from '../statement/statement-shape.ts'

export type Decide = (decision: Decision, steps: readonly Step[]) => Choice

/** Lanes that may go on, in the order in which schedules count them. */
export function enabledLanes(play: Play): Lane[] {
  return inOrder(play.lanes.filter(({ status }) => status === 'parked' || status === 'held'))
}

export function inOrder(lanes: readonly Lane[]): Lane[] {
  return lanes.toSorted((one, other) => one.flow - other.flow || one.lane - other.lane)
}

/** Asks which of the lanes is to go on; undefined if the answer is none of them. */
export function ask(
  play: Play,
  decide: Decide,
  lanes: readonly Lane[],
  action: 'go' | 'victim',
): { readonly lane: Lane; readonly choice: Choice } | undefined {
  const blocked = play.lanes.filter(({ status }) => status === 'blocked').map(({ flow }) => flow)
  const decision: Decision = {
    index: play.steps.length,
    enabled: lanes.map((lane) => pendingOf(lane, action)),
    blocked: [...new Set(blocked)].sort((one, other) => one - other),
  }
  const choice = decide(decision, play.steps)
  const lane = lanes.find((one) => one.flow === choice.flow && one.lane === choice.lane)
  if (lane && (choice.action === 'victim') === (action === 'victim')) {
    play.decisions.push(decision)
    return { lane, choice }
  }
  play.trouble ??= {
    kind: 'diverged',
    message:
      `Step ${play.steps.length}: ${nameOf(play, choice.flow)} (connection ${choice.lane}) cannot ` +
      `${choice.action} here. The flows did not do what they did before.`,
  }
  return undefined
}

function pendingOf(lane: Lane, action: Choice['action']): Pending {
  const half = lane.status === 'held' ? 'commit' : 'whole'
  const statements = lane.unit?.statements ?? []
  return {
    choice: { flow: lane.flow, lane: lane.lane, action },
    half,
    statements,
    parameters: lane.unit?.parameters ?? [],
    fingerprint: fingerprint(statements, half, lane.lane, lane.units),
  }
}

/** Does what was chosen; what comes of it is seen when everything is at rest again. */
export async function apply(play: Play, lane: Lane, choice: Choice): Promise<void> {
  const half = lane.status === 'held' ? 'commit' : 'whole'
  const draft = openStep(play, lane, choice, half)
  if (choice.action === 'crash') {
    for (const { record } of play.lanes.filter(({ flow }) => flow === lane.flow)) {
      draft.footprint = joinFootprints(draft.footprint, record.ends('rollback'))
    }
    draft.after = 'I'
    return crash(play, lane.flow)
  }
  lane.draft = draft
  lane.choice = choice
  lane.waitedFor = undefined
  lane.since = performance.now()
  lane.foreignSince = undefined
  lane.status = 'running'
  if (lane.resume) return passPlace(play, lane, draft)
  const deliver = choice.action !== 'lose-answer'
  if (half === 'commit') return lane.connection?.commit(deliver)
  lane.units += 1
  const [text = ''] = draft.statements
  noteOddities(play, draft.statements)
  // What reads only may still be the last of those that share a transaction.
  const alone = lane.connection?.state === 'I'
  lane.connection?.pass({ split: !alone || !play.setting.reader.onlyReads(text), deliver })
}

function noteOddities(play: Play, statements: readonly string[]): void {
  for (const text of statements) {
    const { kind, unorderedLimit } = shapeOf(text)
    if (kind === 'query' && unorderedLimit && !play.setting.reader.namesOneRow(text)) {
      note(
        play,
        'unordered-limit',
        `LIMIT without ORDER BY: the server may choose any rows. ${text}`,
      )
    }
  }
}

/** A place that the flow marked: two of one name may be about the same thing elsewhere. */
function passPlace(play: Play, lane: Lane, draft: DraftStep): void {
  const { resume } = lane
  const [label = ''] = draft.statements
  const object = `step ${label.slice('-- '.length)}`
  draft.footprint = { ...draft.footprint, touches: [{ object, mode: 'exclusive' }] }
  lane.resume = undefined
  lane.draft = undefined
  lane.status = 'idle'
  lane.units += 1
  seen(play, lane.flow)
  resume?.()
}
