import type { TransactionState } from '../core/model.ts'
import {
  readBackendPid,
  readErrorFields,
  readTransactionState,
  writeError,
} from '../wire/backend.ts'
import { createFrameReader, type Frame } from '../wire/frame-reader.ts'
import { flushMessage, syncMessage, writeExtended, writeQuery } from '../wire/frontend.ts'
import { type AnswerRecorder, createAnswerRecorder } from './answer-recorder.ts'
import { createPieceCollector, type Piece, type Reply } from './piece.ts'
import type { Passage, Settlement, Unit } from './unit.ts'

/** Where the bytes of a connection go. */
export interface GateSinks {
  toServer(bytes: Buffer): void
  toClient(bytes: Buffer): void
  /** Ends the server's side; a session that still has a transaction open loses it. */
  endServer(): void
  endClient(): void
}

/** What somebody who schedules wants to hear of a connection. */
export interface GateEvents {
  /** A unit arrived at an empty gate and waits. */
  parked(connection: GatedConnection): void
  /** The unit that was let pass is finished, or executed and held. */
  settled(connection: GatedConnection, settlement: Settlement): void
  closed(connection: GatedConnection): void
}

export type GatePhase =
  | 'starting'
  /** Nothing to do: the client has what it asked for. */
  | 'idle'
  | 'parked'
  /** Under way at the server, or the client is about to send the rest. */
  | 'passing'
  | 'held'
  /** The server has been told that it is over, and has not ended its session yet. */
  | 'closing'
  | 'closed'

/**
 * One connection between a client and the server, on which nothing passes unless it is let pass.
 * Units that a client sends ahead wait in the order in which they came.
 */
export interface GatedConnection {
  /** The server's process; 0 until it has told. */
  readonly pid: number
  readonly phase: GatePhase
  readonly state: TransactionState
  /** It was ended from this side, and not by the server. */
  readonly left: boolean
  /** Whose unit waits, or was last let pass, where several flows share a connection. */
  readonly owner: unknown
  /** What waits, or is held, or is under way. */
  readonly unit: Unit | undefined
  pass(passage: Passage): void
  /** Commits what is held. */
  commit(deliver: boolean): void
  /** The client hears nothing any more, and nothing it sends is heard. */
  freeze(): void
  /** Runs a statement of our own on the idle connection; the client does not notice. */
  inject(text: string): Promise<void>
  /** The client of a frozen connection is told that it is over. */
  thaw(): void
  /** Ends the session on the server, as if the client had gone. */
  hangUp(): void
  /** Makes the answer to a cancelled statement the one of a deadlock. */
  answerAsDeadlock(detail: string): void
  fromClient(bytes: Buffer): void
  fromServer(bytes: Buffer): void
  clientGone(): void
  serverGone(): void
}

