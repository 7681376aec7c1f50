/** Ways out where what was looked at is not the row that was written: rows that are not there yet, sums, other rows. */
import type { Failure } from '../core/model.ts'
import type { Anomaly } from './anomaly.ts'
import { type Fix, hasColumn, hasHoldfast, way } from './fix.ts'
import { changedNothing, type History, type Moment, nameOf } from './history.ts'
import { clauseText } from './shorten.ts'
import { type Equality, readStatement } from './statement.ts'
import {
  isState,
  keyOf,
  list,
  ref,
  sqlName,
  sqlTable,
  subjectName,
  tableOf,
  variable,
} from './words.ts'

type Serial = Failure['serial']

export function checkFixes(
  anomaly: Anomaly,
  history: History,
  read: Moment,
  serial: Serial,
): Fix[] {
  const { write, otherRead, lockFault } = anomaly
  const told = new Set(read.step.answer.rows?.flat())
  // What only the read has told cannot be locked before it.
  const key =
    keyOf(read) ??
    (write && insertedBy(history, write).find((one) => isKey(one) && !told.has(one.value)))
  const both = otherRead === undefined ? [read.who] : [read.who, otherRead.who]
  const simple = [
    ...foreignKeyFix(anomaly, history),
    ...keyFirstFix(anomaly, history),
    ...uniqueFix(history, read, write, serial),
    ...(lockFault === undefined ? rowLockFix(anomaly, history, read, key) : []),
  ]
  const watched = oneWatched(anomaly, history)
  const guard = guardFix(key, tableOf(read))
  const guarded = lockFault === undefined && (simple.length === 0 || hasHoldfast(history))
  if (watched !== undefined) return [watched, ...simple]
  return [
    ...simple,
    ...(guarded ? [guard] : []),
    way(`Run ${list([...new Set(both)])} at SERIALIZABLE, and run again what fails with 40001.`),
  ]
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

export function guardFix(key: Equality | undefined, table: string): Fix {
  const [name, part] =
    key === undefined ? [table, `'all'`] : [subjectName(key.column, table), variable(key.column)]
  const which = key === undefined ? '' : `, here the one for ${key.column} = ${key.value}`
  return way(
    `Lock a name before the read, and hold it to the commit${which}.`,
    `await hf.guard(lockKey('${name}', ${part}), async (tx) => { … })`,
  )
}

/** One adds a row that names a row, which the other removes. */
function foreignKeyFix({ write, otherWrite }: Anomaly, history: History): Fix[] {
  const [added, removed] = [write, otherWrite].toSorted((one, other) => rankOf(one) - rankOf(other))
  if (added?.statement.verb !== 'INSERT' || removed?.statement.verb !== 'DELETE') return []
  const gone = keyOf(removed)
  const equal = insertedBy(history, added).filter(({ value }) => value === gone?.value)
  // Where several have the same value its name tells; else it may be any of them.
  const named = equal.filter((one) => parentOf(history, one) === tableOf(removed))
  const [naming] = named.length > 0 ? named : equal
  if (gone === undefined || naming === undefined || (equal.length > 1 && named.length !== 1)) {
    return []
  }
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
function keyFirstFix({ read, write }: Anomaly, { moments }: History): Fix[] {
  if (read === undefined || write === undefined || read === write) return []
  const table = tableOf(read)
  const noted = moments.find(
    ({ statement, step, kind }) =>
      kind === 'write' &&
      step.flow === read.step.flow &&
      step.index > write.step.index &&
      statement.verb === 'INSERT' &&
      statement.table === table,
  )
  if (noted === undefined || tableOf(write) === table) return []
  return [
    way(
      `Begin with ${ref(noted)}, in one transaction with the rest, and go on only if it inserted a row.`,
      `INSERT INTO ${sqlTable(read)} … ON CONFLICT DO NOTHING -- 0 rows: somebody was faster`,
    ),
  ]
}

function uniqueFix(
  history: History,
  read: Moment,
  write: Moment | undefined,
  serial: Serial,
): Fix[] {
  // Where conflicts are met there is a constraint already.
  if (write?.statement.verb !== 'INSERT' || clauseText(write.statement, 'ON') !== undefined) {
    return []
  }
  const table = sqlTable(write)
  const number = numberedColumn(history, read, write)
  if (number !== undefined) {
    const columns = [...read.statement.where.map(({ column }) => column), number].map(sqlName)
    return [
      way(
        'Let the database give the number: an identity column, or a sequence. If there must be no gaps, say that it is unique and try again after 23505.',
        `CREATE UNIQUE INDEX ON ${table} (${columns.join(', ')})`,
      ),
    ]
  }
  const found = uniqueColumns(history, read, write, serial)
  // A rule about those in one state is not one about all of them.
  const [states, keys] = [found.filter(isState), found.filter((one) => !isState(one))]
  if (keys.length === 0) return []
  const columns = keys.map(({ column }) => sqlName(column)).join(', ')
  const only = states.map(({ column, value }) => `${sqlName(column)} = ${value}`).join(' AND ')
  const where = only === '' ? '' : ` WHERE ${only}`
  const otherwise = read.statement.verb === 'UPDATE' ? 'DO UPDATE SET …' : 'DO NOTHING'
  return [
    way(
      'Let a constraint say it, and insert without looking first.',
      `CREATE UNIQUE INDEX ON ${table} (${columns})${where} -- then INSERT … ON CONFLICT (${columns})${where} ${otherwise}`,
    ),
  ]
}

/** The column that got what the read gave as the highest, or the one after it. */
function numberedColumn(history: History, read: Moment, write: Moment): string | undefined {
  // `max(number)`, or the first of them in the other direction.
  const isHighest =
    read.statement.aggregate === 'max' ||
    (read.statement.limited && clauseText(read.statement, 'ORDER') !== undefined)
  if (!isHighest) return undefined
  const seen = read.step.answer.rows?.[0]?.[0]
  const highest = Number(seen ?? (read.step.answer.rowCount === 0 ? 0 : Number.NaN))
  const text = read.step.statements.join(' ')
  return insertedBy(history, write).find(
    ({ column, value }) =>
      [highest, highest + 1].includes(Number(value)) &&
      new RegExp(String.raw`\b${escaped(column)}\b`).test(text),
  )?.column
}

/**
 * Columns that the check compares and the INSERT fills with the same values: then the rule is that
 * there is only one, and a constraint can say so. Counting up to a limit is another rule.
 */
function uniqueColumns(
  history: History,
  read: Moment,
  write: Moment,
  serial: Serial,
): readonly Equality[] {
  const { aggregate, where, limited } = read.statement
  if (!asksOnlyForEquals(read)) return []
  if (write === read) return where
  if (limited && clauseText(read.statement, 'ORDER') !== undefined) return []
  const counted = aggregate === 'count' && read.step.answer.rows?.[0]?.[0] === '0'
  const none = read.step.answer.rowCount === 0 || changedNothing(read)
  if (aggregate === undefined ? !none : aggregate !== 'exists' && !counted) return []
  if (serial.some(({ run }) => insertsInto(run, tableOf(write)) > 1)) return []
  const inserted = insertedBy(history, write)
  return where.filter(({ column, value }) =>
    inserted.some((one) => one.column === column && one.value === value),
  )
}

function escaped(name: string): string {
  return name.replaceAll(/[^\w]/g, String.raw`\$&`)
}

const comparisons = /^(?:<|>|<=|>=|<>|!=|~~?\*?|&&|@>|<@)$/
const conditions = new Set(['IS', 'NOT', 'IN', 'LIKE', 'ILIKE', 'BETWEEN', 'OR', 'ANY'])

/** Times that overlap, those not deleted, texts without their case: no index on the rest says that. */
function asksOnlyForEquals({ statement: { whereTokens, where } }: Moment): boolean {
  const asksMore = whereTokens.some(
    ({ text, upper }, at) =>
      comparisons.test(text) ||
      (conditions.has(upper) && !(upper === 'NOT' && whereTokens[at + 1]?.upper === 'EXISTS')),
  )
  return !asksMore && whereTokens.filter(({ text }) => text === '=').length === where.length
}

function insertsInto({ steps }: Serial[number]['run'], table: string): number {
  return steps.filter(
    ({ statements, half, answer }) =>
      half !== 'commit' &&
      answer.rowCount > 0 &&
      statements
        .map((sql) => readStatement(sql))
        .some((one) => one.verb === 'INSERT' && one.table === table),
  ).length
}

/** What an INSERT put into which column, also where it does not name them. */
function insertedBy({ run }: History, { statement }: Moment): readonly Equality[] {
  if (statement.sets.length > 0 || statement.values.length === 0) return statement.sets
  const bare = statement.table?.split('.').at(-1)
  const table = run.tables.find(({ name }) => name.split('.').at(-1) === bare)
  if (table?.columns.length !== statement.values.length) return []
  return table.columns.flatMap((column, at): Equality[] => {
    const value = statement.values[at]
    return value === undefined ? [] : [{ column, value }]
  })
}

function isKey({ column }: Equality): boolean {
  return /_id$|Id$/.test(column)
}

/** Rows that are there can be locked; for those that are not, a row that all such checks share. */
function rowLockFix(
  { name, write, otherRead, otherWrite }: Anomaly,
  history: History,
  read: Moment,
  key: Equality | undefined,
): Fix[] {
  const changes = ![write, otherWrite].some((one) => one?.statement.verb === 'INSERT')
  if (name === 'write skew' && changes) {
    return [
      way(
        `Lock every row that the decision rests on, (${read.number})${otherRead === undefined ? '' : ` and (${otherRead.number})`}, and in one order on both sides.`,
        [...new Set([read, otherRead ?? read].map(lockingRead))].join('; '),
      ),
    ]
  }
  if (key === undefined || !/[^_]_?id$/i.test(key.column)) return []
  const parent = parentOf(history, key)
  // A row that is not there cannot be locked.
  if (parent !== undefined && !hasRow(history, parent, key.value)) return []
  return [
    parent === undefined || !hasColumn(history, parent, 'id')
      ? way(
          `Lock the row that ${key.column} refers to before (${read.number}), with SELECT … FOR UPDATE. Locking rows of ${tableOf(read)} does not help: the one in question is not there yet.`,
        )
      : way(
          `Lock the parent row before (${read.number}).`,
          `SELECT 1 FROM ${sqlName(parent)} WHERE id = ${key.value} FOR UPDATE`,
        ),
  ]
}

function hasRow({ run, schema }: History, table: string, value: string): boolean {
  const found = run.tables.find(({ name }) => nameOf(name, { schema }) === table)
  const bare = value.replace(/^'(.*)'$/s, '$1')
  return found === undefined || found.rows.some((row) => row.includes(bare))
}

/** Rows under an aggregate cannot be locked where it is computed. */
function lockingRead(read: Moment): string {
  const where = clauseText(read.statement, 'WHERE')
  const rows = `FROM ${sqlTable(read)}${where === undefined ? '' : ` WHERE ${where}`}`
  const { aggregate } = read.statement
  if (aggregate === undefined) return `SELECT … ${rows} FOR UPDATE`
  const call = aggregate === 'count' ? 'count(*)' : `${aggregate}(…)`
  return `SELECT ${call} FROM (SELECT … ${rows} ORDER BY … FOR UPDATE) AS locked`
}

/** `event_id` → `events`, if there is such a table. */
function parentOf({ run, moments, schema }: History, { column }: Equality): string | undefined {
  const [, stem] = /^(\w+?)_?id$/i.exec(column) ?? []
  if (stem === undefined) return undefined
  const forms = [stem, `${stem}s`, `${stem}es`, stem.replace(/y$/i, 'ies')]
  const wanted = new Set(forms.map((form) => form.toLowerCase()))
  const known = [
    ...run.tables.map(({ name }) => nameOf(name, { schema })),
    ...moments.flatMap(({ statement }) => statement.tables),
  ]
  return known.find((name) => wanted.has(name.toLowerCase()))
}
