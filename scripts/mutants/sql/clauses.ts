import { type Change, changeOf, nextOf, type Span, textOf } from './change.ts'
import type { Token } from './tokens.ts'

/** What ends an ORDER BY. */
const afterOrder = new Set([
  'LIMIT',
  'OFFSET',
  'FOR',
  'UNION',
  'LOOP',
  'INTO',
  'ROWS',
  'RANGE',
  ';',
])
const afterUpdate = new Set(['RETURNING', ';'])

/** An ORDER BY that is left out, and one the other way round. */
export function orderChanges(text: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    if (token.text !== 'ORDER' || tokens[at + 1]?.text !== 'BY') return []
    const to = nextOf(tokens, at + 2, token.depth, (each) => afterOrder.has(each.text))
    const span = { from: at, to }
    const keys = splitAt(tokens, { from: at + 2, to }, ',').map((key) =>
      reversed(text, tokens, key),
    )
    return [
      ...changeOf('order', tokens, span, ''),
      ...changeOf('order', tokens, span, `ORDER BY ${keys.join(', ')}`),
    ]
  })
}

function reversed(text: string, tokens: readonly Token[], key: Span): string {
  const last = tokens[key.to - 1]?.text
  if (last !== 'DESC' && last !== 'ASC') return `${textOf(text, tokens, key)} DESC`
  const bare = textOf(text, tokens, { from: key.from, to: key.to - 1 })
  return last === 'DESC' ? bare : `${bare} DESC`
}

function splitAt(tokens: readonly Token[], { from, to }: Span, sign: string): Span[] {
  const depth = tokens[from]?.depth
  const parts: Span[] = []
  let start = from
  for (let at = from; at < to; at += 1) {
    if (tokens[at]?.depth !== depth || tokens[at]?.text !== sign) continue
    parts.push({ from: start, to: at })
    start = at + 1
  }
  return [...parts, { from: start, to }]
}

/** Locks that are not taken, and SKIP LOCKED that waits. */
export function lockChanges(_: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    const words = tokens.slice(at, at + 8).map((each) => each.text)
    const row =
      /^FOR (?:NO KEY UPDATE|UPDATE|KEY SHARE|SHARE)\b(?: OF \S+)?(?: SKIP LOCKED| NOWAIT)?/
    const [lock] = row.exec(words.join(' ')) ?? []
    if (lock !== undefined) {
      return changeOf('lock', tokens, { from: at, to: at + lock.split(' ').length }, '')
    }
    if (token.text === 'SKIP' && words[1] === 'LOCKED') {
      return changeOf('lock', tokens, { from: at, to: at + 2 }, '')
    }
    if (token.text === 'PERFORM' && words[1]?.startsWith('PG_ADVISORY') === true) {
      const to = nextOf(tokens, at, token.depth, (each) => each.text === ';')
      return changeOf('lock', tokens, { from: at, to }, 'NULL')
    }
    return []
  })
}

/** ON CONFLICT that fails, and one that keeps what is there instead of changing it. */
export function conflictChanges(_: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    if (token.text !== 'ON' || tokens[at + 1]?.text !== 'CONFLICT') return []
    const act = nextOf(tokens, at, token.depth, (each) => each.text === 'DO')
    if (tokens[act + 1]?.text === 'NOTHING') {
      return changeOf('conflict', tokens, { from: at, to: act + 2 }, '')
    }
    const to = nextOf(tokens, act, token.depth, (each) => afterUpdate.has(each.text))
    return changeOf('conflict', tokens, { from: act, to }, 'DO NOTHING')
  })
}

/** Of a migration: what is no longer unique, and what is no longer checked. */
export function constraintChanges(_: string, tokens: readonly Token[]): Change[] {
  return tokens.flatMap((token, at) => {
    const next = tokens[at + 1]?.text
    const closing = (from: number): number =>
      nextOf(tokens, from + 1, token.depth, (each) => each.text === ')') + 1
    if (token.body) return []
    if (token.text === 'UNIQUE' && next === 'INDEX') {
      return changeOf('constraint', tokens, { from: at, to: at + 1 }, '')
    }
    if (token.text === 'PRIMARY' && next === 'KEY') {
      const to = tokens[at + 2]?.text === '(' ? closing(at + 2) : at + 2
      return changeOf('constraint', tokens, { from: at, to }, 'CHECK (true)')
    }
    if ((token.text === 'CHECK' || token.text === 'UNIQUE') && next === '(') {
      return changeOf('constraint', tokens, { from: at, to: closing(at + 1) }, 'CHECK (true)')
    }
    return []
  })
}
