import type { PreparedLine } from './book.ts'
import { invalid } from './calendar.ts'
import { flags, kinds, type Line } from './operation.ts'
import { objectGiven } from '../core/options/given.ts'

/** What is moved, from where to where. Both sides may be of several books, and add up to the same. */
export interface Transfer {
  /** Lines that take: `line` of credits, stock and quotas. */
  readonly from: readonly PreparedLine[]
  /** Lines that give: `grantLine` of credits, `receiveLine` of stock. */
  readonly to: readonly PreparedLine[]
}

/** The legs as lines of one operation. @throws OPTION_INVALID */
export function transferLines(transfer: Transfer): readonly PreparedLine[] {
  const { from, to } = objectGiven(transfer, 'transfer')
  const [taken, given] = [sumOf(from, [kinds.debit]), sumOf(to, [kinds.grant, kinds.credit])]
  if (taken === undefined) throw invalid('from', 'from needs lines that take an amount')
  if (given === undefined) throw invalid('to', 'to needs lines that give an amount')
  if (taken !== given) throw invalid('to', `from takes ${taken} and to gives ${given}`)
  if (from.some(({ line }) => line.everyUs !== undefined)) {
    throw invalid('from', 'a rate fills up by itself: what is taken from it is not moved')
  }
  if (to.some(({ line }) => from.some((leg) => isSameAccount(leg.line, line)))) {
    throw invalid('to', 'what is taken from a key is not given to the same one')
  }
  // What is not there is not moved, also where a quota may be used beyond its limit.
  const legs = (lines: readonly PreparedLine[], kind: Line['kind']): PreparedLine[] =>
    lines.map((prepared) => {
      const bits = (prepared.line.flags ?? 0) & ~flags.unchecked
      return { ...prepared, line: { ...prepared.line, kind, flags: bits } }
    })
  return [...legs(from, kinds['transfer-out']), ...legs(to, kinds['transfer-in'])]
}

function isSameAccount(one: Line, other: Line): boolean {
  return one.book === other.book && one.key === other.key && one.scope === other.scope
}

/** Undefined if there is none, or one of another kind. */
function sumOf(lines: readonly PreparedLine[], allowed: readonly number[]): bigint | undefined {
  let sum = 0n
  if (!Array.isArray(lines)) return undefined
  for (const each of lines as readonly (PreparedLine | undefined)[]) {
    const line = each?.line as Line | undefined
    if (line === undefined || !allowed.includes(line.kind) || line.amount === undefined)
      return undefined
    sum += BigInt(line.amount)
  }
  return lines.length === 0 ? undefined : sum
}
