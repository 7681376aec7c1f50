import { plan as planSchema } from 'holdfast/schema'
import type { Command } from '../../command.ts'
import { done } from '../../failure.ts'
import { assertForPostgres } from '../../settings/database-url.ts'

export const plan: Command = {
  name: 'plan',
  about: 'Print what migrate would run on PostgreSQL, as SQL for psql or another tool',
  needsDatabase: false,
  flags: {
    from: {
      type: 'string',
      value: '<migration>',
      about: 'The last migration the database has, such as 0001-ledger',
    },
    'no-transaction': {
      type: 'boolean',
      about: 'Without BEGIN and COMMIT, for tools that add their own',
    },
  },
  async run({ flags, schema, databaseUrl, printExact }) {
    assertForPostgres(databaseUrl)
    const { from } = flags
    const sql = planSchema({
      ...(schema === undefined ? {} : { schema }),
      ...(typeof from === 'string' ? { from } : {}),
      transaction: flags['no-transaction'] !== true,
    })
    printExact({ sql }, sql)
    return done
  },
}
