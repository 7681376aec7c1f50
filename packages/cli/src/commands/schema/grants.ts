import { grants as grantsSql } from 'holdfast/schema'
import type { Command } from '../../command.ts'
import { done } from '../../failure.ts'
import { assertForPostgres } from '../../settings/database-url.ts'

export const grants: Command = {
  name: 'grants',
  about: "Print the SQL that lets the application's role use the schema, on PostgreSQL",
  needsDatabase: false,
  flags: {
    role: {
      type: 'string',
      value: '<role>',
      about: 'The role the application connects as',
      required: true,
    },
  },
  async run({ flags, schema, databaseUrl, printExact }) {
    assertForPostgres(databaseUrl)
    const sql = grantsSql({
      role: String(flags['role']),
      ...(schema === undefined ? {} : { schema }),
    })
    printExact({ sql }, sql)
    return done
  },
}
