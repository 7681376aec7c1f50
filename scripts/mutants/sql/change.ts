import type { Token } from './tokens.ts'

/** What kinds of changes are made. */
export type ChangeKind =
  | 'condition'
  | 'comparison'
  | 'order'
  | 'lock'
  | 'bound'
  | 'constant'
  | 'conflict'
  | 'constraint'

/** One change of an SQL text: the characters from `start` to `end` become `replacement`. */
export interface Change {
  readonly kind: ChangeKind
  readonly start: number
  readonly end: number
  readonly replacement: string
}

/** A change of one file, as it is reported. */
export interface SqlMutant extends Change {
  /** Below `packages/holdfast/sql`: `app/apply.sql`. */
  readonly file: string
  readonly line: number
  readonly original: string
}

/** A part of a file, from one token to another that is not in it any more. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** The file as the change makes it. */
export function changed(text: string, { start, end, replacement }: Change): string {
  return text.slice(0, start) + replacement + text.slice(end)
}

/** The text of some tokens with what is between them. */
export function textOf(text: string, tokens: readonly Token[], { from, to }: Span): string {
  const [first, last] = [tokens[from], tokens[to - 1]]
  return first === undefined || last === undefined ? '' : text.slice(first.start, last.end)
}

/** A change of some tokens. */
export function changeOf(
  kind: ChangeKind,
  tokens: readonly Token[],
  { from, to }: Span,
  replacement: string,
): Change[] {
  const [first, last] = [tokens[from], tokens[to - 1]]
  if (first === undefined || last === undefined || to <= from) return []
  return [{ kind, start: first.start, end: last.end, replacement }]
}

/** The first token at or after `from` that ends something on this depth; at the latest where the bracket or body ends. */
export function nextOf(
  tokens: readonly Token[],
  from: number,
  depth: number,
  ends: (token: Token, at: number) => boolean,
): number {
  let at = from
  while (at < tokens.length) {
    const token = tokens[at] as Token
    if (token.depth < depth || isQuote(token)) return at
    if (token.depth === depth && ends(token, at)) return at
    at += 1
  }
  return at
}

/** Where the body of a function begins or ends. */
export function isQuote({ kind, text }: Token): boolean {
  return kind === 'sign' && /^\$.*\$$/.test(text)
}
