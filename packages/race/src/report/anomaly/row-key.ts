import { askedValue } from '../fix/assignments.ts'
import type { History, Moment } from './history.ts'
import { knownColumn, sameValue } from '../fix/known.ts'
import { keyOf, tableOf } from '../words.ts'

/** Whether both name a row, and not the same: `01` and ` 1 ` are one number, and a uuid has many spellings. */
export function namesOtherRow(
  history: Pick<History, 'known'>,
  one: Moment,
  other: Moment,
): boolean {
  const [key, there] = [keyOf(one), keyOf(other)]
  if (key === undefined || key.column !== there?.column || key.value === there.value) return false
  const [mine, theirs] = [one, other].map((moment) => askedValue(moment, key.column))
  const known = knownColumn(history, tableOf(one), key.column)
  if (mine === undefined || theirs === undefined || known === undefined) return true
  return sameValue(known, mine, theirs) === false
}
