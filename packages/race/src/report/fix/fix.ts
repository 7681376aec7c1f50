import { type History, type Moment, nameOf } from '../anomaly/history.ts'
import type { GuardEdit } from './guard-edit.ts'
import type { StatementEdit } from './statement-edit.ts'

/** One way out. */
export interface Fix {
  /** Instead of the one before it, or together with it. */
  readonly joint: 'or' | 'and'
  readonly text: string
  /** SQL or TypeScript, where a line says more than a sentence. */
  readonly code?: string
  /** The same as a change of a statement, or of the call that opens the transaction. */
  readonly edit?: StatementEdit | GuardEdit
}

/** The same way out, which a change of the code is. */
export function withEdit(fix: Fix, edit: Fix['edit']): Fix {
  return edit === undefined ? fix : { ...fix, edit }
}

export function way(text: string, code?: string, joint: Fix['joint'] = 'or'): Fix {
  return { joint, text, ...(code === undefined ? {} : { code }) }
}

/** Whether the flows have Holdfast already: its statements carry its name. */
export function hasHoldfast({ run }: History): boolean {
  return run.steps.some(({ statements }) => statements.some((sql) => /\bholdfast\b/i.test(sql)))
}

/** What a read gave for a column, if it gave one row; undefined if that is not known. */
export function seenValue({ step: { answer } }: Moment, column: string): string | null | undefined {
  const at = answer.columns?.indexOf(column) ?? -1
  const [row] = answer.rows ?? []
  return at === -1 || answer.rowCount !== 1 ? undefined : row?.[at]
}

/** Whether the table has that column, as far as the run has shown it: nothing else is named in a line to copy. */
export function hasColumn(
  { run, moments, schema }: History,
  table: string,
  column: string,
): boolean {
  const shown = run.tables.find(({ name }) => nameOf(name, { schema }) === table || name === table)
  if (shown?.columns.includes(column) === true) return true
  return moments.some(
    ({ statement: { tables, table: own, where, sets } }) =>
      (tables.length === 1 || own === table) &&
      tables.includes(table) &&
      [...where, ...sets].some((one) => one.column === column),
  )
}
