/** What is told to an operation whose id is known. */

import { type HoldPart, zero } from './ledger-accounts.ts'
import { type Answer, type AnswerLine, type Command, linesOf } from './ledger-command.ts'

/** A line of an operation as it was applied, or as it was refused. */
export interface AppliedLine {
  readonly kind: string
  readonly key: string
  readonly account: string
  readonly amount: number
  readonly of: number | undefined
  /** The number of its movement. */
  readonly sequence: number
  readonly answer: AnswerLine
  readonly at: number
  /** How much of it was given back. */
  returned: number
  readonly isRefused?: true
}

export interface Applied {
  readonly lines: readonly AppliedLine[]
  readonly note: number
  /** Of a refusal that is remembered: until when, and what it was. */
  readonly until?: number
  readonly refusal?: Answer
}

/** The first answer again, or which field differs this time. */
export function replayOf(
  applied: Applied,
  command: Command,
  holds: ReadonlyMap<number, readonly HoldPart[]>,
  expires: ReadonlyMap<HoldPart, number>,
): Answer {
  const lines = linesOf(command)
  const note = command.act === 'move' ? command.note : 0
  let field: string | undefined
  const found = new Map<number, AppliedLine>()
  applied.lines.forEach((stored, at) => {
    // Of two lines for one account, the one that was written as this one.
    const same = lines[at]?.key === stored.key ? at : lines.findIndex((x) => x.key === stored.key)
    const line = lines[same]
    if (line === undefined) field ??= lines.length === 1 ? 'key' : 'lines'
    else if (line.kind !== stored.kind) field ??= 'kind'
    else if (line.amount !== stored.amount) field ??= 'amount'
    else if (line.kind === 'refund' && line.of !== stored.of) field ??= 'of'
    else if (applied.refusal === undefined && note !== applied.note) field ??= 'note'
    found.set(same, stored)
  })
  if (applied.lines.length !== lines.length) field ??= 'lines'
  if (field !== undefined) return conflict(lines.length, field)
  if (applied.refusal !== undefined) return { ...applied.refusal, replayed: true }
  const first = found.get(0)
  const id = 'id' in command ? command.id : -1
  const until = (holds.get(id) ?? []).flatMap((part) => expires.get(part) ?? [])
  return {
    ok: true,
    replayed: true,
    reason: undefined,
    field: undefined,
    state: undefined,
    lines: lines.map((_, at) => found.get(at)?.answer as AnswerLine),
    at: first?.at,
    expiresAt: until.length === 0 ? undefined : Math.min(...until),
  }
}

export function conflict(lines: number, field: string): Answer {
  const line = { ...zero, refusal: 'conflict' as const }
  return {
    ok: false,
    replayed: false,
    reason: 'conflict',
    field,
    state: undefined,
    lines: Array.from({ length: lines }, () => line),
  }
}
