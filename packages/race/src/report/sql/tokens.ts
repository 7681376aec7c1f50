/**
 * Tokens with what it takes to write them down again. They serve to shorten statements for people and
 * to find the words of a hint, never to decide what a statement does; that is what footprints are for.
 */
import { readStatements, type SqlToken } from '../../core/sql-tokens.ts'

export interface Token {
  readonly kind: SqlToken['kind']
  /** As written; of a quoted name without its quotes. */
  readonly text: string
  /** Of a word in upper case, so that keywords can be compared; else the text. */
  readonly upper: string
  /** How many parentheses are open around it. */
  readonly depth: number
  /** Whether blanks or a comment stood before it. */
  readonly spaced: boolean
}

/** The tokens of a text; semicolons between statements are left out. */
export function tokensOf(sql: string): Token[] {
  const tokens: Token[] = []
  let depth = 0
  let before = 0
  for (const { kind, text, start, end } of readStatements(sql).flatMap((one) => one.tokens)) {
    if (kind === 'sign' && text === ')') depth = Math.max(0, depth - 1)
    const written = kind === 'name' ? text : sql.slice(start, end)
    const upper = kind === 'word' ? written.toUpperCase() : written
    tokens.push({ kind, text: written, upper, depth, spaced: start > before })
    if (kind === 'sign' && text === '(') depth += 1
    before = end
  }
  return tokens
}
