import { replaceThere } from '@holdfast/testkit'
import {
  ownFiles,
  type SchemaFile,
  type SchemaFiles,
  schemaFile,
} from '../../packages/holdfast/src/schema/schema-files.ts'

/** A protection of the ledger that a control goes without. */
export type Protection = 'guard' | 'lock' | 'dedup' | 'leg'

/**
 * The ledger's own SQL with one protection cut out, so that the very same client code runs against
 * it. Cutting fails loudly where the text is no longer there: a control that still had its protection
 * would prove nothing.
 */
export function weakenedFiles(missing: Protection): SchemaFiles {
  const files = ownFiles()
  const edits = cuts[missing]
  for (const name of edits.keys()) {
    if (!files.repeatables.some((file) => file.name === name)) {
      throw new Error(`no file ${name} to take the ${missing} out of`)
    }
  }
  return {
    ...files,
    repeatables: files.repeatables.map((file) => edits.get(file.name)?.(file) ?? file),
  }
}

/** One file, what is replaced in it, and by what. */
export type Replacement = readonly [file: string, pattern: RegExp, instead: string]

/** The ledger's own SQL with pieces replaced, for controls that put a bug back. */
export function replacedFiles(replacements: readonly Replacement[]): SchemaFiles {
  const files = ownFiles()
  const repeatables = [...files.repeatables]
  for (const [name, pattern, instead] of replacements) {
    const at = repeatables.findIndex((file) => file.name === name)
    const file = repeatables[at]
    if (file === undefined) throw new Error(`no file ${name} to replace ${pattern.source} in`)
    repeatables[at] = replaced(file, pattern, instead)
  }
  return { ...files, repeatables }
}

type Cut = (file: SchemaFile) => SchemaFile

function replaced(file: SchemaFile, pattern: RegExp, replacement: string): SchemaFile {
  return schemaFile(file.name, replaceThere(file.name, file.text, pattern, replacement))
}

/** Statements that run before everything else in a function. */
const beginsWith =
  (statements: string): Cut =>
  (file) =>
    replaced(file, /\nBEGIN\n/g, `\nBEGIN\n${statements}\n`)

const withoutRowLocks: Cut = (file) => replaced(file, /\bFOR NO KEY UPDATE( OF \w+)?/g, '')

/** The short way does what `apply` does; where that one is changed, everything has to go through it. */
const throughApply: Cut = (file) => {
  const call = /RETURN apply\([^;]*\);/.exec(file.text)?.[0]
  if (call === undefined) throw new Error(`${file.name} does not go on to apply() any more`)
  return beginsWith(call)(file)
}

/** Leaves everything to `apply`. */
const leavesAllOut: Cut = beginsWith("RETURN '';")
const leavesAllNewOut: Cut = beginsWith("RETURN '[0]';")

const cuts: Readonly<Record<Protection, ReadonlyMap<string, Cut>>> = {
  // Everything is booked whatever the balance, and no account has a wall.
  guard: new Map([
    ['app/apply', beginsWith('flags := ARRAY(SELECT f & ~2 | 1 FROM unnest(flags) AS f);')],
    ['app/apply_one', throughApply],
    ['app/apply_debit', throughApply],
    ['app/apply_plain', (file) => replaced(file, />= l\.debits \+ l\.holds/g, '>= -largest')],
    ['app/apply_new', (file) => replaced(file, />= l\.debits/g, '>= -largest')],
  ]),
  // Read, decide, write, with nothing in between that makes others wait.
  lock: new Map([
    ['app/apply', withoutRowLocks],
    ['app/apply_one', throughApply],
    ['app/apply_debit', throughApply],
    ['app/apply_plain', leavesAllOut],
    ['app/apply_new', leavesAllNewOut],
  ]),
  // A transfer gives a little less than it takes, now and then.
  leg: new Map([
    [
      'app/apply',
      (file) =>
        replaced(
          file,
          /amount := amounts\[i\];\n/g,
          'amount := amounts[i] - CASE WHEN kinds[i] = 16 AND amounts[i] % 7 = 2 THEN 1 ELSE 0 END;\n',
        ),
    ],
  ]),
  // Every call has an id of its own, whatever the caller says.
  dedup: new Map([
    [
      'app/apply',
      beginsWith(
        'ids := ARRAY(SELECT CASE WHEN i IS NOT NULL THEN gen_random_uuid() END FROM unnest(ids) AS i);',
      ),
    ],
    ['app/apply_one', throughApply],
    ['app/apply_debit', throughApply],
    ['app/apply_plain', leavesAllOut],
    ['app/apply_new', leavesAllNewOut],
  ]),
}
