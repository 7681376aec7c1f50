import { orAsOne } from '../../core/as-one.ts'
import type { Choice, Step } from '../../core/model.ts'
import type { Beyond } from '../statement/beyond.ts'
import { crash } from './crash.ts'
import { joinFootprints } from '../footprint/derived.ts'
import type { DraftStep, Lane, Return } from './lane.ts'
import { loseSession } from './lose-session.ts'
import { nameOf, note, type Play } from './play.ts'

/** Opens the record of a step that was chosen; it is completed when its statement comes back. */
export function openStep(play: Play, lane: Lane, choice: Choice, half: Step['half']): DraftStep {
  const draft: DraftStep = {
    index: play.steps.length,
    flow: lane.flow,
    lane: lane.lane,
    choice,
    half,
    statements: lane.unit?.statements ?? [],
    parameters: lane.unit?.parameters ?? [],
    ...(lane.unit?.from === undefined ? {} : { from: lane.unit.from }),
    before: half === 'commit' ? 'T' : (lane.connection?.state ?? 'I'),
    after: lane.connection?.state ?? 'I',
    waitedFor: [],
    answer: { rowCount: 0 },
    footprint: { opaque: false, touches: [], isolation: lane.record.isolation },
    pid: lane.connection?.pid ?? 0,
  }
  play.steps.push(draft)
  return draft
}

/** Completes the step of a lane whose statement came back. */
export async function recordStep(play: Play, { lane, settlement }: Return): Promise<void> {
  const { draft, connection } = lane
  if (!draft || !connection) return
  if (draft.waitedFor.length > 0) draft.resumedAfter = play.steps.length - 1
  draft.after = settlement.after
  const { error } = settlement.answer
  if (lane.committing) {
    // Part of the step that executed it; only an error of the commit is news.
    lane.committing = false
    if (error) draft.answer = { ...draft.answer, error }
    return finish(play, lane)
  }
  draft.answer = settlement.answer
  if (draft.half === 'commit') {
    const how = error ? 'rollback' : 'commit'
    draft.footprint = lane.record.ends(how)
    lane.record.clear(how)
    return finish(play, lane)
  }
  noteDeadlock(play, lane, draft)
  draft.parameters = settlement.unit.parameters
  const { footprint, idle, beyond, leaves, levelInDoubt, countsAsOne } =
    await play.setting.reader.derive({
      settlement,
      pid: connection.pid,
      open: connection.phase !== 'closing' && connection.phase !== 'closed',
      record: lane.record,
      isPlain: connection.facts.isPlain,
      waitedFor: lane.waitedFor,
    })
  draft.footprint = footprint
  if (leaves === true) play.leaving.add(connection)
  if (beyond !== undefined) noteBeyond(play, lane.flow, beyond)
  if (levelInDoubt === true) noteLevel(play, lane.flow)
  if (countsAsOne !== undefined) noteOne(play, countsAsOne)
  if (!settlement.held) return finish(play, lane)
  if (play.setting.split && !idle) {
    draft.half = 'execute'
    lane.status = 'held'
    return
  }
  if (!idle) draft.footprint = joinFootprints(footprint, lane.record.ends('commit'))
  lane.record.clear()
  lane.committing = true
  lane.status = 'running'
  lane.since = performance.now()
  connection.commit(lane.choice?.action !== 'lose-answer')
}

async function finish(play: Play, lane: Lane): Promise<void> {
  lane.draft = undefined
  if (lane.connection?.phase === 'closed') loseSession(play, lane)
  if (lane.choice?.action === 'lose-answer') await crash(play, lane.flow)
}

function noteBeyond(play: Play, flow: number, { what, isInside }: Beyond): void {
  const next = isInside ? ` Keep it out of the function, or ${orAsOne}.` : ''
  play.uncontrolled ??= `A statement of ${nameOf(play, flow)} uses ${what}: what that says or does is no part of what is compared and put in order. It depends on what others do at that moment, on another database, or on a sequence, and orders that differ only there are not told apart.${next}`
}

function noteLevel(play: Play, flow: number): void {
  play.uncontrolled ??= `A statement of ${nameOf(play, flow)} may have changed the isolation level of its session in a way that is not followed: by set_config() or in a function, in a string of several statements, or before a ROLLBACK TO. Set it in a statement of its own: BEGIN ISOLATION LEVEL …, or SET.`
}

function noteOne(play: Play, what: string): void {
  note(
    play,
    'counted-as-one',
    `Counted as one statement, by functions: 'atomic': ${what}; orders in which others act inside were not run`,
  )
}

/** A deadlock that the server's own detector found before we ended it. */
function noteDeadlock(play: Play, lane: Lane, draft: DraftStep): void {
  if (draft.answer.error?.sqlstate !== '40P01') return
  play.deadlocks += 1
  if (lane.victim) lane.victim = false
  else note(play, 'server-chose-victim', 'The server chose itself who died of a deadlock.')
}
