import type { Command, Overrun } from './ledger-command.ts'

/** Histories that once came out wrong; each is played again by every run of the property tests. */

type Text = `${'credit' | 'debit' | 'hold'} ${string} ${number}`

/** `move(1, 'debit a 2', 'hold b 1')`, with an allowance of 5. */
function move(id: number, ...lines: Text[]): Command & { act: 'move' } {
  return {
    act: 'move',
    id,
    lines: lines.map((line) => {
      const [kind, key, amount] = line.split(' ')
      return { kind: kind as 'credit', key: String(key), amount: Number(amount) }
    }),
    allowance: 5,
    due: false,
    note: 0,
  }
}
const strict = (command: Command & { act: 'move' }): Command => ({ ...command, allowance: 0 })
const brief = (command: Command & { act: 'move' }): Command => ({ ...command, due: true })
const settle = (hold: number, amount?: number, overrun: Overrun = 'book'): Command => ({
  act: 'settle',
  hold,
  amount,
  overrun,
  late: 'book',
})
const refund = (id: number, of: number, key = 'a', amount = 1): Command => ({
  act: 'refund',
  id,
  of,
  key,
  amount,
  allowance: 5,
})

/** One after the other. */
export const histories: readonly Command[][] = [
  // Lines of different kinds, repeated.
  [move(0, 'debit a 1', 'hold b 1', 'credit c 1'), move(0, 'debit a 1', 'hold b 1', 'credit c 1')],
  // A capped settlement, repeated; in time and late.
  [move(0, 'hold a 3'), settle(0, 9, 'cap'), settle(0, 9, 'cap')],
  [brief(move(0, 'hold a 3')), settle(0, 9, 'cap'), settle(0, 9, 'cap')],
  [brief(move(0, 'hold a 3')), settle(0, 9, 'refuse'), settle(0, 9, 'available')],
  // The same refund of another operation.
  [move(0, 'debit a 2'), move(1, 'debit a 2'), refund(2, 0), refund(2, 1)],
  // No more than was taken, in pieces.
  [move(0, 'debit a 2'), refund(1, 0), refund(2, 0), refund(3, 0)],
  // A wall whose allowance is lowered.
  [move(0, 'debit walled 2'), strict(move(1, 'credit walled 1'))],
  // A rate that was never used, beside a limit that is too short.
  [strict(move(0, 'debit rated 1', 'hold a 1')), move(1, 'debit rated 1')],
  // What is given back to a rate that has filled up since is spilt.
  [
    move(0, 'debit rated 5'),
    ...[1, 2, 3, 4].map((id) => brief(move(id, 'credit a 1'))),
    refund(5, 0, 'rated', 5),
    move(6, 'hold rated 6'),
    move(7, 'debit rated 1'),
  ],
]

/** Many at once, in rounds; what is brief expires after every second one. */
export const rounds: readonly Command[][][] = [
  [[move(0, 'credit a 9'), strict(move(1, 'debit a 9'))]],
  [[move(0, 'debit walled 2'), strict(move(1, 'credit walled 1'))]],
  [[strict(move(0, 'hold a 1', 'debit c 1')), move(1, 'credit a 1')]],
  // An extension beside a settlement that is refused for one of its accounts.
  [
    [brief(move(0, 'hold a 1', 'hold walled 1'))],
    [{ act: 'extend', hold: 0 }, settle(0, 9, 'available')],
  ],
  [[move(6, 'hold a 1')], [settle(6), move(1, 'credit a 1'), settle(6)]],
  // Holds of two calls of one round expire in their order.
  [
    [strict(move(1, 'credit c 2'))],
    [brief(move(2, 'hold c 1')), strict(move(0, 'debit a 2')), brief(move(0, 'hold c 1'))],
  ],
  // Holds of one call, too, though they expire at the same moment.
  [[move(9, 'credit b 9')], [4, 2, 3, 1, 0].map((id) => brief(move(id, 'hold b 1')))],
]
