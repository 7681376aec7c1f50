import { type Change, changeOf, isQuote, nextOf, type Span, textOf } from './change.ts'
import type { Token } from './tokens.ts'

/** Words with which a condition begins after them. */
const beginnings = new Set(['WHERE', 'ON', 'IF', 'ELSIF', 'WHEN', 'HAVING', 'WHILE'])
/** Of these, a lone condition is removed; of the others it is negated. */
const removed = new Set(['WHERE', 'ON', 'HAVING'])
/** What else can stand before a condition, or after it. */
const before = new Set([',', ':=', ';', 'SELECT', 'THEN', 'ELSE', 'RETURN', 'RETURNING', 'BY'])
const after = new Set(
  `, ; THEN ELSE LOOP AS INTO USING GROUP ORDER HAVING WINDOW LIMIT OFFSET RETURNING FOR UNION EXCEPT INTERSECT WHERE ON
  LEFT RIGHT FULL INNER CROSS JOIN FROM END`.split(/\s+/),
)
const comparing = new Set(['=', '<>', '!=', '<', '<=', '>', '>='])

/**
 * Conditions that are left out, and conditions that are turned around where no comparison in them can be. Of what AND
 * and OR connect, one at a time.
 */
export function conditionChanges(text: string, tokens: readonly Token[]): Change[] {
  const found = new Map<string, Span>()
  for (const [at, token] of tokens.entries()) {
    const span = isBeginning(tokens, at)
      ? { from: at + 1, to: endOf(tokens, at + 1, token.depth) }
      : isConnection(tokens, at)
        ? { from: startOf(tokens, at, token.depth), to: endOf(tokens, at, token.depth) }
        : undefined
    if (span !== undefined && span.to > span.from) found.set(`${span.from}-${span.to}`, span)
  }
  return [...found.values()].flatMap((span) => changesOf(text, tokens, span))
}

function isBeginning(tokens: readonly Token[], at: number): boolean {
  const [previous, token, next] = [tokens[at - 1]?.text, tokens[at]?.text ?? '', tokens[at + 1]]
  if (!beginnings.has(token) || tokens[at]?.kind !== 'word') return false
  if (token === 'IF') return previous !== 'END'
  if (token === 'ON')
    return previous !== 'DISTINCT' && !/^CON(FLICT|STRAINT)$/.test(next?.text ?? '')
  return true
}

/** AND or OR, and not the AND of a BETWEEN. */
function isConnection(tokens: readonly Token[], at: number): boolean {
  const token = tokens[at] as Token
  if (token.kind !== 'word' || (token.text !== 'AND' && token.text !== 'OR')) return false
  if (token.text === 'OR') return tokens[at - 1]?.text !== 'CREATE'
  for (let back = at - 1; back >= 0; back -= 1) {
    const { text, depth } = tokens[back] as Token
    if (depth < token.depth) return true
    if (depth > token.depth) continue
    if (text === 'BETWEEN') return false
    if (text === 'AND' || text === 'OR' || before.has(text) || beginnings.has(text)) return true
  }
  return true
}

function startOf(tokens: readonly Token[], at: number, depth: number): number {
  let from = at
  while (from > 0) {
    const token = tokens[from - 1] as Token
    if (token.depth < depth || isQuote(token)) break
    if (token.depth === depth && (before.has(token.text) || isBeginning(tokens, from - 1))) break
    from -= 1
  }
  return from
}

function endOf(tokens: readonly Token[], from: number, depth: number): number {
  return nextOf(tokens, from, depth, ({ kind, text }, at) => {
    if (kind !== 'word' && kind !== 'sign') return false
    // A function of that name, or IS DISTINCT FROM.
    if ((text === 'LEFT' || text === 'RIGHT') && tokens[at + 1]?.text === '(') return false
    if (text === 'FROM' && tokens[at - 1]?.text === 'DISTINCT') return false
    return after.has(text)
  })
}

/** The conditions of a span, and what is between them. */
function partsOf(tokens: readonly Token[], { from, to }: Span): { parts: Span[]; words: string[] } {
  const depth = tokens[from]?.depth ?? 0
  const parts: Span[] = []
  const words: string[] = []
  let start = from
  for (let at = from; at < to; at += 1) {
    if (tokens[at]?.depth !== depth || !isConnection(tokens, at)) continue
    parts.push({ from: start, to: at })
    words.push(tokens[at]?.text ?? '')
    start = at + 1
  }
  return { parts: [...parts, { from: start, to }], words }
}

function changesOf(text: string, tokens: readonly Token[], span: Span): Change[] {
  const { parts, words } = partsOf(tokens, span)
  const begins = tokens[span.from - 1]?.text ?? ''
  if (parts.length === 1) {
    if (removed.has(begins)) return replaced(text, tokens, span, 'true')
    return compares(tokens, span) ? [] : negated(text, tokens, span)
  }
  const each = parts.flatMap((part, at) => {
    const isOfAnd = words[at - 1] === 'AND' || words[at] === 'AND'
    return [
      ...replaced(text, tokens, part, isOfAnd ? 'true' : 'false'),
      ...(compares(tokens, part) ? [] : negated(text, tokens, part)),
    ]
  })
  return /^(IF|ELSIF)$/.test(begins) ? [...each, ...negated(text, tokens, span)] : each
}

function replaced(
  text: string,
  tokens: readonly Token[],
  span: Span,
  replacement: 'true' | 'false',
): Change[] {
  return textOf(text, tokens, span) === replacement
    ? []
    : changeOf('condition', tokens, span, replacement)
}

function negated(text: string, tokens: readonly Token[], span: Span): Change[] {
  const original = textOf(text, tokens, span)
  const [first, second] = [tokens[span.from] as Token, tokens[span.from + 1]]
  // The value of a simple CASE, or nothing that could be turned around.
  if (span.to - span.from === 1 && first.kind !== 'word') return []
  if (/^(true|false)$/.test(original)) return []
  const isOne = partsOf(tokens, span).parts.length === 1
  const bare = first.text === 'NOT' && isOne && second !== undefined
  const replacement = bare ? text.slice(second.start, first.start + original.length) : undefined
  return changeOf('condition', tokens, span, replacement ?? `NOT (${original})`)
}

/** Whether it is one comparison, which is turned around by itself. */
function compares(tokens: readonly Token[], { from, to }: Span): boolean {
  const depth = tokens[from]?.depth
  return tokens.slice(from, to).some((token) => token.depth === depth && comparing.has(token.text))
}
