import type { SourceCode } from 'eslint'
import { stepsOfRepository } from '../clients/repository.ts'
import { statementOf } from '../clients/statements.ts'
import { type Chain, chainOf, stepsAfter } from '../syntax/chain.ts'
import type { Node } from '../syntax/node.ts'
import { isAfterError, isAwaited, isChain } from '../syntax/running.ts'
import type { Transaction } from './transaction.ts'

/** Whether a node of a transaction is a statement of the client that opened it, and so no part of it. */
export function isRootStatement(
  source: SourceCode,
  transaction: Transaction,
  root: Chain,
  node: Node,
): boolean {
  if (!isChain(node)) return false
  const chain = chainOf(source, node)
  if (chain === undefined) return false
  const steps = stepsAfter(root, chain) ?? stepsOfRepository(source, transaction, root, chain)
  if (steps === undefined) return false
  const isSent = transaction.libraries.some((library) => {
    const statement = statementOf(library, steps)
    return statement !== undefined && (statement.sent === 'at once' || isAwaited(node))
  })
  // What is written after an error is meant to stay when the transaction is rolled back.
  return isSent && !isAfterError(node, transaction.region)
}
