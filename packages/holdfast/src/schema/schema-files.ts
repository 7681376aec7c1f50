import { hash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

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
  read ??= {
    version: ownVersion(),
    migrations: filesIn('migrations'),
    repeatables: repeatableFolders.flatMap(filesIn),
    online: filesIn('online'),
  }
  return read
}

/** The repeatables of one folder. */
export function inFolder(files: SchemaFiles, folder: RepeatableFolder): readonly SchemaFile[] {
  return files.repeatables.filter(({ name }) => name.startsWith(`${folder}/`))
}

function filesIn(folder: string): SchemaFile[] {
  const url = new URL(`../../sql/${folder}/`, import.meta.url)
  return (existsSync(url) ? readdirSync(url) : [])
    .filter((name) => name.endsWith('.sql'))
    .toSorted()
    .map((name) =>
      schemaFile(`${folder}/${name.slice(0, -4)}`, readFileSync(new URL(name, url), 'utf8')),
    )
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
