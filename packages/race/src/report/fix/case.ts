/** What fixes of rows have in common: what they are judged by, and how the statement that they change is written. */
import type { Anomaly } from '../anomaly/anomaly.ts'
import type { History, Moment } from '../anomaly/history.ts'
import { clauseText } from '../sql/shorten.ts'
import type { Turn } from './turns.ts'
import { sqlTable } from '../words.ts'

export const faster = '0 means that somebody was faster'

/** What a fix is judged by: the steps, and what the flows did in every run. */
export interface Case {
  readonly anomaly: Anomaly
  readonly history: History
  readonly read: Moment
  readonly write: Moment
  readonly turns: readonly Turn[]
}

export function whereOf({ statement }: Moment): string {
  return clauseText(statement, 'WHERE') ?? '…'
}

/** The same statement, under a condition. */
export function changed(write: Moment, condition: string, set?: string): string {
  const { statement } = write
  const table = sqlTable(write)
  if (statement.verb === 'DELETE') return `DELETE FROM ${table} WHERE ${condition}`
  return `UPDATE ${table} SET ${set ?? clauseText(statement, 'SET') ?? '…'} WHERE ${condition}`
}
