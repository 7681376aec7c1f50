import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Fix, way, withEdit } from './fix.ts'
import { guardEdit } from './guard-edit.ts'
import type { History, Moment } from '../anomaly/history.ts'
import type { Equality } from '../sql/statement.ts'
import { subjectName, variable } from '../words.ts'

/** A lock by name of Holdfast's: of the rows that the key is about, or of the whole table. */
export function guardFix(
  key: Equality | undefined,
  table: string,
  history: History,
  [read, write]: readonly [Moment, Moment | undefined],
): Fix {
  const [name, part] =
    key === undefined ? [table, `'all'`] : [subjectName(key.column, table), variable(key.column)]
  const which = key === undefined ? '' : `, here the one for ${key.column} = ${key.value}`
  const fix = way(
    `Lock a name before the read, and hold it to the commit${which}.`,
    `await hf.guard(lockKey('${name}', ${part}), async (tx) => { … })`,
  )
  return withEdit(fix, guardEdit(history, [read, write], { name, part }))
}

/** Whether the project that runs this has Holdfast, as Node looks for it: what it does not have is no advice. */
export function isInstalled(folder: string = process.cwd()): boolean {
  if (existsSync(join(folder, 'node_modules', 'holdfast', 'package.json'))) return true
  const above = dirname(folder)
  return above !== folder && isInstalled(above)
}
