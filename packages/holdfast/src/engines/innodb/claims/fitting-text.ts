import { charsetOf, inCharset } from '../sql/charset.ts'
import type { Fragment } from '../sql/text.ts'
import type { ClaimTable } from './claim-table.ts'

/**
 * A text for people, as much of it as the column takes: that a reason is too long, or has characters that the column has
 * not, must not keep a claim from being given back.
 */
export function fittingText(table: ClaimTable, column: string, text: string): Fragment {
  const type = table.typeOf(column)
  const [, length] = /^(?:var)?char\((\d+)\)/.exec(type) ?? []
  // Of four bytes each.
  const most = Number(length ?? (type.startsWith('tinytext') ? 63 : mostCharacters))
  const known = inCharset(text, charsetOf(type, table.facts.charset))
  return { text: '?', values: [Array.from(known).slice(0, most).join('')] }
}

/** What a TEXT holds of any characters. */
const mostCharacters = 16_000
