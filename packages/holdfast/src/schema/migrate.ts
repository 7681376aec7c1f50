import type { Driver, Executor, Transaction } from '../core/driver.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { isConnectionLoss, sqlStateOf } from '../core/sql-state.ts'
import { misplacedFrom, readMisplaced } from '../engines/postgres/schema/owners.ts'
import { noteObjects } from '../engines/postgres/schema/privileges.ts'
import {
  type InstalledFile,
  lockInstallers,
  lookForSchema,
  prepareSchema,
  quiet,
  readRecords,
  recordsFrom,
  setForFiles,
} from '../engines/postgres/schema/records.ts'
import { statementsOf } from '../engines/postgres/schema/script.ts'
import { installersLock } from './installers-lock.ts'
import { applyOnline } from './online.ts'
import { assertNotEmpty, ownFiles, type SchemaFiles } from './schema-files.ts'
import { schemaName } from './schema-name.ts'
import { isUpToDate, type Pending, pendingOf, type Step, stepsFor } from './steps.ts'
import { isTrue } from '../core/is-true.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** How a schema is installed or brought up to date. */
export interface MigrateOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** Create every function and view again, also those whose files did not change. */
  readonly repair?: boolean
  /** Called for each file right before it is applied. */
  readonly onProgress?: (file: string) => void
}

const migrateOptions: KnownOptions<MigrateOptions> = {
  schema: 'text',
  repair: 'boolean',
  onProgress: 'function',
}

/** What was done. */
export interface Migrated {
  readonly schema: string
  /** Files in the order they were applied, such as `migrations/0001-ledger`; none if all was well. */
  readonly applied: readonly string[]
  /** Functions and views of an earlier version that this one no longer has; `inspect` tells more. */
  readonly leftover: readonly string[]
  /** What was found on the way that somebody should know; none if there was nothing. */
  readonly notes: readonly string[]
}

/** For clients that keep a timer of their own: waiting for other installers counts. */
const timeoutMs = 600_000

/**
 * Installs the schema, or brings it up to date: all of it or nothing, in one transaction. Any
 * number of processes may call it at the same time; one does the work, the others find it done. Indexes of
 * tables that are in use are built before that transaction, without stopping anybody.
 *
 * @example await migrate(fromPg(pool))
 * @throws SCHEMA_NEWER, SCHEMA_CHECKSUM, SCHEMA_OCCUPIED, SCHEMA_FAILED, SCHEMA_FILES_MISSING, OPTION_INVALID
 */
export async function migrate<Tx>(
  driver: Driver<Tx>,
  options: MigrateOptions = {},
): Promise<Migrated> {
  assertDriver(driver, 'migrate')
  return migrateFiles(driver, ownFiles(), optionsGiven(options, migrateOptions))
}

/** `migrate` with any set of files. */
export async function migrateFiles<Tx>(
  driver: Driver<Tx>,
  files: SchemaFiles,
  { schema: asked, repair = false, onProgress }: MigrateOptions = {},
): Promise<Migrated> {
  const schema = schemaName(asked)
  assertNotEmpty(files)
  const missing = async (executor: Executor): Promise<Pending> =>
    pendingOf(files, await installedIn(executor, schema), repair)
  // Outside of a transaction: whoever waits for the lock below must hold nothing that its holder needs.
  const before = await missing(driver.alone)
  if (isUpToDate(before)) return resultOf(schema, before, [])
  const notes = await applyOnline(driver, schema, files, before, onProgress)
  return driver.transaction(
    async (transaction) => {
      await transaction.command(lockInstallers(installersLock(schema)))
      // Whoever held the lock may have done it all: each statement here sees what is committed.
      const pending = await missing(transaction)
      if (!isUpToDate(pending)) {
        await transaction.command(quiet)
        await applySteps(transaction, schema, stepsFor(pending, schema, files.version), onProgress)
        return resultOf(schema, pending, [...notes, ...(await noteMisplaced(transaction, schema))])
      }
      return resultOf(schema, pending, notes)
    },
    // The look after the lock must not be one from before it.
    { isolation: 'read committed', timeoutMs, scopes: [] },
  )
}

function resultOf(
  schema: string,
  { migrations, repeatables, leftover }: Pending,
  notes: readonly string[],
): Migrated {
  const applied = [...migrations, ...repeatables].map(({ name }) => name)
  return { schema, applied, leftover, notes }
}

/** What this role could not give to the schema's owner. */
async function noteMisplaced(executor: Executor, schema: string): Promise<string[]> {
  const objects = misplacedFrom(await executor.query(readMisplaced(schema)))
  if (objects.length === 0) return []
  const told = objects.map(({ object, owner }) => `${object} (${owner})`).join(', ')
  return [
    `These do not belong to the role that owns the rest: ${told}. Run as a superuser what \`holdfast doctor\` prints for them (object-owner).`,
  ]
}

/** @throws SCHEMA_OCCUPIED */
export async function installedIn(executor: Executor, schema: string): Promise<InstalledFile[]> {
  const [found] = await executor.query(lookForSchema(schema))
  if (isTrue(found?.['recorded'])) {
    return recordsFrom(await executor.query(readRecords(schema)))
  }
  // Rights are taken away from everything in the schema, so nothing of others may be in it.
  if (isTrue(found?.['occupied'])) {
    throw holdfastError('SCHEMA_OCCUPIED', { details: { subject: schema, schema } })
  }
  return []
}

/** Runs the steps, one statement at a time: some clients cannot send more. */
export async function applySteps<Tx>(
  transaction: Transaction<Tx>,
  schema: string,
  steps: readonly Step[],
  onProgress?: (file: string) => void,
): Promise<void> {
  const run = async (statements: readonly string[], file?: string): Promise<void> => {
    try {
      for (const statement of statements) await transaction.command(statement)
    } catch (error) {
      throw stepFailure(error, file)
    }
  }
  await run([...setForFiles(schema), noteObjects(schema), prepareSchema(schema)])
  for (const { file, sql } of steps) {
    if (file !== undefined) onProgress?.(file)
    await run(statementsOf(sql), file)
  }
}

/** Names the file; what may succeed when it is tried again stays what it is. */
function stepFailure(error: unknown, file = 'the schema itself'): unknown {
  const state = sqlStateOf(error)
  const temporary = state === undefined || /^(40|53|55|57)/.test(state)
  if (temporary || isHoldfastError(error) || isConnectionLoss(error)) return error
  return holdfastError('SCHEMA_FAILED', {
    cause: error,
    details: { subject: file, file, sqlState: state },
  })
}
