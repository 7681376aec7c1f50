/**
 * Cuts SQL into tokens, tolerantly: whatever is not understood is a token of its own. It is used
 * to shorten statements for people and to find the words of a hint, never to decide what a
 * statement does; that is what footprints are for.
 */

export interface Token {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'parameter' | 'sign'
  /** As written; of a quoted identifier without its quotes. */
  readonly text: string
  /** For keywords: upper case. Of other kinds the text. */
  readonly upper: string
  /** How many parentheses are open around it. */
  readonly depth: number
  /** Whether blanks or a comment stood before it. */
  readonly spaced: boolean
}

const blanks = /(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?(?:\*\/|$))+/y
const patterns: readonly (readonly [Token['kind'], RegExp])[] = [
  ['string', /(?:[eEbBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|$)/y],
  ['string', /\$([A-Za-z_]\w*)?\$[\s\S]*?(?:\$\1\$|$)/y],
  ['parameter', /\$\d+/y],
  ['quoted', /"(?:[^"]|"")*(?:"|$)/y],
  ['number', /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y],
  ['word', /[\p{L}_][\p{L}\p{N}_$]*/uy],
  ['sign', /::|<>|!=|<=|>=|\|\||->>|->|:=|[^\s]/y],
]

export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  let depth = 0
  let spaced = false
  while (at < sql.length) {
    const blank = match(blanks, sql, at)
    if (blank !== undefined) {
      at += blank.length
      spaced = true
      continue
    }
    const [kind, raw] = next(sql, at)
    if (raw === ')') depth = Math.max(0, depth - 1)
    const text = kind === 'quoted' ? raw.slice(1, -1).replaceAll('""', '"') : raw
    tokens.push({ kind, text, upper: kind === 'word' ? text.toUpperCase() : text, depth, spaced })
    if (raw === '(') depth += 1
    at += raw.length
    spaced = false
  }
  return tokens
}

function next(sql: string, at: number): readonly [Token['kind'], string] {
  for (const [kind, pattern] of patterns) {
    const found = match(pattern, sql, at)
    if (found !== undefined) return [kind, found]
  }
  return ['sign', sql[at] as string]
}

function match(pattern: RegExp, sql: string, at: number): string | undefined {
  pattern.lastIndex = at
  const found = pattern.exec(sql)?.[0]
  return found === '' ? undefined : found
}
