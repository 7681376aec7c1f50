import type { SourceCode } from 'eslint'
import { type Node, walk } from '../syntax/node.ts'
import { callbackTransaction } from './callback.ts'
import { statementRanges } from './statement-range.ts'
import type { Transaction } from './transaction.ts'

const known = new WeakMap<SourceCode, readonly Transaction[]>()

/** Words without one of which nothing opens a transaction. */
const opening = /transaction|begin|guard|once|\.run\b/i

/** All transactions of a file that we are sure of. */
export function transactionsOf(source: SourceCode): readonly Transaction[] {
  const before = known.get(source)
  if (before !== undefined) return before
  const found: Transaction[] = []
  known.set(source, found)
  if (!opening.test(source.text)) return found
  walk(source, source.ast as unknown as Node, (node) => {
    if (node.type === 'CallExpression') {
      const transaction = callbackTransaction(source, node)
      if (transaction !== undefined) found.push(transaction)
    }
    if (node.type === 'BlockStatement') found.push(...statementRanges(source, node))
  })
  return found
}
