import { replaceThere } from '@holdfast/testkit'
import { ownFiles, type SchemaFiles, schemaFile } from '../../src/schema/schema-files.ts'

/**
 * The ledger's own SQL with one protection cut out of a function. Fails where the text is no longer
 * there: a control that still had its protection would prove nothing.
 */
export function weakened(name: string, protection: RegExp, instead: string): SchemaFiles {
  const files = ownFiles()
  const path = name.includes('/') ? name : `app/${name}`
  const file = files.repeatables.find((each) => each.name === path)
  const text = replaceThere(path, file?.text ?? '', protection, instead)
  const repeatables = files.repeatables.map((each) =>
    each === file ? schemaFile(each.name, text) : each,
  )
  return { ...files, repeatables }
}
