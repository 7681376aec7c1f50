import {
  createFrameReader,
  createStartupReader,
  type Frame,
} from '../../packages/race/src/wire/frame-reader.ts'
import { readTransactionState } from '../../packages/race/src/wire/backend.ts'
import { readBind, readParse, readQuery } from '../../packages/race/src/wire/frontend.ts'
import { readOpening } from '../../packages/race/src/wire/startup.ts'

/**
 * What a client's message does when the server gets it: `commit` ends a transaction of several statements;
 * `autocommit` commits a statement by itself.
 */
export type Commits = 'commit' | 'autocommit'

export interface ClientPart {
  readonly bytes: Buffer
  /** Set on the message without which nothing is committed. */
  readonly commits?: Commits
}

/** Follows both sides of one connection, as far as one has to in order to know where commits are. */
export interface Conversation {
  /** What is to be passed on, in parts; `answer` is to be sent back first. */
  fromClient(chunk: Buffer): { readonly parts: readonly ClientPart[]; readonly answer?: Buffer }
  /** Whether this completes an answer: the server is ready for the next query. */
  fromServer(chunk: Buffer): boolean
}

const begins = /^\s*(begin|start\s+transaction)\b/i
const ends = /^\s*(commit|end)\b/i

export function followConversation(): Conversation {
  const startup = createStartupReader()
  const client = createFrameReader()
  const server = createFrameReader()
  const texts = new Map<string, string>()
  let starting = true
  /** What the server said last: no transaction is open. */
  let idle = true
  /** Since the last answer, a transaction was begun, or statements were sent. */
  let begun = false
  let executed = false

  const statement = (text: string): Commits | undefined => {
    if (ends.test(text)) return 'commit'
    if (begins.test(text)) begun = true
    return undefined
  }
  const commits = (frame: Frame): Commits | undefined => {
    if (frame.type === 'Q') {
      const said = statement(readQuery(frame))
      return said ?? (idle && !begun ? 'autocommit' : undefined)
    }
    if (frame.type === 'P') {
      const { name, text } = readParse(frame)
      texts.set(name, text)
      // Nothing happens yet; but COMMIT is executed with what follows, and cannot be kept back after it.
      return statement(text)
    }
    if (frame.type === 'B') {
      const { statement: name } = readBind(frame)
      return name === '' ? undefined : statement(texts.get(name) ?? '')
    }
    if (frame.type === 'E') executed = true
    if (frame.type === 'S' && executed && idle && !begun) return 'autocommit'
    return undefined
  }

  return {
    fromClient(chunk) {
      if (starting) {
        const [frame] = startup.push(chunk)
        if (frame === undefined) return { parts: [] }
        // No encryption here: the client goes on without.
        if (readOpening(frame).kind === 'encryption') return { parts: [], answer: Buffer.from('N') }
        starting = false
        return { parts: [{ bytes: frame.bytes }] }
      }
      const parts = client.push(chunk).map((frame): ClientPart => {
        const kind = commits(frame)
        return kind === undefined ? { bytes: frame.bytes } : { bytes: frame.bytes, commits: kind }
      })
      return { parts }
    },
    fromServer(chunk) {
      let ready = false
      for (const frame of server.push(chunk)) {
        if (frame.type !== 'Z') continue
        idle = readTransactionState(frame) === 'I'
        begun = false
        executed = false
        ready = true
      }
      return ready
    },
  }
}