/** `identify` tells who is sending, at the moment of it. */
export function createGatedConnection(
  sinks: GateSinks,
  events: GateEvents,
  identify: () => unknown = () => undefined,
): GatedConnection {
  const collector = createPieceCollector()
  const clientReader = createFrameReader()
  const serverReader = createFrameReader()
  const queue: (Piece & { readonly owner: unknown })[] = []

  let pid = 0
  let phase: GatePhase = 'starting'
  let state: TransactionState = 'I'
  let frozen = false
  let left = false
  let owner: unknown
  let injected: (() => void) | undefined
  let deadlock: string | undefined

  // Of the unit under way.
  let current: Unit | undefined
  let passage: Passage = { split: false, deliver: true }
  let before: TransactionState = 'I'
  let owed: Reply[] = []
  let answer: Buffer[] = []
  let recorder: AnswerRecorder = createAnswerRecorder()
  // Sent with Flush for Sync; translated from a simple query; a part of a cycle that goes on.
  let holding = false
  let translated = false
  let partial = false

  function fromClient(bytes: Buffer): void {
    if (frozen || phase === 'closing' || phase === 'closed') return
    // Authentication is between the two of them.
    if (phase === 'starting') return sinks.toServer(bytes)
    for (const frame of clientReader.push(bytes)) {
      // Data of a COPY that is under way.
      if (frame.type === 'd' || frame.type === 'c' || frame.type === 'f') {
        sinks.toServer(frame.bytes)
        continue
      }
      const piece = collector.push(frame)
      if (piece) queue.push({ ...piece, owner: identify() })
    }
    advance()
  }

  /** Looks at the next piece, if the connection is free for it. */
  function advance(): void {
    const head = queue[0]
    if (!head) return
    if (head.kind === 'terminate' && (phase === 'idle' || partial)) {
      sinks.toServer(concat(head.frames))
      return hangUp()
    }
    if (phase === 'passing' && partial && owed.length === 0) {
      // The rest of what was let pass: a client that asked for types first.
      queue.shift()
      const { statements, parameters, splittable } = head.unit
      const known = current?.statements ?? []
      current = {
        statements: known.length > 0 ? known : statements,
        parameters,
        splittable: (current?.splittable ?? false) && (splittable || statements.length === 0),
        closesCycle: head.unit.closesCycle,
      }
      return send(head)
    }
    if (phase !== 'idle') return
    phase = 'parked'
    current = head.unit
    owner = head.owner
    events.parked(connection)
  }

  function pass(how: Passage): void {
    const head = queue.shift()
    if (phase !== 'parked' || !head) throw new Error('nothing waits at this gate')
    phase = 'passing'
    passage = how
    before = state
    answer = []
    recorder = createAnswerRecorder()
    send(head)
  }

  function send(piece: Piece): void {
    const complete = piece.kind !== 'flush' && piece.executes
    const split = complete && passage.split && state === 'I' && (current?.splittable ?? false)
    holding = split
    translated = split && piece.kind === 'simple'
    partial = piece.kind === 'flush' && !piece.executes
    if (!split) {
      owed = [...piece.replies]
      return sinks.toServer(concat(piece.frames))
    }
    if (piece.kind === 'simple') {
      owed = [
        { kind: 'parse' },
        { kind: 'bind' },
        { kind: 'describe', prepared: undefined },
        { kind: 'execute', prepared: undefined, formats: [] },
      ]
      const [text = ''] = piece.unit.statements
      return sinks.toServer(Buffer.concat([writeExtended(text), flushMessage]))
    }
    owed = piece.replies.filter((reply) => reply.kind !== 'ready')
    sinks.toServer(concat(piece.frames.slice(0, -1), flushMessage))
  }

  function commit(deliver: boolean): void {
    if (phase !== 'held') throw new Error('nothing is held on this connection')
    phase = 'passing'
    passage = { ...passage, deliver }
    // The connection is inside what it executed, although the server has not said so.
    before = 'T'
    recorder = createAnswerRecorder()
    finishCycle()
  }

  function inject(text: string): Promise<void> {
    if (phase !== 'idle') throw new Error('the connection is in use')
    phase = 'passing'
    passage = { split: false, deliver: false }
    answer = []
    owed = [{ kind: 'ready' }]
    holding = false
    partial = false
    translated = false
    return new Promise((resolve) => {
      injected = resolve
      sinks.toServer(writeQuery(text))
    })
  }

  function finishCycle(): void {
    holding = false
    owed = [{ kind: 'ready' }]
    sinks.toServer(syncMessage)
  }

  function fromServer(bytes: Buffer): void {
    const aside: Buffer[] = []
    for (const frame of serverReader.push(bytes)) take(frame, aside)
    if (aside.length > 0 && !frozen) sinks.toClient(concatBytes(aside))
  }

  /** `aside` collects what the client gets at once, whatever is under way. */
  function take(frame: Frame, aside: Buffer[]): void {
    if (phase === 'starting') {
      aside.push(frame.bytes)
      if (frame.type === 'K') pid = readBackendPid(frame)
      if (frame.type !== 'Z') return
      phase = 'idle'
      return advance()
    }
    if (phase === 'closing') return
    // A COPY waits for the client's data, a notification for nobody.
    if (phase !== 'passing' || frame.type === 'G' || frame.type === 'A') {
      aside.push(frame.bytes)
      return
    }
    let seen = frame
    if (frame.type === 'E' && deadlock !== undefined) seen = asDeadlock(frame, deadlock)
    recorder.see(seen, owed[0])
    if (!(translated && (frame.type === '1' || frame.type === '2' || frame.type === 'n'))) {
      answer.push(seen.bytes)
    }
    settleReply(frame)
  }

  function settleReply(frame: Frame): void {
    if (frame.type === 'E') {
      // The server skips everything up to the next Sync.
      if (holding) return finishCycle()
      owed = owed.filter((reply) => reply.kind === 'ready')
      if (state === 'T') state = 'E'
      return owed.length === 0 ? pieceDone() : undefined
    }
    const kind = owed[0]?.kind
    if (frame.type === 'Z') {
      state = readTransactionState(frame)
      owed = []
      return pieceDone()
    }
    const answered =
      (kind === 'parse' && frame.type === '1') ||
      (kind === 'bind' && frame.type === '2') ||
      (kind === 'close' && frame.type === '3') ||
      (kind === 'describe' && (frame.type === 'T' || frame.type === 'n')) ||
      (kind === 'execute' && (frame.type === 'C' || frame.type === 'I' || frame.type === 's'))
    if (!answered) return
    owed.shift()
    if (owed.length === 0) pieceDone()
  }

  function pieceDone(): void {
    if (partial) {
      deliver()
      return advance()
    }
    deadlock = undefined
    phase = holding ? 'held' : 'idle'
    report(holding)
  }

  function report(held: boolean): void {
    if (injected) return finishInjected()
    if (!current) return
    const settlement: Settlement = {
      unit: current,
      answer: recorder.answer(),
      before,
      after: held ? 'T' : state,
      held,
    }
    if (held) return events.settled(connection, settlement)
    current = undefined
    // First the record, then the client: it may send its next unit at once.
    events.settled(connection, settlement)
    deliver()
    advance()
  }

  function finishInjected(): void {
    answer = []
    injected?.()
    injected = undefined
    advance()
  }

  function deliver(): void {
    const bytes = answer
    answer = []
    if (!frozen && passage.deliver && bytes.length > 0) sinks.toClient(concatBytes(bytes))
  }

  function hangUp(): void {
    if (phase === 'closing' || phase === 'closed') return
    phase = 'closing'
    left = true
    queue.length = 0
    sinks.endServer()
  }

  function clientGone(): void {
    if (!frozen) hangUp()
  }

  function serverGone(): void {
    if (phase === 'closed') return
    phase = 'closed'
    injected?.()
    queue.length = 0
    if (!frozen) {
      deliver()
      sinks.endClient()
    }
    events.closed(connection)
  }

  const connection: GatedConnection = {
    get pid() {
      return pid
    },
    get phase() {
      return phase
    },
    get state() {
      return state
    },
    get left() {
      return left
    },
    get owner() {
      return owner
    },
    get unit() {
      return current
    },
    pass,
    commit,
    freeze() {
      frozen = true
    },
    thaw() {
      if (!frozen) return
      frozen = false
      if (phase === 'closed') sinks.endClient()
    },
    inject,
    hangUp,
    answerAsDeadlock(detail) {
      deadlock = detail
    },
    fromClient,
    fromServer,
    clientGone,
    serverGone,
  }
  return connection
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

function concat(frames: readonly Frame[], ...more: readonly Buffer[]): Buffer {
  return concatBytes([...frames.map((frame) => frame.bytes), ...more])
}

function concatBytes(parts: readonly Buffer[]): Buffer {
  const [first] = parts
  return parts.length === 1 && first ? first : Buffer.concat(parts)
}
