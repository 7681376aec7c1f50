import { quoteIdentifier } from '../sql/identifier.ts'

/**
 * Reads SQL files of ours: several statements, `:"schema"` where the schema's name belongs. Some
 * clients send one statement at a time, so a file has to be taken apart, by the rules of psql.
 */

type Kind = 'comment' | 'quoted' | 'schema' | 'word' | 'sign'

interface Token {
  readonly kind: Kind
  readonly text: string
}

const lexeme =
  /(?<comment>--[^\n]*|\/\*)|(?<quoted>[eE]'(?:[^'\\]|\\[^]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|(?<schema>:"schema")|(?<word>[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\d[\w.]*)|(?<sign>::|[^])/giy

function* tokensOf(sql: string): Generator<Token> {
  for (let at = 0; at < sql.length; ) {
    lexeme.lastIndex = at
    const groups = lexeme.exec(sql)?.groups as Record<Kind, string | undefined>
    const [kind, opening] = Object.entries(groups).find(([, text]) => text !== undefined) as [
      Kind,
      string,
    ]
    const end = endOf(sql, at, opening)
    yield { kind, text: sql.slice(at, end) }
    at = end
  }
}

/** Where the token that starts with `opening` ends. */
function endOf(sql: string, at: number, opening: string): number {
  const inside = at + opening.length
  if (opening === '/*') return endOfComment(sql, inside)
  if (opening.startsWith('$') && opening.length > 1) {
    const end = sql.indexOf(opening, inside)
    if (end === -1) throw new SyntaxError(`${opening} is never closed`)
    return end + opening.length
  }
  if (opening === "'" || opening === '"') throw new SyntaxError(`${opening} is never closed`)
  return inside
}

/** Comments nest in SQL. */
function endOfComment(sql: string, inside: number): number {
  const mark = /\/\*|\*\//g
  mark.lastIndex = inside
  for (let depth = 1; depth > 0; ) {
    const found = mark.exec(sql)
    if (found === null) throw new SyntaxError('/* is never closed')
    depth += found[0] === '/*' ? 1 : -1
  }
  return mark.lastIndex
}

/** The statements of a file, without their semicolons; what is only comment is left out. */
export function statementsOf(sql: string): string[] {
  const statements: string[] = []
  let text = ''
  let words: string[] = []
  let depth = 0
  let blank = true
  for (const token of tokensOf(sql)) {
    if (token.kind === 'sign' && token.text === ';' && depth <= 0) {
      if (!blank) statements.push(text.trim())
      text = ''
      words = []
      depth = 0
      blank = true
      continue
    }
    text += token.text
    if (token.kind === 'word') {
      words.push(token.text.toLowerCase())
      depth += blockDepth(words)
    }
    if (token.text === '(') depth += 1
    if (token.text === ')') depth -= 1
    if (token.kind !== 'comment' && token.text.trim() !== '') blank = false
  }
  if (!blank) statements.push(text.trim())
  return statements
}

/** What the last word of a CREATE FUNCTION does to the depth: BEGIN ATOMIC … END has semicolons. */
function blockDepth(words: readonly string[]): number {
  if (!/^create (or replace )?(function|procedure)\b/.test(words.slice(0, 4).join(' '))) return 0
  const last = words.at(-1)
  const inside = words.includes('atomic')
  if (last === 'atomic' && words.at(-2) === 'begin') return 1
  if (!inside) return 0
  if (last === 'begin' || last === 'case') return 1
  return last === 'end' ? -1 : 0
}

/**
 * Puts the schema's name in, also in the bodies of functions: those that the planner inlines have
 * no search_path of their own. Inside of a text it is refused, since a name may contain quotes.
 */
export function bindSchema(sql: string, schema: string): string {
  const name = quoteIdentifier(schema)
  let bound = ''
  for (const { kind, text } of tokensOf(sql)) {
    bound += kind === 'schema' ? name : kind === 'quoted' ? bindBody(text, schema) : text
  }
  return bound
}

function bindBody(quoted: string, schema: string): string {
  if (!quoted.includes(':"schema"')) return quoted
  const tag = /^\$\w*\$/.exec(quoted)?.[0]
  if (tag === undefined) throw new SyntaxError(':"schema" cannot stand inside of a text')
  const body = bindSchema(quoted.slice(tag.length, -tag.length), schema)
  return dollarQuoted(body, tag)
}

/** A body in dollar quotes that it does not contain: a schema may be called `$$`. */
export function dollarQuoted(body: string, tag = '$$'): string {
  let safe = tag
  for (let n = 1; body.includes(safe); n += 1) safe = `$body${n}$`
  return `${safe}${body}${safe}`
}

/** What a repeatable file creates. */
export interface CreatedObject {
  readonly kind: 'function' | 'view'
  readonly name: string
}

/** Functions and views of a file, by the names behind `:"schema".`, quoted ones unquoted. */
export function objectsIn(sql: string): CreatedObject[] {
  const code = [...tokensOf(sql)].filter(({ kind }) => kind !== 'comment')
  const pattern =
    /\bcreate\s+(?:or\s+replace\s+)?(function|view)\s+:"schema"\s*\.\s*("(?:[^"]|"")*"|\w+)/gi
  return [
    ...code
      .map(({ text }) => text)
      .join('')
      .matchAll(pattern),
  ].map(([, kind = '', name = '']) => ({
    kind: kind.toLowerCase() as CreatedObject['kind'],
    name: name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase(),
  }))
}

/** A script that is applied as a whole or not at all. */
export function inTransaction(script: string): string {
  return `BEGIN;\n\n${script}\n\nCOMMIT;`
}
