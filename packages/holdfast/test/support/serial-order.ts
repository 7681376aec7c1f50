import { burst, ratedKey } from './ledger-arbitrary.ts'
import {
  type Account,
  type Answer,
  type Command,
  linesOf,
  type Movement,
} from './ledger-command.ts'

/** A command and what it was told. */
export interface Played {
  readonly command: Command
  readonly answer: Answer
}

/** What a movement belongs to: an operation, or the end of a hold. */
function nameOf(kind: string, operation: number): string {
  return kind === 'settle' || kind === 'release' ? `end ${operation}` : `operation ${operation}`
}

function nameOfCommand(command: Command): string {
  return 'id' in command ? `operation ${command.id}` : `end ${command.hold}`
}

/**
 * The commands that were applied, in an order that agrees with the sequence numbers of every
 * account. Throws if there is none, or if movements and answers are not one to one.
 */
export function serialOrder(
  played: readonly Played[],
  movements: ReadonlyMap<string, readonly Movement[]>,
): Played[] {
  const applied = new Map<string, Played>()
  for (const one of played) {
    const { command, answer } = one
    if (!answer.ok || answer.replayed || command.act === 'extend') continue
    const name = nameOfCommand(command)
    if (applied.has(name)) throw new Error(`${name} was applied twice`)
    applied.set(name, one)
  }
  const after = new Map<string, Set<string>>()
  for (const account of movements.values()) {
    let before: string | undefined
    for (const { kind, operation } of account) {
      const name = nameOf(kind, operation)
      if (!applied.has(name)) throw new Error(`nobody was told of ${name}`)
      const waits = after.get(name) ?? new Set()
      if (before !== undefined) waits.add(before)
      after.set(name, waits)
      before = name
    }
  }
  for (const name of applied.keys()) if (!after.has(name)) throw new Error(`${name} left no trace`)
  const order: Played[] = []
  const placed = new Set<string>()
  while (order.length < applied.size) {
    const next = [...after].find(
      ([name, waits]) => !placed.has(name) && [...waits].every((other) => placed.has(other)),
    )
    if (next === undefined) throw new Error('no serial order: the accounts disagree')
    placed.add(next[0])
    order.push(applied.get(next[0]) as Played)
  }
  return order
}

/**
 * Whether a refusal for want of balance is true of a moment: each line's numbers are those after
 * some movement of its account, and the refused ones were short then or before.
 */
export function wasShort(
  { command, answer }: Played,
  movements: ReadonlyMap<string, readonly Movement[]>,
): boolean {
  if (command.act !== 'move') return true
  return linesOf(command).every(({ key, kind, amount }, at) => {
    const line = answer.lines[at]
    if (line === undefined) return false
    const states: Omit<Account, 'allowance'>[] = [
      { credited: 0, debited: 0, held: 0, sequence: 0 },
      ...(movements.get(key) ?? []).map(({ after }) => after),
    ].slice(0, line.sequence + 1)
    const last = states[line.sequence]
    const isReal =
      last?.credited === line.credited && last.debited === line.debited && last.held === line.held
    const wasEverShort = states.some(({ credited, debited, held, sequence }) => {
      // A rate is full until it is used, and nobody waits for it to fill up.
      const rest = key === ratedKey ? (sequence === 0 ? burst : 0) : command.allowance
      return credited - debited - held + rest < amount
    })
    return isReal && (line.refusal === undefined || (kind !== 'credit' && wasEverShort))
  })
}
