/** Locks that are to be taken: of the row that is read, of the one that it belongs to, of a name. */
import type { Anomaly } from '../anomaly/anomaly.ts'
import { type Fix, way, withEdit } from './fix.ts'
import { type History, type Moment, nameOf } from '../anomaly/history.ts'
import { bare, knownColumn, knownTable, sameValue } from './known.ts'
import { clauseText } from '../sql/shorten.ts'
import type { Equality } from '../sql/statement.ts'
import { sqlName } from '../sql/sql-name.ts'
import { lockingEdit } from './statement-edit.ts'
import { keyOf, sqlTable, tableOf } from '../words.ts'

/** A lock ends with its transaction: where there is none, or another one, that has to be said. */
export function isOneTransaction(read: Moment, write: Moment | undefined): boolean {
  const { transaction } = read
  if (transaction === undefined || transaction.autocommit) return false
  return write === undefined || write.transaction === transaction
}

/** The row that is read. One that is not there cannot be locked, nor one of a view that adds up. */
export function rowLockFix(history: History, read: Moment, write: Moment | undefined): Fix[] {
  const table = tableOf(read)
  const last = (name: string): string | undefined => name.split('.').at(-1)
  const isTable = history.run.tables.some(({ name }) => last(name) === last(table))
  const isKnown = knownTable(history, table) !== undefined
  const isThere = isTable || isKnown || history.run.tables.length + history.known.length === 0
  if (read.step.answer.rowCount === 0 || !isThere) return []
  const elsewhere =
    write !== undefined && write.step.flow === read.step.flow && write.step.lane !== read.step.lane
  const text = elsewhere
    ? `Send (${read.number}) and (${write.number}) through one client, between its BEGIN and its COMMIT: they are on two connections, so they are not in one transaction. Then lock the row when reading it.`
    : isOneTransaction(read, write)
      ? `Lock the row when reading it (${read.number}), in the same transaction as the write.`
      : `Put BEGIN before the read (${read.number}) and COMMIT after the write, and lock the row when reading it: a lock ends with its transaction.`
  const fix = way(text, lockingRead(read, write))
  if (elsewhere || !isOneTransaction(read, write)) return [fix]
  return [withEdit(fix, lockingEdit(read, `FOR UPDATE${ofTable(read, write)}`))]
}

/** Rows under an aggregate cannot be locked where it is computed. */
function lockingRead(read: Moment, write?: Moment): string {
  const where = clauseText(read.statement, 'WHERE')
  const { aggregate, clauses } = read.statement
  // As it stands, with the other names that it gives its tables: WHERE uses them.
  const from = clauses.find(({ name }) => name === 'FROM') && clauseText(read.statement, 'FROM')
  const rows = `FROM ${where === undefined || from === undefined ? sqlTable(read) : from}${where === undefined ? '' : ` WHERE ${where}`}`
  if (aggregate === undefined) return `SELECT … ${rows} FOR UPDATE${ofTable(read, write)}`
  const call = aggregate === 'count' ? 'count(*)' : `${aggregate}(…)`
  return `SELECT ${call} FROM (SELECT … ${rows} ORDER BY … FOR UPDATE) AS locked`
}

/** Of a join only the rows that are written: the other side of an outer join cannot be locked. */
function ofTable({ statement }: Moment, write: Moment | undefined): string {
  const from = statement.clauses.find(({ name }) => name === 'FROM')?.tokens.slice(1) ?? []
  const isJoin = from.some(
    ({ depth, text, upper }) => depth === 0 && (text === ',' || upper === 'JOIN'),
  )
  if (!isJoin || write === undefined) return ''
  const name = tableOf(write).split('.').at(-1)
  const at = from.findIndex(({ text, depth }) => depth === 0 && text === name)
  if (at === -1) return ''
  const next = from[at + 1]?.upper === 'AS' ? from[at + 2] : from[at + 1]
  const isAlias = next !== undefined && /^(?:word|name)$/.test(next.kind) && !joins.has(next.upper)
  return ` OF ${isAlias ? sqlName(next.text) : sqlName(name ?? '')}`
}

const joins: ReadonlySet<string> = new Set(
  'JOIN INNER LEFT RIGHT FULL CROSS NATURAL ON USING OUTER TABLESAMPLE'.split(' '),
)

