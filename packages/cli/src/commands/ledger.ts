import { type Command, done } from '../command.ts'
import { numberOf } from '../number-flag.ts'
import { renderAccount } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'

export const ledger: Command = {
  name: 'ledger',
  about: 'An account: balance, holds, grants, movements, drift',
  needsDatabase: true,
  args: [
    { name: 'verb', words: ['show'], about: 'What to do' },
    { name: 'book', about: 'Name of the book' },
    { name: 'key', about: 'Key of the account' },
  ],
  flags: {
    scope: {
      type: 'string',
      value: '<scope>',
      about: 'The scope it was used with; the key unless told',
    },
    movements: { type: 'string', value: '<n>', about: 'How many movements; 20 unless told' },
    before: {
      type: 'string',
      value: '<cursor>',
      about: 'Movements before those of the page that printed it',
    },
  },
  async run({ args, flags, around, observe, printPainted }) {
    const { book = '', key = '' } = args
    const { scope, before } = flags
    const movements = numberOf(flags['movements'], 'movements') ?? 20
    const { terminal } = around
    await observe(async (observer) => {
      const report = await observer.account(
        { book, key, ...(typeof scope === 'string' ? { scope } : {}) },
        { movements, ...(typeof before === 'string' ? { before } : {}) },
      )
      const look = lookOf(terminal)
      printPainted(report, `${renderAccount(report, look).join('\n')}\n`)
    })
    return done
  },
}
