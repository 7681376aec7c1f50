import type { Driver } from 'holdfast'
import { migrate as migrateSchema } from 'holdfast/schema'
import type { Call, Command } from '../../command.ts'
import { isMysql } from '../../product.ts'
import { done, Misuse } from '../../failure.ts'

export const migrate: Command = {
  name: 'migrate',
  about: 'Install the schema, or bring it up to date',
  needsDatabase: true,
  onMysql: true,
  flags: {
    repair: {
      type: 'boolean',
      about: 'Create every function and view again, changed or not',
    },
  },
  async run(call) {
    const { print } = call
    const result = await call.database((driver) => migrated(driver, call))
    if (result === undefined) {
      print({ applied: [] }, 'The tables of Holdfast are there.\n')
      return done
    }
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

/** Nothing of MariaDB and MySQL, where tables are made if they are not there, and nothing else is. */
async function migrated<Tx>(
  driver: Driver<Tx>,
  { flags, schema, tell }: Call,
): Promise<Awaited<ReturnType<typeof migrateSchema>> | undefined> {
  const repair = flags['repair'] === true
  if (!isMysql(driver)) {
    const named = schema === undefined ? {} : { schema }
    return await migrateSchema(driver, { ...named, repair, onProgress: (file) => tell(file) })
  }
  if (repair) throw new Misuse('--repair is about functions, which only PostgreSQL has.')
  const { migrate: makeTables } = await import('holdfast/mysql')
  await makeTables(driver, schema === undefined ? {} : { database: schema })
  return undefined
}
