import { queryVerbs, readStatements, type SqlToken } from '../core/sql-tokens.ts'
import type { TransactionState } from '../core/model.ts'
import type { Block, Piece } from './piece.ts'

/** Mean the same wherever they stand; outside of a transaction they begin the implicit one. */
const anywhere = new Set([...queryVerbs, 'set', 'reset', 'show'])
/** The server refuses them, or means something else by them, without BEGIN. */
const behindBegin = new Set(['savepoint', 'release', 'lock'])
const beginnings = new Set(['begin', 'start'])
const ends = new Set(['commit', 'end', 'rollback', 'abort'])

/**
 * The statements of a query string as pieces of their own; undefined if it has only one, or if one of them would not do
 * in the extended protocol what it does in the string. There is a snapshot for each at READ COMMITTED, and locks are
 * taken one after the other, so others may act in between. Without a Sync between them they share one transaction as
 * they do in the string, and a failure ends them all.
 */
export function takeApart(piece: Piece, state: TransactionState): Piece[] | undefined {
  const { statements } = piece.unit
  if (piece.kind !== 'simple' || statements.length < 2) return undefined
  let block: Block = state === 'I' ? 'none' : 'explicit'
  const parts: Piece[] = []
  for (const [index, text] of statements.entries()) {
    const [statement, more] = readStatements(text)
    const next: Block | undefined =
      !statement || more ? undefined : blockAfter(statement.tokens, block)
    if (next === undefined) return undefined
    block = next
    const [first] = statement?.tokens ?? []
    parts.push({
      ...piece,
      kind: index < statements.length - 1 ? 'part' : 'last',
      block,
      unit: {
        ...piece.unit,
        statements: [text],
        splittable: block === 'implicit' && queryVerbs.has(first?.text ?? ''),
      },
    })
  }
  return parts
}

/** Settings that decide what the text of a statement means. */
const readsText = new Set(['standard_conforming_strings', 'client_encoding', 'names'])

/** Undefined for a statement that is better left where it is. */
function blockAfter(tokens: readonly SqlToken[], block: Block): Block | undefined {
  const words = new Set(tokens.filter(({ kind }) => kind === 'word').map(({ text }) => text))
  const verb = tokens.find(({ text }) => text !== '(')?.text ?? ''
  // The server has read the whole string before such a setting counts.
  if ([...words].some((word) => readsText.has(word))) return undefined
  if (beginnings.has(verb)) return 'explicit'
  if (anywhere.has(verb)) return block === 'none' ? 'implicit' : block
  if (block !== 'explicit') return undefined
  if (behindBegin.has(verb)) return block
  if (!ends.has(verb) || words.has('chain') || words.has('prepared')) return undefined
  return words.has('to') ? block : 'none'
}
