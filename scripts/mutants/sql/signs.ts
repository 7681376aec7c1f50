import { type Change, changeOf } from './change.ts'
import type { Token } from './tokens.ts'

const comparisons: Readonly<Record<string, string>> = {
  '=': '<>',
  '<>': '=',
  '!=': '=',
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
}
const sums: Readonly<Record<string, string>> = { '+': '-', '-': '+' }
const bounds: Readonly<Record<string, string>> = { LEAST: 'greatest', GREATEST: 'least' }
/** What ends the assignments of an UPDATE. */
const afterSet = new Set(['FROM', 'WHERE', 'RETURNING', ';'])

/** Comparisons that include their limit or leave it out, and = and <> for one another. */
export function comparisonChanges(_: string, tokens: readonly Token[]): Change[] {
  const assignments = assignmentsIn(tokens)
  return tokens.flatMap((token, at) => {
    const other = token.kind === 'sign' ? comparisons[token.text] : undefined
    if (other === undefined || assignments.has(at)) return []
    return changeOf('comparison', tokens, { from: at, to: at + 1 }, other)
  })
}

/** The = of UPDATE … SET, which compare nothing. */
function assignmentsIn(tokens: readonly Token[]): Set<number> {
  const found = new Set<number>()
  for (const [start, { text, depth }] of tokens.entries()) {
    if (text !== 'SET') continue
    for (let at = start + 1; at < tokens.length; at += 1) {
      const token = tokens[at] as Token
      if (token.depth < depth || (token.depth === depth && afterSet.has(token.text))) break
      const isFirst = tokens[at - 2]?.text === ',' || at - 2 === start
      if (token.depth === depth && token.text === '=' && isFirst) found.add(at)
    }
  }
  return found
}

/** The greater for the lesser, + for -, and the other way round. */
export function boundChanges(_: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    const other =
      tokens[at + 1]?.text === '(' ? (bounds[token.text] ?? sums[token.text]) : sums[token.text]
    if (other === undefined || (sums[token.text] !== undefined && !isBinary(tokens[at - 1])))
      return []
    return changeOf('bound', tokens, { from: at, to: at + 1 }, other)
  })
}

const beforeValues = new Set(
  'SELECT WHEN THEN ELSE AND OR NOT BETWEEN RETURN WHERE ON BY IN LIMIT OFFSET'.split(' '),
)

/** Whether a sign after this token connects two values. */
function isBinary(before: Token | undefined): boolean {
  if (before === undefined) return false
  if (before.kind === 'word') return !beforeValues.has(before.text)
  return before.kind !== 'sign' || before.text === ')' || before.text === ']'
}

/** Whole numbers, one greater. */
export function constantChanges(_: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    if (token.kind !== 'number' || !/^\d+$/.test(token.text)) return []
    return changeOf('constant', tokens, { from: at, to: at + 1 }, String(BigInt(token.text) + 1n))
  })
}
