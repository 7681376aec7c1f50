import { type Command, done } from '../command.ts'
import { numberOf } from '../number-flag.ts'
import { renderHolds } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'

export const holds: Command = {
  name: 'holds',
  about: 'Amounts that are put aside, the overdue first',
  needsDatabase: true,
  flags: { limit: { type: 'string', value: '<n>', about: 'How many; 100 unless told' } },
  async run({ flags, around, observe, printPainted }) {
    const limit = numberOf(flags['limit'], 'limit') ?? 100
    const { terminal } = around
    await observe(async (observer) => {
      const found = await observer.holds({ limit })
      const look = lookOf(terminal)
      printPainted({ holds: found }, `${renderHolds(found, look).join('\n')}\n`)
    })
    return done
  },
}
