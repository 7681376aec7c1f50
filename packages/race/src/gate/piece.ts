import { queryVerbs, readStatements, type SqlStatement } from '../core/sql-tokens.ts'
import { traceIn, withoutTrace } from '../core/trace-mark.ts'
import type { Column } from '../wire/backend.ts'
import type { Frame } from '../wire/frame-reader.ts'
import {
  type BindMessage,
  readBind,
  readDescribe,
  readExecute,
  readParse,
  readQuery,
} from '../wire/frontend.ts'
import { valueText } from '../wire/value-text.ts'
import { commitOnlyText, functionCallText, type Unit } from './unit.ts'

interface Portal {
  readonly prepared: Prepared | undefined
  readonly bind: BindMessage
}

/** A statement that a piece prepares, binds or executes. */
interface Run {
  readonly text: string
  portal: Portal | undefined
  executed: boolean
}

/** A prepared statement of a connection, named or not. */
export interface Prepared {
  readonly text: string
  /** Types of its parameters: what the client said, later what the server said. */
  types: readonly number[]
  /** What the server said about its columns, once it was asked. */
  columns: readonly Column[] | undefined
}

/** What the server owes for one message of a client. */
export type Reply =
  | { readonly kind: 'parse' | 'bind' | 'close' | 'ready' }
  | { readonly kind: 'describe'; readonly prepared: Prepared | undefined }
  | {
      readonly kind: 'execute'
      readonly prepared: Prepared | undefined
      readonly formats: readonly number[]
    }

/** What a connection is in when a statement of a query string is done. */
export type Block =
  | 'none'
  /** The transaction that the statements of one query string share; it ends with the string. */
  | 'implicit'
  /** Behind BEGIN. */
  | 'explicit'

/** Messages that a client sent up to a point at which it wants an answer. */
export interface Piece {
  /** A `part` is a statement of a query string that has more; the `last` is the last of them. */
  readonly kind: 'simple' | 'sync' | 'flush' | 'terminate' | 'part' | 'last'
  readonly frames: readonly Frame[]
  readonly replies: readonly Reply[]
  readonly unit: Unit
  /** It runs something, and does not only ask for types and columns. */
  readonly executes: boolean
  /** What a part, or the last, leaves the connection in. */
  readonly block?: Block
}

/** Puts a client's messages together to pieces. */
export interface PieceCollector {
  /** The piece that is complete with this message. */
  push(frame: Frame): Piece | undefined
  /** Statements that were prepared under a name. */
  named(): readonly (readonly [string, Prepared])[]
}

/** Whether an autocommit statement may be executed first and committed later. */
function isSplittable(statement: SqlStatement): boolean {
  const [first, second] = statement.tokens.filter((token) => token.text !== '(')
  if (first?.kind !== 'word') return false
  if (queryVerbs.has(first.text) || blockVerbs.has(first.text)) return true
  // These commit by themselves, or have to be alone in their transaction.
  const alone = statement.tokens.some(({ text }) => text === 'concurrently')
  return ddlVerbs.has(first.text) && !alone && !clusterWide.has(second?.text ?? '')
}

/** What they commit themselves, they commit in either protocol; the rest is held. */
const blockVerbs = new Set(['call', 'do', 'execute', 'explain'])
const ddlVerbs = new Set([
  'create',
  'alter',
  'drop',
  'truncate',
  'comment',
  'grant',
  'revoke',
  'refresh',
])
const clusterWide = new Set(['database', 'tablespace', 'system', 'subscription'])

