import { type Command, done } from '../command.ts'
import { numberOf } from '../number-flag.ts'
import { renderLeases } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'

export const leases: Command = {
  name: 'leases',
  about: 'Leases, those that are held first',
  needsDatabase: true,
  flags: { limit: { type: 'string', value: '<n>', about: 'How many; 100 unless told' } },
  async run({ flags, around, observe, printPainted }) {
    const limit = numberOf(flags['limit'], 'limit') ?? 100
    const { terminal } = around
    await observe(async (observer) => {
      const found = await observer.leases({ limit })
      const look = lookOf(terminal)
      printPainted({ leases: found }, `${renderLeases(found, look).join('\n')}\n`)
    })
    return done
  },
}
