import type { Place, TransactionState } from '../core/model.ts'
import { readBackendPid, readDataRow, readTransactionState } from '../wire/backend.ts'
import { createFrameReader, type Frame } from '../wire/frame-reader.ts'
import { syncMessage, writeParse, writeQuery } from '../wire/frontend.ts'
import { createAttribution, type OwnedPiece } from './attribution.ts'
import { concatBytes, concatFrames } from './concat.ts'
import { createExchange, type Exchange } from './exchange.ts'
import { createObituary } from './obituary.ts'
import { createPieceCollector, type Piece } from './piece.ts'
import { createSessionFacts, type SessionFacts } from './session-facts.ts'
import { takeApart } from './take-apart.ts'
import type { Passage, Settlement, Unit } from './unit.ts'

/** Where the bytes of a connection go. */
export interface GateSinks {
  toServer(bytes: Buffer): void
  toClient(bytes: Buffer): void
  /** Ends the server's side; a session that still has a transaction open loses it. */
  endServer(): void
  endClient(): void
  /** Opens another session for the same client; resolves with its process. */
  reopen(): Promise<number>
  /** Where the client was asked to send what arrives, if it is known. */
  placeOfClient?(): Place | undefined
  /** What nobody has marked belongs to whoever has the transaction. */
  readonly inherits?: boolean
  /** A question to each new session, before its client may use it. */
  readonly question?: string
}

/** What somebody who schedules wants to hear of a connection. */
export interface GateEvents {
  /** A unit arrived at an empty gate and waits. */
  parked(connection: GatedConnection): void
  /** The unit that was let pass is finished, or executed and held. */
  settled(connection: GatedConnection, settlement: Settlement): void
  /** The session is over. */
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
  /** The first value of the session's answer to the question, if one was asked. */
  readonly told: string | undefined
  readonly facts: SessionFacts
  /** What waits, or is held, or is under way. */
  readonly unit: Unit | undefined
  pass(passage: Passage): void
  /** Commits what is held. */
  commit(deliver: boolean): void
  /** Makes the answer to a cancelled statement the one of a deadlock. */
  answerAsDeadlock(detail: string): void
  /** Runs a statement of our own on the idle connection; the client does not notice. */
  inject(text: string): Promise<void>
  /** Ends the session on the server, as if the client had gone. */
  hangUp(): void
  /** The client hears nothing any more, as if its process had died. */
  freeze(): void
  /** The client of a frozen connection is told by errors that its session is over. */
  bury(): void
  /** Gives the client of a frozen connection a new session, as if nothing had happened; what it sent meanwhile is next. */
  revive(): Promise<void>
  fromClient(bytes: Buffer): void
  fromServer(bytes: Buffer): void
  clientGone(): void
  serverGone(): void
}

/** Tells who is sending, at the moment of it. */
export type Identify = (unit: Unit, connection: GatedConnection) => unknown

