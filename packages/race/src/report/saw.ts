import type { Step } from '../core/model.ts'
import { cut } from './sql/shorten.ts'
import { readStatement } from './sql/statement.ts'

const widestValue = 40

/**
 * What a statement's answer told the code: `99`, `3 rows`, `id=7 status=open`, `no rows`, an error.
 * Undefined where there is nothing to tell, as after BEGIN.
 */
export function sawOf(step: Step, width: number = widestValue): string | undefined {
  const { answer, half, statements, parameters } = step
  const { action } = step.choice
  if (half === 'commit' || action === 'crash' || action === 'victim') return undefined
  if (answer.error !== undefined)
    return cut(`ERROR ${answer.error.sqlstate} ${answer.error.message}`, width * 2)
  if (answer.columns !== undefined && answer.columns.length > 0) {
    // What was asked for by value is not news.
    const asked = readStatement(statements[0] ?? '', parameters).where
    return rowsSeen(answer, new Set(asked.map(({ column }) => column)), width)
  }
  const [, command, count] = /^(INSERT|UPDATE|DELETE|MERGE)\b.*?(\d+)$/.exec(answer.tag ?? '') ?? []
  if (command === undefined) return undefined
  return `${count} ${count === '1' ? 'row' : 'rows'}`
}

function rowsSeen(
  { columns = [], rows = [], rowCount }: Step['answer'],
  asked: ReadonlySet<string>,
  width: number,
): string | undefined {
  if (rowCount === 0) return 'no rows'
  const [first] = rows
  if (first === undefined) return counted(rowCount)
  if (columns.length === 1) {
    const values = rows.map(([value]) => value ?? null)
    // Lock functions answer with nothing.
    if (rowCount === 1 && values[0] === '') return undefined
    const shown = values.map(value).join(', ')
    return rowCount === rows.length && shown.length <= width ? shown : counted(rowCount)
  }
  if (rowCount > 1) return counted(rowCount)
  const all = columns.map(
    (column, at) => [column, `${column}=${value(first[at] ?? null)}`] as const,
  )
  const news = all.filter(([column]) => !asked.has(column))
  const pairs = (news.length === 0 ? all : news).map(([, pair]) => pair)
  const line = pairs.join(' ')
  return line.length <= width ? line : fitted(pairs, width)
}

/** As many pairs as there is room for; the first always. */
function fitted(pairs: readonly string[], width: number): string {
  let line = cut(pairs[0] as string, width - 2)
  for (const pair of pairs.slice(1)) {
    if (line.length + pair.length + 3 > width) break
    line += ` ${pair}`
  }
  return `${line} …`
}

function counted(rows: number): string {
  return rows === 1 ? '1 row' : `${rows} rows`
}

function value(text: string | null): string {
  return text === null ? 'NULL' : cut(text.replaceAll(/\s+/g, ' '), widestValue)
}
