import type { Row, Statement, Value } from '../../../core/driver.ts'

/** How long a statement may take, and in which zone it reads moments: `INNODB_TRX` has them in that of the machine. */
export function lookPrefix(statementTimeoutMs: number): {
  readonly before: string
  readonly hint: string
} {
  const ms = Math.max(1, Math.ceil(statementTimeoutMs))
  return {
    before: `/*M! SET STATEMENT max_statement_time = ${ms / 1_000}, time_zone = 'SYSTEM' FOR */ `,
    hint: `/*+ MAX_EXECUTION_TIME(${ms}) SET_VAR(time_zone = 'SYSTEM') */ `,
  }
}

/** One part of a look: rows of one kind, each of so many texts. */
export interface Part {
  readonly kind: string
  readonly columns: readonly string[]
  /** What follows the columns. */
  readonly from: string
  readonly values?: readonly Value[]
}

/** Several questions as one statement, so that all is seen within a few milliseconds. */
export function inOneLook(parts: readonly Part[], statementTimeoutMs: number): Statement {
  const { before, hint } = lookPrefix(statementTimeoutMs)
  const width = Math.max(...parts.map(({ columns }) => columns.length))
  const texts = parts.map(({ kind, columns, from }, place) => {
    const all = Array.from(
      { length: width },
      (_, at) => `CAST(${columns[at] ?? 'NULL'} AS CHAR) AS c${at}`,
    )
    return `(SELECT ${place === 0 ? hint : ''}'${kind}' AS kind, ${all.join(', ')} ${from})`
  })
  return {
    text: before + texts.join('\nUNION ALL\n'),
    values: parts.flatMap(({ values = [] }) => values),
  }
}

/** What a look was answered with, by kind: texts, or nothing. */
export type Told = (kind: string) => readonly (readonly (string | undefined)[])[]

export function toldBy(rows: readonly Row[]): Told {
  const kinds = Map.groupBy(rows, (row) => row['kind'])
  return (kind) =>
    (kinds.get(kind) ?? []).map((row) =>
      Object.entries(row)
        .filter(([name]) => name !== 'kind')
        .map(([, value]) => (typeof value === 'string' ? value : undefined)),
    )
}