/** Under a snapshot of its transaction a read that follows a lock is as old as the wait for it. */
function atReadCommitted({
  step: { footprint },
}: Moment): { readonly text: string; readonly code: string } | undefined {
  if (footprint.isolation === 'read committed') return undefined
  return {
    text: ` At ${footprint.isolation.toUpperCase()} the lock waits and the read after it does not see what it waited for, so begin at READ COMMITTED.`,
    code: 'BEGIN ISOLATION LEVEL READ COMMITTED; ',
  }
}

/** What is asked for is not there yet; what all such rows belong to is, and all who ask can lock it. */
export function parentLockFix(history: History, read: Moment, write: Moment | undefined): Fix[] {
  const { where } = read.statement
  const parents = where.flatMap((key) => parentOf(history, tableOf(read), key) ?? [])
  const [parent] = parents
  if (parent === undefined) return []
  const text = isOneTransaction(read, write)
    ? `Lock the parent row before (${read.number}).`
    : `Put BEGIN before (${read.number}) and COMMIT after the write, and lock the parent row first: a lock ends with its transaction.`
  const level = atReadCommitted(read)
  return [
    way(
      `${text}${level?.text ?? ''}`,
      `${level?.code ?? ''}SELECT 1 FROM ${sqlName(parent.table)} WHERE ${sqlName(parent.column)} = ${parent.value} FOR UPDATE`,
    ),
  ]
}

interface Parent {
  readonly table: string
  readonly column: string
  readonly value: string
}

/** By the foreign key; without one by the name, `event_id` → `events`. In any case the row has to be there. */
export function parentOf(history: History, table: string, key: Equality): Parent | undefined {
  const refers = knownColumn(history, table, key.column)?.refers
  const parent = refers === undefined ? namedParent(history, key) : refers
  if (parent === undefined) return undefined
  const known = knownTable(history, parent.table)
  const at = known?.columns.findIndex(({ name }) => name === parent.column) ?? -1
  const column = known?.columns[at]
  const isThere = known?.rows?.some((row) => {
    const value = row[at]
    return typeof value === 'string' && sameValue(column, value, bare(key.value)) === true
  })
  // With a foreign key the row is there, or the insert would have failed.
  if (isThere !== true && (refers === undefined || known?.rows !== undefined)) return undefined
  return { table: nameOf(parent.table, history), column: parent.column, value: key.value }
}

function namedParent(
  { known }: History,
  { column }: Equality,
): { readonly table: string; readonly column: string } | undefined {
  const [, stem] = /^(\w+?)_?id$/i.exec(column) ?? []
  if (stem === undefined) return undefined
  const forms = [stem, `${stem}s`, `${stem}es`, stem.replace(/y$/i, 'ies')]
  const wanted = new Set(forms.map((form) => form.toLowerCase()))
  const [found, another] = known.filter(({ name }) => {
    return wanted.has(name.slice(name.indexOf('.') + 1).toLowerCase())
  })
  const [key, second] = found?.columns.filter((one) => one.key) ?? []
  if (found === undefined || another !== undefined || key === undefined || second) return undefined
  return { table: found.name, column: key.name }
}

/** A lock that is there whatever rows are. */
export function nameLockFix(read: Moment, key: Equality | 'all' | undefined = keyOf(read)): Fix {
  const level = atReadCommitted(read)
  const name =
    key === undefined || key === 'all' ? tableOf(read) : `${tableOf(read)} ${bare(key.value)}`
  return way(
    `Lock a name before the read (${read.number}), in one transaction with the write, wherever this is done.${level?.text ?? ''}`,
    `${level?.code ?? ''}SELECT pg_advisory_xact_lock(hashtext('${name.replaceAll("'", "''")}'))`,
  )
}

/** Rows that are there, on which both sides have decided. */
export function everyRowFix({ otherRead }: Anomaly, read: Moment): Fix {
  return way(
    `Lock every row that the decision rests on, (${read.number})${otherRead === undefined ? '' : ` and (${otherRead.number})`}, and in one order on both sides.`,
    [...new Set([read, otherRead ?? read].map((one) => lockingRead(one)))].join('; '),
  )
}
