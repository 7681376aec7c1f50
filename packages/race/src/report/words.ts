/** How sentences of a report name steps, tables and keys. */
import { isAbsolute, relative } from 'node:path'
import type { Place } from '../core/model.ts'
import type { Moment } from './anomaly/history.ts'
import { relationOf } from './anomaly/history.ts'
import { sqlName } from './sql/sql-name.ts'
import type { Equality } from './sql/statement.ts'

/** `alice's SELECT (2)` */
export function ref({ who, statement, number, step, kind }: Moment): string {
  const what = step.half === 'commit' || kind === 'commit' ? 'COMMIT' : statement.verb || 'step'
  return `${possessive(who)} ${what} (${number})`
}

/** `src/reserve.ts:12`: from where the process was started, if it is below that. */
export function placeText({ file, line }: Place): string {
  return `${fileText(file)}:${line}`
}

/** Relative to a folder, if it is in it. */
export function fileText(file: string, folder: string = process.cwd()): string {
  const inside = relative(folder, file)
  return inside.startsWith('..') || isAbsolute(inside) ? file : inside
}

export function possessive(name: string): string {
  return `${name}'s`
}

/** `seats where event_id = 1`, from what the statement says; else from its footprint. */
export function subjectOf(moment: Moment): string {
  const table = tableOf(moment)
  const key = keyOf(moment) ?? moment.statement.where[0]
  return key === undefined ? table : `${table} where ${key.column} = ${key.value}`
}

export function tableOf({ statement, step }: Moment): string {
  const touched = step.footprint.touches.find(({ object }) => !object.startsWith('advisory'))
  return (
    statement.table ?? (touched === undefined ? 'the data' : bareName(relationOf(touched.object)))
  )
}

function bareName(relation: string): string {
  return relation.slice(relation.indexOf('.') + 1)
}

const states = /^(?:status|state|deleted|active|kind|type|is_|has_)/i

/** A column that says how something is, and not which it is. */
export function isState({ column }: Equality): boolean {
  return states.test(column)
}

/** The comparison that says which: an id rather than a state. */
export function keyOf({ statement }: Moment): Equality | undefined {
  const { where } = statement
  const named = where.filter(({ value }) => !/^(?:true|false|null|'t'|'f')$/i.test(value))
  return (
    named.find(({ column }) => /(?:^|_)id$|Id$/.test(column)) ?? named.find((one) => !isState(one))
  )
}

/** A table or another object was made, and not a row: an error of CREATE, or of the server's own catalogue. */
export function isAboutObjects({ statement, step }: Moment): boolean {
  return (
    step.answer.error?.sqlstate.startsWith('42') === true ||
    ['CREATE', 'ALTER', 'DROP'].includes(statement.verb)
  )
}

/** The same of a statement's table, for lines that can be copied. */
export function sqlTable(moment: Moment): string {
  return moment.statement.table === undefined ? '…' : sqlName(moment.statement.table)
}

export function list(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? ''
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

/** `event_id` → `eventId` */
export function variable(column: string): string {
  return column.replaceAll(/_+([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase())
}

/** What a key is of: `event_id` → `event`; `id` of `seats` → `seats`. */
export function subjectName(column: string, table: string): string {
  const stem = column.replace(/_?id$/i, '')
  return stem === '' ? table : stem.toLowerCase().replaceAll('_', '-')
}

export function times(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`
}
