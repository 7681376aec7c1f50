import { holdfastError } from '../core/errors.ts'
import { noteObjects } from '../engines/postgres/schema/privileges.ts'
import {
  assertMigrations,
  lockInstallers,
  prepareSchema,
  restoreSettings,
  saveSettings,
  setForFiles,
} from '../engines/postgres/schema/records.ts'
import { inTransaction } from '../engines/postgres/schema/script.ts'
import { installersLock } from './installers-lock.ts'
import { onlineTexts } from './online.ts'
import { assertNotEmpty, ownFiles, type SchemaFiles } from './schema-files.ts'
import { schemaName } from './schema-name.ts'
import { stepsFor } from './steps.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** What a plan is for. */
export interface PlanOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** The last migration the database has, such as `0001-ledger`. @defaultValue none: a new database */
  readonly from?: string
  /**
   * `false` leaves BEGIN and COMMIT out, for migration tools that run each file in a transaction of
   * their own. @defaultValue true
   */
  readonly transaction?: boolean
}

const planOptions: KnownOptions<PlanOptions> = {
  schema: 'text',
  from: 'text',
  transaction: 'boolean',
}

/**
 * The SQL that `migrate` would run, for teams that apply migrations themselves. Runs with psql or
 * any other tool, in one transaction; `migrate` and `inspect` then find everything in place.
 *
 * @example await writeFile('migrations/20260101-holdfast.sql', plan())
 * @throws OPTION_INVALID, SCHEMA_FILES_MISSING
 */
export function plan(options: PlanOptions = {}): string {
  return planFiles(ownFiles(), optionsGiven(options, planOptions))
}

/** `plan` with any set of files. */
export function planFiles(
  files: SchemaFiles,
  { schema: asked, from, transaction = true }: PlanOptions = {},
): string {
  const schema = schemaName(asked)
  assertNotEmpty(files)
  const applied = from === undefined ? 0 : positionOf(files, from) + 1
  const pending = {
    migrations: files.migrations.slice(applied),
    repeatables: files.repeatables,
    leftover: [],
  }
  const steps = stepsFor(pending, schema, files.version).map(({ file, sql }) =>
    file === undefined ? sql : `-- ${file}.sql\n\n${sql}`,
  )
  const before = [
    lockInstallers(installersLock(schema)),
    ...(transaction ? [] : saveSettings),
    ...setForFiles(schema),
    noteObjects(schema),
    prepareSchema(schema),
    assertMigrations(schema, files.migrations.slice(0, applied)),
  ]
  const after = transaction ? [] : restoreSettings
  const script = [...before.map(ended), ...steps, ...after.map(ended)].join('\n\n')
  const head = `-- Holdfast ${files.version}. To be run as a whole, in one transaction.`
  const online = applied === 0 ? [] : onlineTexts(files, schema, pending.migrations)
  return `${head}${advice(online)}\n\n${transaction ? inTransaction(script) : script}\n`
}

/** By name or number: `0002`, `0002-more`, `migrations/0002-more`. */
function positionOf({ migrations }: SchemaFiles, from: string): number {
  const at = migrations.findIndex(({ name }) => {
    const file = name.slice('migrations/'.length)
    return [name, file, file.split('-')[0]].includes(from)
  })
  if (at !== -1) return at
  throw holdfastError('OPTION_INVALID', {
    details: { option: 'from', subject: 'from names no migration of this version' },
  })
}

/** Statements that cannot be part of a transaction, as comments. */
function advice(online: readonly string[]): string {
  if (online.length === 0) return ''
  const lines = online.map(ended).join('\n\n').split('\n')
  return [
    '',
    '-- On a table in use, first run the following statements one by one, outside a transaction. They',
    '-- stop nobody. Without them the script below builds the same indexes while writers wait.',
    '--',
    ...lines.map((line) => (line === '' ? '--' : `--   ${line}`)),
  ].join('\n')
}

function ended(statement: string): string {
  return `${statement};`
}
