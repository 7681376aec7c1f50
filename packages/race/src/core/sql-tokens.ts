/**
 * Cuts SQL into tokens and statements by PostgreSQL's own lexical rules (with
 * standard_conforming_strings on), so that a semicolon or a word inside a string, a comment or a
 * dollar quote is never taken for one of the statement.
 */

export interface SqlToken {
  readonly kind: 'word' | 'name' | 'string' | 'number' | 'parameter' | 'sign'
  /** Of a word in lower case, of a quoted name without its quotes, else as written. */
  readonly text: string
  /** Where it stands in the text that was read. */
  readonly start: number
  readonly end: number
}

export interface SqlStatement {
  readonly text: string
  readonly tokens: readonly SqlToken[]
}

const blank = /(?:\s+|--[^\n]*)+/y
const word = /[\p{L}_][\p{L}\p{N}_$]*/uy
const number = /\d[\w.]*/y
const parameter = /\$\d+/y
const dollarTag = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy
const plainString = /(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*'?/y
const escapeString = /[eE]'(?:[^'\\]|\\[\s\S]|'')*'?/y
const quotedName = /(?:[uU]&)?"(?:[^"]|"")*"?/y
const comment = /\/\*|\*\//g

const seen = new Map<string, readonly SqlStatement[]>()

/** The statements of a text, without empty ones. Remembered, since flows repeat themselves. */
export function readStatements(sql: string): readonly SqlStatement[] {
  let statements = seen.get(sql)
  if (!statements) {
    statements = cut(sql)
    if (seen.size > 2000) seen.clear()
    seen.set(sql, statements)
  }
  return statements
}

function cut(sql: string): SqlStatement[] {
  const statements: SqlStatement[] = []
  let tokens: SqlToken[] = []
  let start = 0
  let at = 0
  const close = (): void => {
    if (tokens.length > 0) statements.push({ text: sql.slice(start, at).trim(), tokens })
    tokens = []
  }
  while (at < sql.length) {
    const skipped = skip(sql, at)
    if (skipped > at) {
      at = skipped
      continue
    }
    if (sql[at] === ';') {
      close()
      at += 1
      start = at
      continue
    }
    const token = next(sql, at)
    tokens.push(token)
    at = token.end
  }
  close()
  return statements
}

/** The end of the blanks and comments that begin here. */
function skip(sql: string, at: number): number {
  if (sql.startsWith('/*', at)) return commentEnd(sql, at)
  return at + (match(blank, sql, at)?.length ?? 0)
}

/** Comments nest in PostgreSQL. */
function commentEnd(sql: string, at: number): number {
  let depth = 0
  comment.lastIndex = at
  for (let found = comment.exec(sql); found; found = comment.exec(sql)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return comment.lastIndex
  }
  return sql.length
}

function next(sql: string, start: number): SqlToken {
  const token = (kind: SqlToken['kind'], text: string, end = start + text.length): SqlToken => ({
    kind,
    text,
    start,
    end,
  })
  const tag = match(dollarTag, sql, start)
  if (tag !== undefined) {
    const close = sql.indexOf(tag, start + tag.length)
    const end = close === -1 ? sql.length : close + tag.length
    return token('string', sql.slice(start, end))
  }
  const name = match(quotedName, sql, start)
  if (name !== undefined) {
    const text = name.slice(name.indexOf('"') + 1, name.endsWith('"') ? -1 : undefined)
    return token('name', text.replaceAll('""', '"'), start + name.length)
  }
  const string = match(escapeString, sql, start) ?? match(plainString, sql, start)
  if (string !== undefined) return token('string', string)
  const place = match(parameter, sql, start)
  if (place !== undefined) return token('parameter', place)
  const digits = match(number, sql, start)
  if (digits !== undefined) return token('number', digits)
  const letters = match(word, sql, start)
  if (letters !== undefined) return token('word', letters.toLowerCase(), start + letters.length)
  return token('sign', String.fromCodePoint(sql.codePointAt(start) ?? 0))
}

function match(pattern: RegExp, sql: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(sql)?.[0]
}

/** How a statement begins that reads or writes rows. */
export const queryVerbs: ReadonlySet<string> = new Set([
  'select',
  'insert',
  'update',
  'delete',
  'merge',
  'with',
  'values',
  'table',
])
