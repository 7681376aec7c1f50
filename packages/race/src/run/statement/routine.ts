/** What functions, procedures, triggers and DO blocks run inside, as far as their text tells. */
import { readStatements } from '../../core/sql-tokens.ts'
import { isTree, parsePlPgSql, textOf, type Tree, walk } from './statement-tree.ts'

export interface Routine {
  readonly name: string
  readonly language: string
  /** Each of its statements has a snapshot of its own at READ COMMITTED; otherwise all have the caller's. */
  readonly volatile: boolean
  /** `CREATE FUNCTION …` of PL/pgSQL, the body of SQL; null if it is not to be had. */
  readonly body: string | null
  /** What its arguments call if they are left out: a name for each time. */
  readonly defaults: readonly string[]
}

/** The text of a statement, or of an expression as a SELECT; undefined if nobody knows it. */
export type Inner = string | undefined

/** What a routine runs. */
export interface Body {
  /** In order; of branches all, of loops what they run twice. */
  readonly statements: readonly Inner[]
  /** It goes on after an error, with what it did before that undone. */
  readonly catches: boolean
}

const known = new Map<string, Body>()

export function bodyOf({ language, body }: Pick<Routine, 'language' | 'body'>): Body {
  if (language === 'sql') {
    const statements = body === null ? several : readStatements(body).map(({ text }) => text)
    return { statements, catches: false }
  }
  return language === 'plpgsql' && body !== null ? bodyOfPlPgSql(body) : unknown
}

/** Of a whole CREATE FUNCTION or DO. */
export function bodyOfPlPgSql(text: string): Body {
  let body = known.get(text)
  if (!body) {
    const parsed = parsePlPgSql(text)
    body =
      parsed === undefined ? unknown : { statements: collect(parsed), catches: catches(parsed) }
    if (known.size > 1000) known.clear()
    known.set(text, body)
  }
  return body
}

/** More than one statement, for all that is known. */
const several: readonly Inner[] = [undefined, undefined]
const unknown: Body = { statements: several, catches: true }

function catches(parsed: unknown): boolean {
  let found = false
  walk(parsed, (name) => {
    if (name === 'PLpgSQL_exception_block') found = true
  })
  return found
}

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
