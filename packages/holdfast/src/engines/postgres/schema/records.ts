import type { Row, Statement } from '../../../core/driver.ts'
import { quoteIdentifier, quoteLiteral } from '../sql/identifier.ts'
import { dollarQuoted } from './script.ts'
import { cat, eq, like, ne } from '../sql/operators.ts'

/** What was installed: one row per SQL file, in the schema itself. */
const tableName = 'installed_file'

/** One row. */
export interface InstalledFile {
  /** Folder and name, without the ending: `migrations/0001-ledger`, `app/apply`. */
  readonly name: string
  readonly checksum: string
  /** The version of Holdfast that applied it. */
  readonly version: string
}

/** The table of records by its full name. */
function recordsTable(schema: string): string {
  return `${quoteIdentifier(schema)}.${tableName}`
}

/**
 * One installer at a time. A lock of the transaction, so it works behind a transaction-mode pooler
 * and is gone with whoever held it. DO, because some clients cannot read the void that comes back.
 */
export function lockInstallers(id: bigint): string {
  return `DO $$ BEGIN PERFORM pg_catalog.pg_advisory_xact_lock(${id}); END $$`
}

/**
 * What holds while files are applied, until the transaction ends. Names are meant to be found in
 * our schema or pg_catalog and nowhere else; a function may call one whose file comes later.
 */
export function setForFiles(schema: string): string[] {
  return [
    `SET LOCAL search_path = ${quoteIdentifier(schema)}, pg_temp`,
    'SET LOCAL check_function_bodies = off',
  ]
}

/** "Already exists, skipping" is of no use to anybody; some clients print it. */
export const quiet = 'SET LOCAL client_min_messages = warning'

const changedSettings: readonly string[] = ['search_path', 'check_function_bodies']

/** Keeps what `setForFiles` changes, for a transaction that goes on after us. */
export const saveSettings: readonly string[] = changedSettings.map(
  (name) =>
    `SELECT pg_catalog.set_config('holdfast.${name}', pg_catalog.current_setting('${name}'), true)`,
)

export const restoreSettings: readonly string[] = changedSettings.map(
  (name) =>
    `SELECT pg_catalog.set_config('${name}', pg_catalog.current_setting('holdfast.${name}'), true)`,
)

/** Whether the schema, the records, and anything at all in the schema exist. */
export function lookForSchema(schema: string): Statement {
  return {
    text: `
SELECT (space.oid IS NOT NULL)::pg_catalog.text AS "present",
       EXISTS (SELECT FROM pg_catalog.pg_class
               WHERE relnamespace ${eq} space.oid AND relname ${eq} '${tableName}')::pg_catalog.text AS "recorded",
       (EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace ${eq} space.oid)
         OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace ${eq} space.oid))::pg_catalog.text AS "occupied"
FROM (VALUES (1)) AS one
LEFT JOIN pg_catalog.pg_namespace AS space ON space.nspname ${eq} $1::pg_catalog.text::pg_catalog.name`,
    values: [schema],
  }
}

export function readRecords(schema: string): Statement {
  return { text: `SELECT name, checksum, version FROM ${recordsTable(schema)}`, values: [] }
}

export function recordsFrom(rows: readonly Row[]): InstalledFile[] {
  return rows.map((row) => ({
    name: String(row['name']),
    checksum: String(row['checksum']),
    version: String(row['version']),
  }))
}

/**
 * The schema and the table of records, unless they are there: CREATE SCHEMA IF NOT EXISTS would ask
 * for the right to create schemas even of a role for whom one was made. Stops in a schema of others.
 */
export function prepareSchema(schema: string): string {
  const literal = quoteLiteral(schema)
  return `DO ${dollarQuoted(` DECLARE
  space pg_catalog.oid := (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname ${eq} ${literal});
BEGIN
  IF space IS NULL THEN
    CREATE SCHEMA ${quoteIdentifier(schema)};
  END IF;
  IF pg_catalog.to_regclass(${quoteLiteral(recordsTable(schema))}) IS NULL THEN
    IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace ${eq} space)
       OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace ${eq} space) THEN
      RAISE EXCEPTION 'the schema was not made by Holdfast and is not empty';
    END IF;
    CREATE TABLE ${recordsTable(schema)} (
      name pg_catalog.text PRIMARY KEY,
      checksum pg_catalog.text NOT NULL,
      version pg_catalog.text NOT NULL,
      applied_at pg_catalog.timestamptz NOT NULL DEFAULT pg_catalog.now()
    );
  END IF;
END `)}`
}

/** A migration is recorded once: a second installer that got here fails. */
export function recordMigration(schema: string, file: InstalledFile): string {
  return `INSERT INTO ${recordsTable(schema)} (name, checksum, version) VALUES ${tuple(file)}`
}

export function recordRepeatable(schema: string, file: InstalledFile): string {
  return `${recordMigration(schema, file)}
  ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, version = excluded.version,
    applied_at = excluded.applied_at`
}

/** For a file that no longer exists. */
export function forgetFile(schema: string, name: string): string {
  return `DELETE FROM ${recordsTable(schema)} WHERE name ${eq} ${quoteLiteral(name)}`
}

/** Stops a script that was made for another state than the one it meets. */
export function assertMigrations(
  schema: string,
  expected: readonly Pick<InstalledFile, 'name' | 'checksum'>[],
): string {
  const list = expected.map(({ name, checksum }) => `${name} ${checksum}`).join(',')
  return `DO ${dollarQuoted(` BEGIN
  IF ${quoteLiteral(list)} ${ne} (
    SELECT coalesce(pg_catalog.string_agg(name ${cat} ' ' ${cat} checksum, ',' ORDER BY name COLLATE pg_catalog."C"), '')
    FROM ${recordsTable(schema)} WHERE name ${like} 'migrations/%'
  ) THEN
    RAISE EXCEPTION 'this script was planned for another state of the schema'
      USING HINT = 'Plan it again, from the last migration that installed_file lists.';
  END IF;
END `)}`
}

function tuple({ name, checksum, version }: InstalledFile): string {
  return `(${[name, checksum, version].map(quoteLiteral).join(', ')})`
}
