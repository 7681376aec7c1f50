import { holdfastError } from '../core/errors.ts'
import { giveToOwner } from '../engines/postgres/schema/owners.ts'
import { closeToOthers } from '../engines/postgres/schema/privileges.ts'
import {
  type InstalledFile,
  recordMigration,
  recordRepeatable,
} from '../engines/postgres/schema/records.ts'
import { bindSchema } from '../engines/postgres/schema/script.ts'
import type { SchemaFile, SchemaFiles } from './schema-files.ts'
import { isNewer } from './version.ts'

/** What `migrate` sends and `plan` prints: SQL, and the file it comes from. */
export interface Step {
  /** `undefined` for what belongs to no file. */
  readonly file: string | undefined
  readonly sql: string
}

/** What has to be done to a database. */
export interface Pending {
  readonly migrations: readonly SchemaFile[]
  readonly repeatables: readonly SchemaFile[]
  /** Installed by an earlier version and no longer part of this one. */
  readonly leftover: readonly string[]
}

/**
 * Compares the files with what a database has recorded.
 *
 * @throws SCHEMA_NEWER, SCHEMA_CHECKSUM
 */
export function pendingOf(
  files: SchemaFiles,
  installed: readonly InstalledFile[],
  repair = false,
): Pending {
  const newer = newerThan(files, installed)
  if (newer.length > 0) {
    throw holdfastError('SCHEMA_NEWER', { details: { subject: newer.join(', '), files: newer } })
  }
  const changed = changedMigrations(files, installed)
  if (changed.length > 0) {
    throw holdfastError('SCHEMA_CHECKSUM', {
      details: { subject: changed.join(', '), files: changed },
    })
  }
  const recorded = new Map(installed.map(({ name, checksum }) => [name, checksum]))
  const migrations = files.migrations.filter(({ name }) => !recorded.has(name))
  // A migration may drop what a function or view depends on, so all of them follow it.
  const all = repair || migrations.length > 0
  return {
    migrations,
    repeatables: files.repeatables.filter(
      ({ name, checksum }) => all || recorded.get(name) !== checksum,
    ),
    leftover: leftoverOf(files, installed),
  }
}

/** What a later version has installed: its functions must not be replaced by older ones. */
export function newerThan(files: SchemaFiles, installed: readonly InstalledFile[]): string[] {
  const known = checksums(files)
  return installed
    .filter(({ name, checksum, version }) =>
      isMigration(name)
        ? !known.has(name)
        : known.get(name) !== checksum && isNewer(version, files.version),
    )
    .map(({ name }) => name)
}

/** Migrations that were applied with another text than the one of today. */
export function changedMigrations(
  files: SchemaFiles,
  installed: readonly InstalledFile[],
): string[] {
  const known = checksums(files)
  return installed
    .filter(({ name }) => isMigration(name) && known.has(name))
    .filter(({ name, checksum }) => known.get(name) !== checksum)
    .map(({ name }) => name)
}

/** Functions and views that an earlier version had and this one has not. */
export function leftoverOf(files: SchemaFiles, installed: readonly InstalledFile[]): string[] {
  const known = checksums(files)
  return installed
    .filter(
      ({ name, version }) =>
        !isMigration(name) && !known.has(name) && !isNewer(version, files.version),
    )
    .map(({ name }) => name)
}

export function isUpToDate({ migrations, repeatables }: Pending): boolean {
  return migrations.length === 0 && repeatables.length === 0
}

/** The steps from there to here, in order; each is complete with its record. */
export function stepsFor(
  { migrations, repeatables }: Pending,
  schema: string,
  version: string,
): Step[] {
  const step = (
    file: SchemaFile,
    record: (schema: string, file: InstalledFile) => string,
  ): Step => ({
    file: file.name,
    sql: `${ended(bindSchema(file.text, schema))}\n${record(schema, { ...file, version })};`,
  })
  return [
    ...migrations.map((file) => step(file, recordMigration)),
    ...repeatables.map((file) => step(file, recordRepeatable)),
    { file: undefined, sql: `${giveToOwner(schema)};` },
    { file: undefined, sql: `${closeToOthers(schema)};` },
  ]
}

function checksums({ migrations, repeatables }: SchemaFiles): Map<string, string> {
  return new Map([...migrations, ...repeatables].map(({ name, checksum }) => [name, checksum]))
}

function isMigration(name: string): boolean {
  return name.startsWith('migrations/')
}

/** On a line of its own, the semicolon cannot end up in a comment. */
function ended(sql: string): string {
  const text = sql.trimEnd()
  return text.endsWith(';') ? text : `${text}\n;`
}
