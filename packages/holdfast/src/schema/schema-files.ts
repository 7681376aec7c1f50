import { hash } from 'node:crypto'
import { holdfastError } from '../core/errors.ts'
import { packageVersion, sqlTexts } from './package-files.ts'

/** Functions and views: what is in a folder, and in which order the folders are applied. */
export type RepeatableFolder = 'internal' | 'views' | 'app' | 'operator'

const repeatableFolders: readonly RepeatableFolder[] = ['internal', 'views', 'app', 'operator']

/** One SQL file. */
export interface SchemaFile {
  /** Folder and name, without the ending: `migrations/0001-ledger`, `app/apply`. */
  readonly name: string
  readonly text: string
  readonly checksum: string
}

/** Everything that makes a schema. Data, so that tests can bring sets of their own. */
export interface SchemaFiles {
  /** Of Holdfast: an older one does not replace the functions of a newer one. */
  readonly version: string
  /** Applied once each, in this order, and never changed after a release. */
  readonly migrations: readonly SchemaFile[]
  /** Applied in this order whenever they changed, and all of them after a migration. */
  readonly repeatables: readonly SchemaFile[]
  /** What a migration of the same name needs of tables that are in use; applied before it, see `online.ts`. */
  readonly online?: readonly SchemaFile[]
}

/** A file by its name and text. Line ends do not count: a checkout may change them. */
export function schemaFile(name: string, text: string): SchemaFile {
  const lines = text.replaceAll('\r\n', '\n')
  return { name, text: lines, checksum: hash('sha256', lines) }
}

let read: SchemaFiles | undefined

/** The files of this version, from the package's `sql/` folder. */
export function ownFiles(): SchemaFiles {
  if (read !== undefined) return read
  const all = Object.entries(sqlTexts()).map(([name, text]) => schemaFile(name, text))
  const filesIn = (folder: string): SchemaFile[] =>
    all.filter(({ name }) => name.startsWith(`${folder}/`))
  read = {
    version: packageVersion(),
    migrations: filesIn('migrations'),
    repeatables: repeatableFolders.flatMap(filesIn),
    online: filesIn('online'),
  }
  return read
}

/**
 * Nothing to install is never what somebody wants: files got lost on the way.
 *
 * @throws SCHEMA_FILES_MISSING
 */
export function assertNotEmpty({ migrations }: SchemaFiles): void {
  if (migrations.length === 0) throw holdfastError('SCHEMA_FILES_MISSING')
}

/** The repeatables of one folder. */
export function inFolder(files: SchemaFiles, folder: RepeatableFolder): readonly SchemaFile[] {
  return files.repeatables.filter(({ name }) => name.startsWith(`${folder}/`))
}
