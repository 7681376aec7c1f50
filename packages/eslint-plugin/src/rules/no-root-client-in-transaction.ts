import type { Rule } from 'eslint'
import { knownPath } from '../clients/known-client.ts'
import { hasAmbientTransactions, isTest } from '../file/file-kind.ts'
import { type Chain, chainOf, isSamePath, variableRoot } from '../syntax/chain.ts'
import { type Node, walk } from '../syntax/node.ts'
import { isRootStatement } from '../transactions/root-statement.ts'
import { type Transaction, visitWithin } from '../transactions/transaction.ts'
import { transactionsOf } from '../transactions/transactions-of.ts'
import { describeRule } from './rule.ts'

/** A statement in the body of a transaction that is sent on another connection. */
export const noRootClientInTransaction: Rule.RuleModule = {
  meta: describeRule(
    'no-root-client-in-transaction',
    'disallow statements of the root client in the body of a transaction',
    {
      rootClient:
        'This statement is sent on another connection and is not part of the transaction of `{{name}}`: it does not see the changes of the transaction and stays if the transaction is rolled back. Use {{handle}} instead.',
    },
  ),
  create(context) {
    if (isTest(context) || hasAmbientTransactions(context)) return {}
    const { sourceCode } = context
    return {
      'Program:exit'() {
        const reported = new Set<Node>()
        for (const transaction of transactionsOf(sourceCode)) {
          const { root } = transaction
          if (root === undefined || !isCertain(context, transaction, root)) continue
          visitWithin(sourceCode, transaction, (node) => {
            if (reported.has(node) || !isRootStatement(sourceCode, transaction, root, node)) return
            reported.add(node)
            context.report({
              node: node as never,
              messageId: 'rootClient',
              data: { name: transaction.name, handle: handleName(transaction) },
            })
          })
        }
      },
    }
  },
}

function handleName({ handle }: Transaction): string {
  const variable = handle && variableRoot(handle)
  return variable ? `\`${variable.name}\`` : 'the handle that the body is given'
}

/** A body without a handle may rely on a client that finds its transaction by itself: only a plain one surely does not. */
function isCertain(
  { sourceCode }: Rule.RuleContext,
  transaction: Transaction,
  root: Chain,
): boolean {
  if (!transaction.takesHandle && knownPath(sourceCode, root) === undefined) return false
  let isReplaced = false
  walk(sourceCode, transaction.region, (node) => {
    if (node.type !== 'AssignmentExpression') return
    const target = chainOf(sourceCode, node.left)
    if (target !== undefined && isSamePath(target, root)) isReplaced = true
  })
  return !isReplaced
}
