/** A constraint in the place of a look: where the rows bear out that there is only one, or that each number is given once. */
import type { Failure, FinalTable } from '../../core/model.ts'
import { type Fix, way, withEdit } from './fix.ts'
import { changedNothing, type History, type Moment } from '../anomaly/history.ts'
import { bare, isStateType, knownColumn, knownTable, sameValue } from './known.ts'
import { clauseText } from '../sql/shorten.ts'
import { type Equality, readStatement } from '../sql/statement.ts'
import { sqlName } from '../sql/sql-name.ts'
import { conflictEdit } from './statement-edit.ts'
import { isState, sqlTable, tableOf } from '../words.ts'

type Serial = Failure['serial']

/** A unique index, on rows that are as `only` says. */
interface Index {
  readonly columns: readonly string[]
  readonly only: readonly Equality[]
}

export function uniqueFix(
  history: History,
  read: Moment,
  write: Moment | undefined,
  serial: Serial,
): Fix[] {
  // Where conflicts are met there is a constraint already.
  if (write?.statement.verb !== 'INSERT' || clauseText(write.statement, 'ON') !== undefined) {
    return []
  }
  return numberFix(history, read, write, serial) ?? onlyOneFix(history, read, write, serial)
}

function numberFix(
  history: History,
  read: Moment,
  write: Moment,
  serial: Serial,
): Fix[] | undefined {
  const number = numberedColumn(history, read, write)
  if (number === undefined) return undefined
  const of = read.statement.where.map(({ column }) => column)
  const index: Index = { columns: [...of, number], only: [] }
  if (!holds(history, tableOf(write), index, serial)) return []
  const each =
    of.length === 0
      ? 'Let the database give the number: an identity column, or a sequence. If there must be no gaps, say that it is unique and try again after 23505.'
      : 'Say that the number is unique, and try again after 23505.'
  return [way(each, createIndex(write, index))]
}

function createIndex(write: Moment, { columns, only }: Index): string {
  return `CREATE UNIQUE INDEX ON ${sqlTable(write)} (${columns.map(sqlName).join(', ')})${condition(only)}`
}

function condition(only: readonly Equality[]): string {
  const all = only.map(({ column, value }) => `${sqlName(column)} = ${value}`).join(' AND ')
  return all === '' ? '' : ` WHERE ${all}`
}

/** The column of which the read gave the highest, or the one after it, and that got the one after it. */
function numberedColumn(history: History, read: Moment, write: Moment): string | undefined {
  const { aggregate, limited } = read.statement
  const text = read.step.statements.join(' ')
  const order = limited ? clauseText(read.statement, 'ORDER') : undefined
  const seen = read.step.answer.rows?.[0]?.[0]
  const highest = Number(seen ?? (read.step.answer.rowCount === 0 ? 0 : Number.NaN))
  const isNext = /\+\s*(?:1\b|\$\d)/.test(text)
  return insertedBy(history, write).find(({ column, value }) => {
    const name = `(?:\\w+\\.)?"?${escaped(column)}"?`
    // `max(number)`, or the first of them in the other direction. The last line's total is no such number.
    const isHighest =
      aggregate === 'max'
        ? new RegExp(String.raw`\bmax\s*\(\s*(?:"?\w+"?\.)*"?${escaped(column)}"?\s*\)`, 'i').test(
            text,
          )
        : new RegExp(String.raw`^BY ${name}\s+DESC`, 'i').test(order ?? '')
    return isHighest && Number(value) === (isNext ? highest : highest + 1)
  })?.column
}

function onlyOneFix(history: History, read: Moment, write: Moment, serial: Serial): Fix[] {
  const table = tableOf(write)
  const found = uniqueColumns(history, read, write, serial)
  const isOf = (one: Equality): boolean => {
    const known = knownColumn(history, table, one.column)
    return isState(one) || isStateType(known) || isFilled(history, write, one)
  }
  // A rule about those in one state is not one about all of them.
  const index: Index = {
    columns: found.filter((one) => !isOf(one)).map(({ column }) => column),
    only: found.filter(isOf),
  }
  if (index.columns.length === 0 || !holds(history, table, index, serial)) return []
  const columns = index.columns.map(sqlName).join(', ')
  const otherwise = read.statement.verb === 'UPDATE' ? 'DO UPDATE SET …' : 'DO NOTHING'
  const target = `(${columns})${condition(index.only)}`
  const fix = way(
    'Let a constraint say it, and insert without looking first.',
    `${createIndex(write, index)} -- then INSERT … ON CONFLICT ${target} ${otherwise}`,
  )
  if (read.statement.verb === 'UPDATE') return [fix]
  return [withEdit(fix, conflictEdit(write, { target, index: createIndex(write, index) }))]
}

