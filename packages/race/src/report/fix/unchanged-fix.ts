/** A write under the condition that what was read is still so. */
import { assignedBy, changeOf, sentValue } from './assignments.ts'
import { type Case, changed, faster, whereOf } from './case.ts'
import { type Fix, seenValue, way } from './fix.ts'
import { isComparable, knownColumn, sameValue, sqlValue } from './known.ts'
import { sqlName } from '../sql/sql-name.ts'
import { tableOf } from '../words.ts'

/** What is longer is read by nobody. */
const longestLiteral = 60

/**
 * A column that was read, which the other one has changed: if it is still the same, nothing has happened. Whoever writes
 * back the whole row compares all of it: another order changes another column.
 */
export function unchangedFix(found: Case): Fix | undefined {
  const { history, read, write } = found
  const first = changedColumn(found)
  if (first === undefined) return undefined
  const set = assignedBy(write).flatMap(({ column }) => {
    const isOwn = write.statement.where.some((one) => one.column === column)
    const isOld = changeOf(write, column) === undefined && seenValue(read, column) !== undefined
    return isOld && !isOwn ? [column] : []
  })
  const conditions: string[] = []
  for (const column of new Set([first, ...set])) {
    const known = knownColumn(history, tableOf(write), column)
    const seen = seenValue(read, column)
    if (seen === undefined || !isComparable(known)) return undefined
    const value = seen === null ? 'IS NULL' : `= ${sqlValue(known, seen)}`
    if (value.length > longestLiteral) return undefined
    conditions.push(`${sqlName(column)} ${value}`)
  }
  return way(
    `${write.statement.verb === 'DELETE' ? 'Delete' : 'Write'} only if it is still what was read, and look at how many rows it changed: ${faster}.`,
    changed(write, [whereOf(write), ...conditions].join(' AND ')),
  )
}

function changedColumn({
  anomaly: { otherWrite },
  history,
  read,
  write,
}: Case): string | undefined {
  if (otherWrite === undefined || tableOf(otherWrite) !== tableOf(write)) return undefined
  const set = assignedBy(write).map(({ column }) => column)
  const columns = [...set, ...(read.step.answer.columns ?? []).filter((one) => !set.includes(one))]
  for (const column of columns) {
    const known = knownColumn(history, tableOf(write), column)
    const seen = seenValue(read, column)
    const sent = sentValue(otherWrite, column)
    const isOwn = write.statement.where.some((one) => one.column === column)
    if (seen === undefined || sent === undefined || isOwn || !isComparable(known)) continue
    if (changeOf(write, column) !== undefined || sameValue(known, seen, sent) !== false) continue
    if (seen === null || sqlValue(known, seen).length + 2 <= longestLiteral) return column
  }
  return undefined
}