export function createPieceCollector(): PieceCollector {
  const prepared = new Map<string, Prepared>()
  const portals = new Map<string, Portal>()
  let frames: Frame[] = []
  let replies: Reply[] = []
  let runs: Run[] = []
  let trace: string | undefined
  let executes = false
  let continues = false
  // Something was executed since the last Sync.
  let open = false

  function push(frame: Frame): Piece | undefined {
    frames.push(frame)
    switch (frame.type) {
      case 'Q': {
        const text = readQuery(frame)
        trace = traceIn(text)
        return close('simple', readStatements(text))
      }
      case 'F':
        return close('simple', [{ text: functionCallText, tokens: [] }])
      case 'X':
        return close('terminate', [])
      case 'P': {
        const { name, text, types: declared } = readParse(frame)
        prepared.set(name, { text, types: declared, columns: undefined })
        runs.push({ text, portal: undefined, executed: false })
        // Whoever binds it again later has said nothing by that.
        trace ??= traceIn(text)
        replies.push({ kind: 'parse' })
        break
      }
      case 'B': {
        bindTo(readBind(frame))
        replies.push({ kind: 'bind' })
        break
      }
      case 'D': {
        const { what, name } = readDescribe(frame)
        const statement = what === 'S' ? prepared.get(name) : portals.get(name)?.prepared
        replies.push({ kind: 'describe', prepared: statement })
        break
      }
      case 'E': {
        const name = readExecute(frame)
        const portal = portals.get(name)
        execute(name, portal)
        const formats = portal?.bind.resultFormats ?? []
        replies.push({ kind: 'execute', prepared: portal?.prepared, formats })
        executes = true
        open = true
        break
      }
      case 'C': {
        const { what, name } = readDescribe(frame)
        if (what === 'S') prepared.delete(name)
        else portals.delete(name)
        replies.push({ kind: 'close' })
        break
      }
      case 'S':
        return close('sync', statementsOf(runs))
      case 'H':
        return close('flush', statementsOf(runs))
      default:
        break
    }
    return undefined
  }

  function bindTo(bind: BindMessage): void {
    const portal: Portal = { prepared: prepared.get(bind.statement), bind }
    // What was bound there before is not executed any more.
    const replaced = portals.get(bind.portal)
    runs = runs.filter((run) => run.executed || !run.portal || run.portal !== replaced)
    portals.set(bind.portal, portal)
    const text = textOf(portal)
    const parsed = runs.find((run) => run.text === text && !run.portal)
    if (parsed) parsed.portal = portal
    else runs.push({ text, portal, executed: false })
  }

  /** Each portal is a statement of its own, with a snapshot of its own; its further rows are the same statement. */
  function execute(name: string, portal: Portal | undefined): void {
    const run = portal && runs.find((one) => one.portal === portal)
    if (run) run.executed = true
    // A cursor of DECLARE is a portal as well.
    else {
      continues = portal !== undefined
      runs.push({
        text: portal ? textOf(portal) : `FETCH ALL FROM ${quoted(name)}`,
        portal,
        executed: true,
      })
    }
  }

  function close(kind: Piece['kind'], statements: readonly SqlStatement[]): Piece {
    const ready = kind === 'simple' || kind === 'sync'
    const closesCycle = kind === 'sync' && !executes && open
    const piece: Piece = {
      kind,
      frames,
      replies: ready ? [...replies, { kind: 'ready' }] : replies,
      executes: executes || kind === 'simple',
      unit: {
        statements: closesCycle
          ? [commitOnlyText]
          : statements.map((statement) => withoutTrace(statement.text)),
        parameters: runs.flatMap(parameterTexts),
        parameterTypes: runs.flatMap(parameterTypes),
        splittable: canSplit(kind, statements),
        closesCycle,
        ...(continues && { continues }),
        ...(trace !== undefined && { trace }),
      },
    }
    trace = undefined
    if (ready) open = false
    frames = []
    replies = []
    runs = []
    executes = false
    continues = false
    return piece
  }

  function canSplit(kind: Piece['kind'], statements: readonly SqlStatement[]): boolean {
    if (statements.length === 0 || !statements.every(isSplittable)) return false
    // A function call of the old kind has no tokens and never comes here.
    return kind === 'simple' ? statements.length === 1 : kind === 'sync' || kind === 'flush'
  }

  return { push, named: () => [...prepared].filter(([name]) => name !== '') }
}

/** PREPARE makes statements that the protocol can bind, too. */
function textOf({ prepared, bind }: Portal): string {
  return prepared?.text ?? `EXECUTE ${quoted(bind.statement)}`
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function statementsOf(runs: readonly Run[]): SqlStatement[] {
  return runs.flatMap(({ text }) => readStatements(text))
}

function parameterTexts({ portal }: Run): (string | null)[] {
  if (!portal) return []
  return portal.bind.values.map(({ bytes, format }, index) =>
    bytes === null ? null : valueText(bytes, portal.prepared?.types[index] ?? 0, format),
  )
}

/** Bytes of a type that nobody told are read as text at best. */
function parameterTypes({ portal }: Run): number[] {
  if (!portal) return []
  return portal.bind.values.map(({ format }, index) => {
    const type = portal.prepared?.types[index] ?? 0
    return type === 0 && format !== 0 ? -1 : type
  })
}
