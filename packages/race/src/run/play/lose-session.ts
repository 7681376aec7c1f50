import { joinFootprints } from '../footprint/derived.ts'
import type { Lane } from './lane.ts'
import { nameOf, type Play } from './play.ts'

/**
 * A session ended: what it held is free, and that belongs to the last thing that its flow did. Called
 * when everything that the session answered is recorded.
 */
export function loseSession(play: Play, lane: Lane): void {
  const { draft, record } = lane
  lane.status = 'closed'
  lane.draft = undefined
  if (play.performers[lane.flow]?.outcome?.kind === 'crashed') return
  const last = draft ?? play.steps.findLast((step) => step.flow === lane.flow)
  if (last) last.footprint = joinFootprints(last.footprint, record.lost())
  record.clear()
  if (!draft) return
  const message = 'the connection was lost'
  draft.answer = { rowCount: 0, error: { sqlstate: '08006', message } }
  // A client that gave up on its statement knows what it did.
  if (lane.connection?.left) return
  play.trouble ??= {
    kind: 'connection-lost',
    flow: lane.flow,
    message:
      `The server ended a session of ${nameOf(play, lane.flow)} while it ran a statement. ` +
      'Look into the log of the server.',
  }
}
