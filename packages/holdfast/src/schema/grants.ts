import { holdfastError } from '../core/errors.ts'
import { type AppObjects, grantTexts, takeExtra } from '../engines/postgres/schema/privileges.ts'
import { objectsIn } from '../engines/postgres/schema/script.ts'
import { inFolder, ownFiles, type SchemaFiles } from './schema-files.ts'
import { schemaName } from './schema-name.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** Who is to get what. */
export interface GrantsOptions {
  /** The role the application connects as. */
  readonly role: string
  /** @defaultValue 'holdfast' */
  readonly schema?: string
}

const grantsOptions: KnownOptions<GrantsOptions> = {
  role: 'text',
  schema: 'text',
}

/**
 * The SQL that lets a role use Holdfast: USAGE on the schema, EXECUTE on the functions made for
 * applications, SELECT on the views. No table can be read or written directly but the one whose rows
 * are claimed, `work`. What else the role was given in the schema is taken back.
 *
 * @example await pool.query(grants({ role: 'app' }))
 * @throws OPTION_INVALID
 */
export function grants(options: GrantsOptions): string {
  return grantsOfFiles(ownFiles(), optionsGiven(options, grantsOptions))
}

/** `grants` with any set of files. */
export function grantsOfFiles(files: SchemaFiles, { role, schema }: GrantsOptions): string {
  const [space, name, app] = [schemaName(schema), roleName(role), appObjects(files)]
  const texts = [takeExtra(space, name, app), ...grantTexts(space, name, app)]
  return texts.map((text) => `${text};\n`).join('')
}

/** Tables of ours that are claimed like a table of the user's, by the migration that makes them. */
const claimedTables: Readonly<Record<string, string>> = { 'migrations/0002-work': 'work' }

/** What applications may use: the functions of `app/`, the views of `views/`, claimed tables. */
export function appObjects(files: SchemaFiles): AppObjects {
  const names = (folder: 'app' | 'views', kind: 'function' | 'view'): string[] =>
    inFolder(files, folder)
      .flatMap(({ text }) => objectsIn(text))
      .filter((object) => object.kind === kind)
      .map(({ name }) => name)
  const tables = files.migrations.flatMap(({ name }) => claimedTables[name] ?? [])
  return { functions: names('app', 'function'), views: names('views', 'view'), tables }
}

/** @throws OPTION_INVALID */
export function roleName(role: string): string {
  if (role !== '' && !role.includes('\0')) return role
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'role', subject: 'role is empty or contains NUL' },
  })
}
