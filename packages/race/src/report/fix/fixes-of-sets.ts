/** Ways out where what was looked at is not the row that was written: rows that are not there yet, sums, other rows. */
import type { Failure } from '../../core/model.ts'
import type { Anomaly } from '../anomaly/anomaly.ts'
import { type Fix, hasHoldfast, way } from './fix.ts'
import { guardFix, isInstalled } from './guard-fix.ts'
import type { History, Moment } from '../anomaly/history.ts'
import { knownColumn, knownTable } from './known.ts'
import { everyRowFix, nameLockFix, parentLockFix, parentOf, rowLockFix } from './lock-fixes.ts'
import type { Equality } from '../sql/statement.ts'
import { insertedBy, uniqueFix } from './unique-fix.ts'
import { sqlName } from '../sql/sql-name.ts'
import { keyOf, list, ref, sqlTable, tableOf } from '../words.ts'

export function checkFixes(
  anomaly: Anomaly,
  history: History,
  read: Moment,
  serial: Failure['serial'],
): Fix[] {
  const { write, otherRead, lockFault } = anomaly
  const both = otherRead === undefined ? [read.who] : [read.who, otherRead.who]
  const simple = [
    ...foreignKeyFix(anomaly, history),
    ...keyFirstFix(anomaly, history),
    ...uniqueFix(history, read, write, serial),
    ...(lockFault === undefined ? locksOf(anomaly, history, read) : []),
  ]
  const watched = oneWatched(anomaly, history)
  const shared = sharedKey(anomaly, history, read)
  // Whoever has no Holdfast can take the same lock by SQL.
  const guard =
    hasHoldfast(history) || isInstalled()
      ? guardFix(shared, tableOf(read), history, [read, write])
      : nameLockFix(read, shared ?? 'all')
  const guarded = lockFault === undefined && (simple.length === 0 || hasHoldfast(history))
  if (watched !== undefined) return [watched, ...simple]
  return [
    ...simple,
    ...(guarded ? [guard] : []),
    way(`Run ${list([...new Set(both)])} at SERIALIZABLE, and run again what fails with 40001.`),
  ]
}

/** What both sides name: a lock of it is the same for both. */
function sharedKey(
  { otherRead, otherWrite }: Anomaly,
  history: History,
  read: Moment,
): Equality | undefined {
  const key = keyOf(read)
  const sides = [otherRead, otherWrite].flatMap((one) => one ?? [])
  const named = sides.flatMap((one) => [...one.statement.where, ...insertedBy(history, one)])
  const isShared = named.some(({ column, value }) => column === key?.column && value === key.value)
  return isShared ? key : undefined
}

/** Rows that are there can be locked; for those that are not, a row that all such checks share. */
function locksOf(anomaly: Anomaly, history: History, read: Moment): Fix[] {
  const { name, write, otherRead, otherWrite } = anomaly
  const adds = [write, otherWrite].some((one) => one?.statement.verb === 'INSERT')
  if (name === 'write skew' && !adds) return [everyRowFix(anomaly, read)]
  // Who changes the row without a look waits for its lock. Who looks first would look too early.
  const changes = otherWrite !== undefined && otherWrite.statement.verb !== 'INSERT'
  const key = sharedKey(anomaly, history, read)
  const sameRow = changes && key !== undefined && tableOf(otherWrite) === tableOf(read)
  if (sameRow && otherRead === undefined && read.statement.aggregate === undefined) {
    return rowLockFix(history, read, write)
  }
  return changes ? [] : parentLockFix(history, read, write)
}

/** Where one side is SERIALIZABLE already, the other one is what is missing. */
function oneWatched({ read, commit }: Anomaly, { moments }: History): Fix | undefined {
  const sides = [read, commit].flatMap((side) => (side === undefined ? [] : [side.step.flow]))
  const careless = sides.filter(
    (flow) =>
      !moments.some(
        ({ step }) => step.flow === flow && step.footprint.isolation === 'serializable',
      ),
  )
  const [flow] = careless
  const who = moments.find(({ step }) => step.flow === flow)?.who
  if (careless.length !== 1 || who === undefined) return undefined
  return way(
    `Run ${who} at SERIALIZABLE as well: PostgreSQL watches only what transactions at that level read and write.`,
    'BEGIN ISOLATION LEVEL SERIALIZABLE',
  )
}

/** One adds a row that names a row, which the other removes. */
function foreignKeyFix({ write, otherWrite }: Anomaly, history: History): Fix[] {
  const [added, removed] = [write, otherWrite].toSorted((one, other) => rankOf(one) - rankOf(other))
  if (added?.statement.verb !== 'INSERT' || removed?.statement.verb !== 'DELETE') return []
  const gone = keyOf(removed)
  const equal = insertedBy(history, added).filter(({ value }) => value === gone?.value)
  // Where several have the same value its name tells; else it may be any of them.
  const named = equal.filter(
    (one) => parentOf(history, tableOf(added), one)?.table === tableOf(removed),
  )
  const [naming] = named.length > 0 ? named : equal
  if (gone === undefined || naming === undefined || (equal.length > 1 && named.length !== 1)) {
    return []
  }
  const parent = knownTable(history, tableOf(removed))
  const isThere = knownColumn(history, tableOf(added), naming.column)?.refers !== undefined
  const isKey = parent?.uniques.some(([column, more]) => column === gone.column && !more)
  if (isThere || (parent !== undefined && isKey !== true)) return []
  return [
    way(
      'Let a foreign key say it: the row cannot be removed while another one names it.',
      `ALTER TABLE ${sqlTable(added)} ADD FOREIGN KEY (${sqlName(naming.column)}) REFERENCES ${sqlTable(removed)} (${sqlName(gone.column)})`,
    ),
  ]
}

function rankOf(moment: Moment | undefined): number {
  return moment?.statement.verb === 'INSERT' ? 0 : 1
}

/** The look is at what the flow itself notes down later: then noting it down can be the look. */
function keyFirstFix({ read, write }: Anomaly, history: History): Fix[] {
  if (read === undefined || write === undefined || read === write) return []
  const table = tableOf(read)
  const noted = history.moments.find(
    ({ statement, step, kind }) =>
      kind === 'write' &&
      step.flow === read.step.flow &&
      step.index > write.step.index &&
      statement.verb === 'INSERT' &&
      statement.table === table,
  )
  if (noted === undefined || tableOf(write) === table) return []
  // Without a unique key that it fills, it always inserts.
  const filled = new Set(insertedBy(history, noted).map(({ column }) => column))
  const { uniques } = knownTable(history, table) ?? {}
  if (uniques?.some((columns) => columns.every((column) => filled.has(column))) !== true) return []
  return [
    way(
      `Begin with ${ref(noted)}, in one transaction with the rest, and go on only if it inserted a row.`,
      `INSERT INTO ${sqlTable(read)} … ON CONFLICT DO NOTHING -- 0 rows: somebody was faster`,
    ),
  ]
}
