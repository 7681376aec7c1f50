import { replaceThere } from '@holdfast/testkit'
import {
  ownFiles,
  type SchemaFile,
  type SchemaFiles,
  schemaFile,
} from '../../packages/holdfast/src/schema/schema-files.ts'

/**
 * Our own SQL without what makes a key unique: look, work, remember. Cutting fails loudly where the text
 * is no longer there.
 */
export function withoutUniqueKeys(): SchemaFiles {
  const files = ownFiles()
  const cut = (file: SchemaFile): SchemaFile => {
    const pattern = cuts[file.name]
    if (pattern === undefined) return file
    return schemaFile(file.name, replaceThere(file.name, file.text, pattern, ''))
  }
  const all = new Set([...files.migrations, ...files.repeatables].map(({ name }) => name))
  for (const name of Object.keys(cuts)) if (!all.has(name)) throw new Error(`no file ${name}`)
  return {
    ...files,
    migrations: files.migrations.map(cut),
    repeatables: files.repeatables.map(cut),
  }
}

const cuts: Readonly<Record<string, RegExp>> = {
  'migrations/0005-once': /,\n\s*PRIMARY KEY \(bucket, key, scope\)/,
  'app/begin_once': / {2}IF wait THEN[^]*?END IF;\n/,
  'app/store_once': /\n\s*ON CONFLICT[^]*?<= moment(?=;)/,
}
