import { migrate as migrateSchema } from 'holdfast/schema'
import { type Command, done } from '../command.ts'

export const migrate: Command = {
  name: 'migrate',
  about: 'Install the schema, or bring it up to date',
  needsDatabase: true,
  flags: {
    repair: {
      type: 'boolean',
      about: 'Create every function and view again, changed or not',
    },
  },
  async run({ flags, schema, database, print, tell }) {
    const result = await database((driver) =>
      migrateSchema(driver, {
        ...(schema === undefined ? {} : { schema }),
        repair: flags['repair'] === true,
        onProgress: (file) => tell(file),
      }),
    )
    const count = result.applied.length
    const told =
      count === 0
        ? 'is up to date already'
        : `is up to date: ${count} ${count === 1 ? 'file' : 'files'} applied`
    const notes = result.notes.map((note) => `${note}\n`).join('')
    print(result, `Schema ${JSON.stringify(result.schema)} ${told}.\n${notes}`)
    return done
  },
}
