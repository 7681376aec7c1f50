import fc from 'fast-check'

type Move = 'credit' | 'debit' | 'hold'

/** One account's part of a move. */
export interface MoveLine {
  readonly kind: Move
  readonly key: string
  readonly amount: number
}

export type Overrun = 'book' | 'refuse' | 'cap' | 'available'

/** Operations are named by small numbers, and a hold by the operation that made it. */
export type Command =
  | {
      readonly act: 'move'
      readonly id: number
      readonly lines: readonly MoveLine[]
      readonly allowance: number
      /** A hold that expires soon if it is not extended. */
      readonly due: boolean
      readonly note: number
    }
  | {
      readonly act: 'refund'
      readonly id: number
      readonly of: number
      readonly key: string
      readonly amount: number
      readonly allowance: number
    }
  | {
      readonly act: 'settle'
      readonly hold: number
      readonly amount: number | undefined
      readonly overrun: Overrun
      readonly late: 'book' | 'refuse'
    }
  | { readonly act: 'release' | 'extend'; readonly hold: number }

export type Refusal = 'insufficient' | 'conflict' | 'not-found' | 'ended' | 'over-refund'
export type HoldState = 'open' | 'settled' | 'released' | 'expired' | 'settled-late'

export interface Account {
  credited: number
  debited: number
  held: number
  allowance: number
  sequence: number
}

export interface AnswerLine extends Account {
  readonly refusal: Refusal | undefined
}

export interface Answer {
  readonly ok: boolean
  readonly replayed: boolean
  readonly reason: Refusal | undefined
  readonly field: string | undefined
  readonly state: HoldState | undefined
  readonly lines: readonly AnswerLine[]
}

export interface Movement {
  readonly kind: Move | 'settle' | 'release' | 'expire' | 'refund'
  readonly operation: number
  readonly credit: number
  readonly debit: number
  readonly hold: number
  readonly after: Readonly<Account>
}

/** The lines of a command that has an id of its own. */
export function linesOf(
  command: Command,
): readonly { kind: string; key: string; amount: number }[] {
  if (command.act === 'move') return command.lines
  return command.act === 'refund'
    ? [{ kind: 'refund', key: command.key, amount: command.amount }]
    : []
}

/** A command as a reader of a failed run wants to see it. */
function wordsOf(command: Command): string {
  if (command.act === 'move') {
    const { id, lines, allowance, due, note } = command
    const words = lines.map(({ kind, key, amount }) => `${kind} ${key} ${amount}`).join(' + ')
    const rest = [
      allowance === 0 ? '' : ` allowing ${allowance}`,
      due && lines.some(({ kind }) => kind === 'hold') ? ' for a while' : '',
      note === 0 ? '' : ` note ${note}`,
    ]
    return `#${id}: ${words}${rest.join('')}`
  }
  if (command.act === 'refund') {
    const { id, of, key, amount, allowance } = command
    return `#${id}: refund ${key} ${amount} of #${of}${allowance === 0 ? '' : ` allowing ${allowance}`}`
  }
  if (command.act !== 'settle') return `${command.act} hold #${command.hold}`
  const { hold, amount, overrun, late } = command
  return `settle hold #${hold} at ${amount ?? 'its amount'}, overrun ${overrun}, late ${late}`
}

/** So that a shrunken counterexample reads like a history. */
function readable(command: Command): Command {
  return Object.defineProperty(command, fc.toStringMethod, { value: () => wordsOf(command) })
}

/** Never below zero. */
export const walledKey = 'walled'
/** What is used is a hold that leaves the window by itself. */
export const rollingKey = 'rolling'
/** A bucket of so many that fills up by itself, one an hour. */
export const ratedKey = 'rated'
export const burst = 6
export const keys: readonly string[] = ['a', 'b', 'c', walledKey, rollingKey, ratedKey]

const id = fc.nat({ max: 11 })
/** Mostly the plain ones: what is worth something happens between commands for the same account. */
const key = fc.constantFrom('a', 'a', 'b', 'b', 'c', ...keys)
const amount = fc.integer({ min: 1, max: 9 })
const allowance = fc.constantFrom(0, 0, 5)
const line: fc.Arbitrary<MoveLine> = fc
  .record({
    kind: fc.constantFrom<Move>('credit', 'credit', 'debit', 'hold'),
    key,
    amount,
  })
  // Nobody but time credits a rate.
  .map((one) => (one.key === ratedKey && one.kind === 'credit' ? { ...one, kind: 'debit' } : one))

/** Few ids, keys and amounts, so that repetitions, conflicts and shortages are common. */
export const anyCommand: fc.Arbitrary<Command> = fc
  .oneof<fc.MaybeWeightedArbitrary<Command>[]>(
    {
      weight: 6,
      arbitrary: fc.record({
        act: fc.constant('move' as const),
        id,
        lines: fc.uniqueArray(line, { selector: (one) => one.key, minLength: 1, maxLength: 3 }),
        allowance,
        due: fc.constantFrom(false, false, true),
        note: fc.constantFrom(0, 0, 0, 1),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        act: fc.constant('refund' as const),
        id,
        of: id,
        key,
        amount,
        allowance,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        act: fc.constant('settle' as const),
        hold: id,
        amount: fc.option(fc.nat({ max: 12 }), { nil: undefined }),
        overrun: fc.constantFrom<Overrun>('book', 'refuse', 'cap', 'available'),
        late: fc.constantFrom<'book' | 'refuse'>('book', 'book', 'refuse'),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        act: fc.constantFrom('release' as const, 'extend' as const),
        hold: id,
      }),
    },
  )
  .map(readable)
