import type { TransactionState } from '../core/model.ts'
import { readErrorFields, writeError } from '../wire/backend.ts'
import type { Frame } from '../wire/frame-reader.ts'
import { flushMessage, syncMessage, writeExtended } from '../wire/frontend.ts'
import { createAnswerRecorder } from './answer-recorder.ts'
import { concatBytes, concatFrames } from './concat.ts'
import type { Piece, Reply } from './piece.ts'
import type { Passage, Settlement, Unit } from './unit.ts'

/** What a message of the server means for the unit that is under way. */
export type Progress =
  | 'under way'
  /** The client has to send the rest: it asked for types first. */
  | 'partly answered'
  /** A statement of a query string is done, and the next is still to come. */
  | 'part done'
  /** Executed, and not committed. */
  | 'held'
  /** Failed while its Sync was held back: the server waits for it. */
  | 'needs sync'
  | 'done'

/** One unit between being let pass and being answered. */
export interface Exchange {
  readonly unit: Unit
  readonly progress: Progress
  /** It was executed without an end, and did not fail: its transaction is open, whatever the server has said. */
  readonly unended: boolean
  /** The bytes that bring a piece of the unit to the server. */
  send(piece: Piece): Buffer
  /** The bytes that end it: its commit, if it is held. */
  finish(deliver: boolean): Buffer
  take(frame: Frame): Progress
  /** What the client is to be told by now. */
  answer(): Buffer | undefined
  settlement(after: TransactionState): Settlement
  /** Makes the error of a cancelled statement the one of a deadlock. */
  answerAsDeadlock(detail: string): void
}

export function createExchange(first: Unit, passage: Passage, state: TransactionState): Exchange {
  let unit = first
  let before = state
  let deliver = passage.deliver
  let progress: Progress = 'under way'
  let owed: Reply[] = []
  let bytes: Buffer[] = []
  let recorder = createAnswerRecorder()
  let deadlock: string | undefined
  // Sent with Flush for Sync; a simple query that was sent as an extended one.
  let holding = false
  let translated = false
  let partial = false
  let part = false
  // Executed, with a Sync still to come: the server has not said that a transaction is open, and it is.
  let unended = false

  function send(piece: Piece): Buffer {
    if (progress === 'partly answered') unit = continued(unit, piece.unit)
    progress = 'under way'
    const complete = piece.kind !== 'flush' && piece.kind !== 'part' && piece.executes
    const alone = state === 'I' || piece.block === 'implicit'
    holding = complete && passage.split && alone && unit.splittable
    part = piece.kind === 'part'
    const last = piece.kind === 'last'
    translated = part || last || (holding && piece.kind === 'simple')
    partial = piece.kind === 'flush' && !piece.executes
    unended = piece.kind === 'flush' && piece.executes
    if (translated) {
      const ready = last && !holding
      owed = ready ? [...translatedReplies, { kind: 'ready' }] : [...translatedReplies]
      const end = ready ? syncMessage : flushMessage
      return concatBytes([writeExtended(unit.statements[0] ?? ''), end])
    }
    if (!holding) {
      owed = [...piece.replies]
      return concatFrames(piece.frames)
    }
    owed = piece.replies.filter((reply) => reply.kind !== 'ready')
    return concatFrames(piece.frames.slice(0, -1), flushMessage)
  }

  function finish(answered: boolean): Buffer {
    if (progress === 'held') {
      // The connection is inside what it executed, although the server has not said so.
      before = 'T'
      deliver = answered
      recorder = createAnswerRecorder()
    }
    progress = 'under way'
    holding = false
    part = false
    owed = [{ kind: 'ready' }]
    return syncMessage
  }

  function take(frame: Frame): Progress {
    const seen = frame.type === 'E' && deadlock !== undefined ? asDeadlock(frame, deadlock) : frame
    recorder.see(seen, owed[0])
    if (!(translated && hidden.has(frame.type))) bytes.push(seen.bytes)
    progress = next(frame)
    return progress
  }

  function next(frame: Frame): Progress {
    if (frame.type === 'Z') owed = []
    else if (frame.type === 'E') {
      if (holding || part) return 'needs sync'
      unended = false
      // The server skips everything up to the next Sync.
      owed = owed.filter((reply) => reply.kind === 'ready')
    } else if (answers(frame, owed[0])) owed.shift()
    else return 'under way'
    if (owed.length > 0) return 'under way'
    if (partial) return 'partly answered'
    if (part) return 'part done'
    return holding ? 'held' : 'done'
  }

  return {
    get unit() {
      return unit
    },
    get progress() {
      return progress
    },
    get unended() {
      return unended
    },
    send,
    finish,
    take,
    answer() {
      const all = bytes
      bytes = []
      return deliver && all.length > 0 ? concatBytes(all) : undefined
    },
    settlement(after) {
      const held = progress === 'held'
      return { unit, answer: recorder.answer(), before, after: held ? 'T' : after, held }
    },
    answerAsDeadlock(detail) {
      deadlock = detail
    },
  }
}

const translatedReplies: readonly Reply[] = [
  { kind: 'parse' },
  { kind: 'bind' },
  { kind: 'describe', prepared: undefined },
  { kind: 'execute', prepared: undefined, formats: [] },
]

/** Answers that a simple query does not get. */
const hidden = new Set(['1', '2', 'n'])

function answers(frame: Frame, reply: Reply | undefined): boolean {
  switch (reply?.kind) {
    case 'parse':
      return frame.type === '1'
    case 'bind':
      return frame.type === '2'
    case 'close':
      return frame.type === '3'
    case 'describe':
      return frame.type === 'T' || frame.type === 'n'
    case 'execute':
      return frame.type === 'C' || frame.type === 'I' || frame.type === 's'
    case 'ready':
    case undefined:
      return false
  }
}

/** The whole of a unit whose statement was prepared first and is bound now. */
function continued(unit: Unit, rest: Unit): Unit {
  return {
    statements: rest.statements.length > 0 ? rest.statements : unit.statements,
    parameters: rest.parameters,
    parameterTypes: rest.parameterTypes,
    splittable: unit.splittable && (rest.splittable || rest.statements.length === 0),
    closesCycle: rest.closesCycle,
    ...(unit.from === undefined ? {} : { from: unit.from }),
  }
}

/**
 * A statement that was cancelled to end a deadlock fails as the server's own detector would have
 * failed it; what it leaves behind on the server is the same.
 */
function asDeadlock(frame: Frame, detail: string): Frame {
  const fields = readErrorFields(frame)
  if (fields.get('C') !== '57014') return frame
  fields.set('C', '40P01')
  fields.set('M', 'deadlock detected')
  fields.set('D', detail)
  fields.set('H', 'See server log for query details.')
  const bytes = writeError(fields)
  return { type: 'E', bytes, body: bytes.subarray(5) }
}
