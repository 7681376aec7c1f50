import { createObserver } from 'holdfast/observe'
import { claimsFlag, claimsOf } from '../settings/claims-file.ts'
import type { Command } from '../command.ts'
import { renderClaims } from '../render/reports.ts'
import { lookOf } from '../render/look.ts'
import { done } from '../failure.ts'

export const claims: Command = {
  name: 'claims',
  about: 'Tables that rows are claimed from: ready, claimed, stranded, dead',
  needsDatabase: true,
  flags: { claims: claimsFlag },
  async run(call) {
    const tables = await claimsOf(call)
    const { terminal } = call.around
    await call.database(async (driver) => {
      const schema = call.schema === undefined ? {} : { schema: call.schema }
      const found = await createObserver(driver, { ...schema, claims: tables }).claims()
      const look = lookOf(terminal)
      call.printPainted({ claims: found }, `${renderClaims(found, look).join('\n')}\n`)
    })
    return done
  },
}