export function createGatedConnection(
  sinks: GateSinks,
  events: GateEvents,
  identify: Identify = () => undefined,
): GatedConnection {
  const collector = createPieceCollector()
  const clientReader = createFrameReader()
  let serverReader = createFrameReader()
  const queue: OwnedPiece[] = []
  let obituary = createObituary()

  let pid = 0
  let phase: GatePhase = 'starting'
  let state: TransactionState = 'I'
  /** Frozen: the client hears nothing. Buried: it hears that its session is over. */
  let client: 'alive' | 'frozen' | 'buried' | 'gone' = 'alive'
  let left = false
  let owner: unknown
  const attribute = createAttribution(
    (sent) => identify(sent, connection),
    () => sinks.placeOfClient?.(),
  )
  let unit: Unit | undefined
  let exchange: Exchange | undefined
  /** The piece that the client waits for an answer to. */
  let unanswered: Piece | undefined
  let injected: (() => void) | undefined
  let told: string | undefined
  const facts = createSessionFacts()
  /** What lets the client begin, kept until the session has answered the question. */
  let welcome: Buffer | undefined

  function fromClient(bytes: Buffer): void {
    if (client === 'gone') return
    // Authentication is between the two of them.
    if (phase === 'starting') return client === 'alive' ? sinks.toServer(bytes) : undefined
    for (const frame of clientReader.push(bytes)) {
      // Data of a COPY that is under way.
      if (frame.type === 'd' || frame.type === 'c' || frame.type === 'f') {
        if (client === 'alive') sinks.toServer(frame.bytes)
        continue
      }
      const piece = collector.push(frame)
      if (piece) queue.push(attribute(piece))
    }
    if (client === 'buried') condole()
    else if (client === 'alive') advance()
  }

  /** Looks at the next piece, if the connection is free for it. */
  function advance(): void {
    takeHeadApart()
    const [head] = queue
    if (!head || phase === 'closing' || phase === 'closed') return
    const continues = exchange?.progress === 'partly answered'
    if (head.kind === 'terminate') {
      if (phase !== 'idle' && !continues) return
      sinks.toServer(concatFrames(head.frames))
      return hangUp()
    }
    if (exchange && continues) {
      // The rest of what was let pass: a client that asked for types first.
      queue.shift()
      unanswered = head
      sinks.toServer(exchange.send(head))
      unit = exchange.unit
      return
    }
    if (phase !== 'idle') return
    phase = 'parked'
    unit = head.unit
    // Who begins a transaction says so at its first statement, and has it to its end.
    owner = head.owner ?? (sinks.inherits === true && state !== 'I' ? owner : undefined)
    events.parked(connection)
  }

  /** Only now is it known whether a transaction is open. */
  function takeHeadApart(): void {
    const [head] = queue
    const parts = head && phase === 'idle' ? takeApart(head, state) : undefined
    if (head && parts) queue.splice(0, 1, ...parts.map((part) => ({ ...part, owner: head.owner })))
  }

  function pass(passage: Passage): void {
    const head = queue.shift()
    if (phase !== 'parked' || !head) throw new Error('nothing waits at this gate')
    phase = 'passing'
    unanswered = head
    exchange = createExchange(head.unit, passage, state)
    sinks.toServer(exchange.send(head))
  }

  function commit(deliver: boolean): void {
    if (phase !== 'held' || !exchange) throw new Error('nothing is held on this connection')
    phase = 'passing'
    sinks.toServer(exchange.finish(deliver))
  }

  function inject(text: string): Promise<void> {
    return injectBytes(writeQuery(text))
  }

  function injectBytes(bytes: Buffer): Promise<void> {
    if (phase !== 'idle') throw new Error('the connection is in use')
    phase = 'passing'
    return new Promise((resolve) => {
      injected = resolve
      sinks.toServer(bytes)
    })
  }

  function fromServer(bytes: Buffer): void {
    const aside: Buffer[] = []
    for (const frame of serverReader.push(bytes)) take(frame, aside)
    if (aside.length > 0 && client === 'alive') sinks.toClient(concatBytes(aside))
  }

  /** `aside` collects what the client gets at once, whatever is under way. */
  function take(frame: Frame, aside: Buffer[]): void {
    if (frame.type === 'S') facts.see(frame)
    if (phase === 'starting') return begin(frame, aside)
    if (phase === 'closing') return
    if (injected) return frame.type === 'Z' ? finishInjected(frame) : undefined
    // A COPY waits for the client's data, a notification for nobody.
    if (phase !== 'passing' || !exchange || frame.type === 'G' || frame.type === 'A') {
      aside.push(frame.bytes)
      return
    }
    if (frame.type === 'Z') state = readTransactionState(frame)
    if (frame.type === 'E' && state === 'T') state = 'E'
    const progress = exchange.take(frame)
    if (progress === 'needs sync') {
      sinks.toServer(exchange.finish(true))
      // The rest of a query string is not run after a failure.
      while (unanswered?.kind === 'part' && queue.shift()?.kind === 'part');
    } else if (progress === 'part done') {
      state = unanswered?.block === 'none' ? 'I' : 'T'
      finish(exchange)
    } else if (progress === 'partly answered') {
      deliver(exchange)
      advance()
    } else if (progress === 'held') {
      phase = 'held'
      events.settled(connection, exchange.settlement(state))
    } else if (progress === 'done') {
      if (exchange.unended && state === 'I') state = 'T'
      finish(exchange)
    }
  }

  function begin(frame: Frame, aside: Buffer[]): void {
    if (welcome) {
      if (frame.type === 'D') told = readDataRow(frame)[0]?.toString()
    } else if (frame.type === 'Z' && sinks.question !== undefined) {
      welcome = frame.bytes
      return sinks.toServer(writeQuery(sinks.question))
    } else {
      aside.push(frame.bytes)
      if (frame.type === 'K') pid = readBackendPid(frame)
    }
    if (frame.type !== 'Z') return
    if (welcome) aside.push(welcome)
    phase = 'idle'
    advance()
  }

  function finish(done: Exchange): void {
    phase = 'idle'
    exchange = undefined
    unit = undefined
    // First the record, then the client: it may send its next unit at once.
    events.settled(connection, done.settlement(state))
    deliver(done)
    advance()
  }

  function finishInjected(frame: Frame): void {
    state = readTransactionState(frame)
    phase = 'idle'
    injected?.()
    injected = undefined
    advance()
  }

  function deliver(of: Exchange): void {
    const bytes = of.answer()
    if (bytes === undefined || client !== 'alive') return
    unanswered = undefined
    sinks.toClient(bytes)
  }

  function hangUp(): void {
    if (phase === 'closing' || phase === 'closed') return
    phase = 'closing'
    left = true
    sinks.endServer()
  }

  function clientGone(): void {
    if (client === 'gone') return
    client = 'gone'
    queue.length = 0
    if (phase === 'closed') sinks.endClient()
    else hangUp()
  }

  function serverGone(): void {
    if (phase === 'closed') return
    phase = 'closed'
    injected?.()
    injected = undefined
    if (client === 'alive' && exchange) deliver(exchange)
    if (client === 'alive' || client === 'gone') {
      client = 'gone'
      sinks.endClient()
    }
    events.closed(connection)
  }

  function bury(): void {
    if (client !== 'frozen') return
    client = 'buried'
    obituary = createObituary()
    if (unanswered) tell(unanswered)
    unanswered = undefined
    condole()
  }

  function condole(): void {
    for (const piece of queue.splice(0)) tell(piece)
  }

  function tell(piece: Piece): void {
    const bytes = obituary.answer(piece)
    if (bytes) sinks.toClient(bytes)
    if (piece.kind !== 'terminate') return
    client = 'gone'
    sinks.endClient()
  }

  async function revive(): Promise<void> {
    if (client === 'gone' || client === 'alive' || phase !== 'closed') return
    const fresh = await sinks.reopen()
    pid = fresh
    client = 'alive'
    left = false
    state = 'I'
    exchange = undefined
    unit = undefined
    unanswered = undefined
    serverReader = createFrameReader()
    phase = 'idle'
    // What the client has prepared by name it will use again.
    const named = collector.named()
    const parses = named.map(([name, { text, types }]) => writeParse(name, text, types))
    if (parses.length > 0) await injectBytes(concatBytes([...parses, syncMessage]))
    // What the client sent while it had no session.
    advance()
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
    facts,
    get told() {
      return told
    },
    get unit() {
      return unit
    },
    pass,
    commit,
    inject,
    hangUp,
    freeze() {
      if (client === 'alive') client = 'frozen'
    },
    bury,
    revive,
    answerAsDeadlock: (detail) => exchange?.answerAsDeadlock(detail),
    fromClient,
    fromServer,
    clientGone,
    serverGone,
  }
  return connection
}
