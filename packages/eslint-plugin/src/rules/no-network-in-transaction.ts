import type { Rule, SourceCode } from 'eslint'
import { isTest } from '../file/file-kind.ts'
import { networkCall } from '../network/network-call.ts'
import { wholeChain } from '../syntax/chain.ts'
import { ancestorsOf, isFunction, type Node } from '../syntax/node.ts'
import { isAwaitedBy } from '../syntax/running.ts'
import { visitWithin } from '../transactions/transaction.ts'
import { transactionsOf } from '../transactions/transactions-of.ts'
import { describeRule } from './rule.ts'

/** A request to another machine while a transaction is open. */
export const noNetworkInTransaction: Rule.RuleModule = {
  meta: describeRule(
    'no-network-in-transaction',
    'disallow requests over the network in the body of a transaction',
    {
      network:
        'The transaction of `{{name}}` waits for `{{call}}`: until the answer comes it keeps its locks and its connection, and a rollback does not undo the request. Ask before the transaction, or write down in it what has to be sent and send that afterwards.',
    },
  ),
  create(context) {
    if (isTest(context)) return {}
    const { sourceCode } = context
    return {
      'Program:exit'() {
        const reported = new Set<Node>()
        for (const transaction of transactionsOf(sourceCode)) {
          visitWithin(sourceCode, transaction, (node) => {
            if (node.type !== 'CallExpression' || reported.has(node)) return
            const call = networkCall(sourceCode, node)
            if (call === undefined) return
            const { region } = transaction
            if (
              call.byEvents
                ? !isInExecutor(sourceCode, region, node)
                : !isAwaitedBy(sourceCode, region, wholeChain(node))
            )
              return
            reported.add(node)
            context.report({
              node: node as never,
              messageId: 'network',
              data: { name: transaction.name, call: call.name },
            })
          })
        }
      },
    }
  },
}

/** In `await new Promise((resolve) => …)`, where somebody waits for what callbacks are told. */
function isInExecutor(source: SourceCode, region: Node, node: Node): boolean {
  for (const ancestor of ancestorsOf(node)) {
    if (!isFunction(ancestor)) continue
    return ancestor.parent.type === 'NewExpression' && isAwaitedBy(source, region, ancestor.parent)
  }
  return false
}
