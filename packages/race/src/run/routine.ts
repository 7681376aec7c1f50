/** What functions, procedures, triggers and DO blocks run inside, as far as their text tells. */
import { readStatements } from '../core/sql-tokens.ts'
import { isTree, parsePlPgSql, textOf, type Tree } from './statement-tree.ts'

export interface Routine {
  readonly name: string
  readonly language: string
  /** Each of its statements has a snapshot of its own at READ COMMITTED; otherwise all have the caller's. */
  readonly volatile: boolean
  /** `CREATE FUNCTION …` of PL/pgSQL, the body of SQL; null if it is not to be had. */
  readonly body: string | null
}

/** The text of a statement, or of an expression as a SELECT; undefined if nobody knows it. */
export type Inner = string | undefined

const known = new Map<string, readonly Inner[]>()

/** What a routine runs, in order; of branches all, of loops what they run twice. */
export function statementsIn({
  language,
  body,
}: Pick<Routine, 'language' | 'body'>): readonly Inner[] {
  if (body === null) return unknown
  if (language === 'sql') return readStatements(body).map(({ text }) => text)
  return language === 'plpgsql' ? statementsInPlPgSql(body) : unknown
}

/** Of a whole CREATE FUNCTION or DO. */
export function statementsInPlPgSql(text: string): readonly Inner[] {
  let inner = known.get(text)
  if (!inner) {
    const parsed = parsePlPgSql(text)
    inner = parsed === undefined ? unknown : collect(parsed)
    if (known.size > 1000) known.clear()
    known.set(text, inner)
  }
  return inner
}

/** More than one statement, for all that is known. */
const unknown: readonly Inner[] = [undefined, undefined]

const loops = /^PLpgSQL_stmt_(?:loop|while|fori|fors|forc|foreach_a|dynfors)$/
const dynamic = /^(?:PLpgSQL_stmt_(?:dynexecute|dynfors|commit|rollback)|dynquery)$/

function collect(node: unknown): Inner[] {
  if (Array.isArray(node)) return node.flatMap(collect)
  if (!isTree(node)) return []
  return Object.entries(node).flatMap(([name, value]): Inner[] => {
    if (name === 'PLpgSQL_expr') return [textOfExpression(value as Tree)]
    const again = loops.test(name) && isTree(value) ? collect([value['cond'], value['body']]) : []
    const inside = [...collect(value), ...again]
    return dynamic.test(name) ? [...inside, undefined] : inside
  })
}

/** By the mode in which PL/pgSQL parses it: a statement, an expression, or an assignment. */
function textOfExpression(expression: Tree): string {
  const query = textOf(expression, 'query')
  const mode = Number(expression['parseMode'] ?? 0)
  if (mode === 0) return query
  return `SELECT ${mode === 2 ? query : assigned(query)}`
}

/** What stands behind `:=` or `=`. */
function assigned(query: string): string {
  let depth = 0
  for (const { text, end } of readStatements(query).flatMap(({ tokens }) => tokens)) {
    if (text === '[') depth += 1
    else if (text === ']') depth -= 1
    else if (text === '=' && depth === 0) return query.slice(end)
  }
  return query
}