/** Neither the rows that were there nor those of a serial order may be against it. */
function holds(history: History, table: string, index: Index, serial: Serial): boolean {
  const known = knownTable(history, table)
  if (known !== undefined) {
    const seeded = known.rows
    if (seeded === undefined || clashes(history, table, index, { ...known, rows: seeded }))
      return false
  }
  const isMeant = ({ name }: FinalTable): boolean =>
    name === (known?.name ?? table) || name === `public.${table}`
  return !serial.some(({ run }) => {
    return run.tables.some((one) => isMeant(one) && clashes(history, table, index, one))
  })
}

interface Rows {
  readonly columns: readonly (string | { readonly name: string })[]
  readonly rows: readonly (readonly (string | null)[])[]
}

function clashes(history: History, table: string, { columns, only }: Index, all: Rows): boolean {
  const names = all.columns.map((one) => (typeof one === 'string' ? one : one.name))
  const places = columns.map((column) => names.indexOf(column))
  if (places.includes(-1)) return false
  const meant = all.rows.filter((row) =>
    only.every(({ column, value }) => {
      const cell = row[names.indexOf(column)]
      const known = knownColumn(history, table, column)
      return typeof cell === 'string' && sameValue(known, cell, bare(value)) !== false
    }),
  )
  const keys = meant
    .map((row) => places.map((at) => row[at] ?? null))
    // A key that is drawn anew has a word in its place, and NULL is never twice.
    .filter((key) => !key.some((cell) => cell === null || /^[‹→]/.test(cell)))
    .map((key) => JSON.stringify(key))
  return new Set(keys).size < keys.length
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
  const { answer } = read.step
  const counted =
    aggregate === 'count' && answer.rows?.[0]?.[0] === '0' && answer.columns?.length === 1
  const none = answer.rowCount === 0 || changedNothing(read)
  if (aggregate === undefined ? !none : aggregate !== 'exists' && !counted) return []
  if (serial.some(({ run }) => insertsInto(run, tableOf(write)) > 1)) return []
  if (readsLimit(history, read, write)) return []
  const inserted = insertedBy(history, write)
  const isGiven = (one: Equality): boolean =>
    isFilled(history, write, one) ||
    inserted.some(({ column, value }) => column === one.column && value === one.value)
  return where.every(isGiven) ? where : []
}

/** Whether the INSERT leaves the column to its default, and that is the value. */
function isFilled(history: History, write: Moment, { column, value }: Equality): boolean {
  if (insertedBy(history, write).some((one) => one.column === column)) return false
  const known = knownColumn(history, tableOf(write), column)
  return known?.filled !== undefined && sameValue(known, known.filled, bare(value)) === true
}

/** A number that the flow read beside it may be how many there may be, even if that is one here. */
function readsLimit({ moments, known }: History, read: Moment, write: Moment): boolean {
  const counts = read.statement.aggregate === 'count'
  return moments.some(({ step, statement, kind }) => {
    const { columns = [], rows = [], rowCount } = step.answer
    if (step.flow !== read.step.flow || step === read.step || rowCount !== 1) return false
    if (step.index >= write.step.index || !['read', 'lock', 'write'].includes(kind)) return false
    return columns.some((name, at) => {
      const value = rows[0]?.[at] ?? ''
      const isKey =
        /(?:^|_)id$|Id$/.test(name) ||
        statement.where.some(({ column }) => column === name) ||
        statement.tables.some((table) => {
          const column = knownColumn({ known }, table, name)
          return column?.key === true || column?.refers !== undefined
        })
      return !isKey && (counts ? /^\d+$/ : /^[01]$/).test(value)
    })
  })
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
export function insertedBy(history: History, { statement }: Moment): readonly Equality[] {
  if (statement.sets.length > 0 || statement.values.length === 0) return statement.sets
  const name = statement.table ?? ''
  const last = name.split('.').at(-1)
  const columns =
    knownTable(history, name)?.columns.map((one) => one.name) ??
    history.run.tables.find((one) => one.name.split('.').at(-1) === last)?.columns ??
    []
  if (columns.length < statement.values.length) return []
  return statement.values.flatMap((value, at): Equality[] => {
    const column = columns[at]
    return value === undefined || column === undefined ? [] : [{ column, value }]
  })
}
