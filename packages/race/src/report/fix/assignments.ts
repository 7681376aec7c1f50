/** What an UPDATE puts into a column: a value that was sent, or an arithmetic of what is there. */
import type { Moment } from '../anomaly/history.ts'
import type { Token } from '../sql/tokens.ts'

/** Of one column: the tokens to the right of its `=`. */
export interface Assigned {
  readonly column: string
  readonly tokens: readonly Token[]
}

/** Of an UPDATE, or of what ON CONFLICT does to a row that is there. */
export function assignedBy({ statement }: Moment): readonly Assigned[] {
  const set = statement.clauses.find(({ name }) => name === 'SET')
  if (set !== undefined) return split(set.tokens.slice(1))
  const upsert = statement.clauses.find(({ name }) => name === 'ON')?.tokens ?? []
  const from = upsert.findIndex(({ upper }) => upper === 'SET')
  if (from === -1) return []
  const until = upsert.findIndex(({ upper, depth }) => upper === 'WHERE' && depth === 0)
  return split(upsert.slice(from + 1, until > from ? until : undefined))
}

function split(tokens: readonly Token[]): Assigned[] {
  const parts: Token[][] = [[]]
  for (const token of tokens) {
    if (token.text === ',' && token.depth === 0) parts.push([])
    else parts.at(-1)?.push(token)
  }
  return parts.flatMap((part): Assigned[] => {
    const equals = part.findIndex(({ text }) => text === '=')
    const column = part[equals - 1]?.text
    return column === undefined ? [] : [{ column, tokens: part.slice(equals + 1) }]
  })
}

/**
 * The value that was sent for a column, whole; undefined if it is computed, or not set. `columns` are those of the table, in
 * order, for an INSERT that does not name them.
 */
export function sentValue(
  moment: Moment,
  column: string,
  columns: readonly string[] = [],
): string | null | undefined {
  const { parameters } = moment.statement
  const own = assignedBy(moment).find((one) => one.column === column)
  if (own === undefined) return undefined
  const tokens = withoutCasts(own.tokens)
  const [prefix, name] = tokens
  // `EXCLUDED.qty` is what the INSERT would have put there.
  if (prefix?.upper === 'EXCLUDED' && name?.text === '.') {
    return insertedValue(moment, tokens[2]?.text ?? '', columns)
  }
  return tokens.length === 1 && prefix ? valueOf(prefix, parameters) : undefined
}

/** The value that WHERE compares a column with, whole. */
export function askedValue({ statement }: Moment, column: string): string | null | undefined {
  const { whereTokens: tokens, parameters } = statement
  const at = tokens.findIndex((token, place) => {
    return isColumn(token, column) && tokens[place + 1]?.text === '='
  })
  const value = at === -1 ? undefined : tokens[at + 2]
  return value && valueOf(value, parameters)
}

/** What an INSERT has sent for one of its columns. */
function insertedValue(
  { statement }: Moment,
  column: string,
  columns: readonly string[],
): string | null | undefined {
  const named = statement.clauses
    .find(({ name }) => name === 'INSERT')
    ?.tokens.filter(({ depth, kind }) => depth === 1 && (kind === 'word' || kind === 'name'))
    .map(({ text }) => text)
  const at = (named === undefined || named.length === 0 ? columns : named).indexOf(column)
  const values = statement.clauses.find(({ name }) => name === 'VALUES')?.tokens.slice(2) ?? []
  const cells: Token[][] = [[]]
  for (const token of values) {
    if (token.depth === 0 && token.text === ')') break
    if (token.text === ',' && token.depth === 1) cells.push([])
    else cells.at(-1)?.push(token)
  }
  const cell = at === -1 ? [] : withoutCasts(cells[at] ?? [])
  const [only] = cell
  return cell.length === 1 && only ? valueOf(only, statement.parameters) : undefined
}

function valueOf(
  { kind, text, upper }: Token,
  parameters: readonly (string | null)[],
): string | null | undefined {
  if (kind === 'parameter') return parameters[Number(text.slice(1)) - 1]
  if (kind === 'number') return text
  if (kind === 'string') return /^'(.*)'$/s.exec(text)?.[1]?.replaceAll("''", "'")
  if (kind === 'word' && /^(?:TRUE|FALSE)$/.test(upper)) return upper.toLowerCase()
  return kind === 'word' && upper === 'NULL' ? null : undefined
}

/** `$1::int` → `$1`. Signs are tokens of one character each. */
function withoutCasts(tokens: readonly Token[]): Token[] {
  const kept: Token[] = []
  let at = 0
  const text = (ahead: number): string => tokens[at + ahead]?.text ?? ''
  while (at < tokens.length) {
    if (text(0) === ':' && text(1) === ':') {
      at += 3
      if (text(0) === '(') while (at < tokens.length && text(-1) !== ')') at += 1
      while (/^[[\]]$/.test(text(0))) at += 1
    } else {
      kept.push(tokens[at] as Token)
      at += 1
    }
  }
  return kept
}

/**
 * By how much `balance - $1 * $2` differs from `balance`. Undefined unless it is a sum with the column itself in it once,
 * and numbers.
 */
export function changeOf(moment: Moment, column: string): number | undefined {
  const own = assignedBy(moment).find((one) => one.column === column)
  if (own === undefined) return undefined
  const { parameters } = moment.statement
  const at = (value: number): number | undefined =>
    compute(withoutCasts(own.tokens), (token) => {
      if (isColumn(token, column)) return value
      const sent = valueOf(token, parameters)
      return typeof sent === 'string' && /^\s*-?\d+(?:\.\d+)?\s*$/.test(sent)
        ? Number(sent)
        : undefined
    })
  const [zero, ten, more] = [at(0), at(10), at(1000)]
  if (zero === undefined || ten !== zero + 10 || more !== zero + 1000) return undefined
  return zero === 0 ? undefined : zero
}

function isColumn({ kind, text }: Token, column: string): boolean {
  return (kind === 'word' || kind === 'name') && text === column
}

type Term = (token: Token) => number | undefined

/** Sums, products and parentheses; undefined for anything else. */
function compute(all: readonly Token[], term: Term): number | undefined {
  // `accounts.balance` is the column, whichever name is before it.
  const tokens = all.filter(({ text }, at) => text !== '.' && all[at + 1]?.text !== '.')
  let at = 0
  const factor = (): number => {
    const token = tokens[at]
    at += 1
    if (token === undefined) return Number.NaN
    if (token.text === '-') return -factor()
    if (token.text === '+') return factor()
    if (token.text !== '(') return term(token) ?? Number.NaN
    const inner = sum()
    const closed = tokens[at]?.text === ')'
    at += 1
    return closed ? inner : Number.NaN
  }
  const product = (): number => {
    let value = factor()
    while (tokens[at]?.text === '*') {
      at += 1
      value *= factor()
    }
    return value
  }
  const sum = (): number => {
    let value = product()
    while (/^[+-]$/.test(tokens[at]?.text ?? '')) {
      const sign = tokens[at]?.text === '-' ? -1 : 1
      at += 1
      value += sign * product()
    }
    return value
  }
  const value = sum()
  return at === tokens.length && Number.isFinite(value) ? value : undefined
}
