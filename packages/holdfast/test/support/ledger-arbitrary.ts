import fc from 'fast-check'
import {
  type Command,
  type KeyTerms,
  type Move,
  type MoveLine,
  type Overrun,
  wordsOf,
} from './ledger-command.ts'

/** So that a shrunken counterexample reads like a history. */
function readable(command: Command): Command {
  return Object.defineProperty(command, fc.toStringMethod, { value: () => wordsOf(command) })
}

/** Never below zero. */
const walledKey = 'walled'
/** What is used is a hold that leaves the window by itself. */
const rollingKey = 'rolling'
/** A bucket of so many that fills up by itself, one an hour. */
export const ratedKey = 'rated'
export const burst = 6
const hourUs = 3_600_000_000
export const keys: readonly string[] = ['a', 'b', 'c', walledKey, rollingKey, ratedKey]

/** What the keys of these histories are. */
export function termsOf(key: string): KeyTerms {
  if (key === walledKey) return { walled: true }
  if (key === rollingKey) return { rolling: true }
  return key === ratedKey ? { everyUs: hourUs, burst } : {}
}

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
