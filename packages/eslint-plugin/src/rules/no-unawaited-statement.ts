import type { TSESTree } from '@typescript-eslint/types'
import type { Rule, SourceCode } from 'eslint'
import { knownPath } from '../clients/known-client.ts'
import type { Library } from '../clients/library.ts'
import { type Statement, statementOf } from '../clients/statements.ts'
import { isTest } from '../file/file-kind.ts'
import { type Chain, chainOf, stepsAfter } from '../syntax/chain.ts'
import {
  isFunction,
  isInlineFunction,
  type Node,
  propertyName,
  unwrapped,
  walk,
} from '../syntax/node.ts'
import { handlesErrors, isAwaited, isChain, isIteration, promiseBehind } from '../syntax/running.ts'
import { handleOf } from '../transactions/handle.ts'
import { visitWithin } from '../transactions/transaction.ts'
import { transactionsOf } from '../transactions/transactions-of.ts'
import { describeRule } from './rule.ts'

/** A statement of a transaction for which nobody waits. */
export const noUnawaitedStatement: Rule.RuleModule = {
  meta: describeRule(
    'no-unawaited-statement',
    'require statements of a transaction to be awaited, returned or collected',
    {
      neverSent:
        'Nobody waits for this statement, and it is sent only when somebody does: it never runs. Put `await` before it, or return it.',
      unawaited:
        'Nobody waits for this statement: the transaction can end before it, and its error ends the process as an unhandled rejection. Put `await` before it, or collect it in an awaited `Promise.all`.',
      unawaitedInOrder:
        'Nobody waits for this statement: if it fails, the code goes on as if it had not, and its error ends the process as an unhandled rejection. Put `await` before it.',
      forEach:
        'Nobody waits for the statements of this callback: `{{method}}` does not, and nobody collects their promises. Use `for … of` with `await`.',
    },
  ),
  create(context) {
    if (isTest(context)) return {}
    const { sourceCode } = context
    return {
      'Program:exit'() {
        const reported = new Set<Node>()
        for (const handle of handlesOf(sourceCode)) {
          handle.visit((node) => {
            if (node.type !== 'ExpressionStatement' || reported.has(node)) return
            for (const found of droppedIn(sourceCode, handle, node.expression)) {
              reported.add(node)
              context.report({ ...found, node: found.node as never })
            }
          })
        }
      },
    }
  },
}

/** The handle of a transaction, and the code in which it is one. */
interface Handle {
  readonly path: Chain
  readonly libraries: readonly Library[]
  visit(visit: (node: Node) => void): void
}

interface Dropped {
  readonly node: Node
  readonly messageId: string
  readonly data?: Record<string, string>
}

function handlesOf(source: SourceCode): Handle[] {
  const handles: Handle[] = []
  for (const transaction of transactionsOf(source)) {
    const { handle, libraries, region, span } = transaction
    if (handle === undefined) continue
    handles.push({
      path: handle,
      libraries,
      visit: (visit) => {
        // In a body the handle is one everywhere, also in callbacks; between BEGIN and COMMIT only there.
        if (span === undefined) walk(source, region, visit)
        else visitWithin(source, transaction, visit)
      },
    })
  }
  walk(source, source.ast as unknown as Node, (node) => {
    if (!isFunction(node)) return
    for (const parameter of node.params) {
      const path = handleOf(source, parameter).handle
      const known = path && knownPath(source, path)
      // A PoolClient or an EntityManager may be used outside of a transaction as well.
      if (path === undefined || known === undefined || known.isRoot) continue
      const { library } = known
      if (library !== 'prisma' && library !== 'kysely' && library !== 'drizzle') continue
      handles.push({ path, libraries: [library], visit: (visit) => walk(source, node, visit) })
    }
  })
  return handles
}

/** What an expression drops whose value nobody takes. */
function droppedIn(source: SourceCode, handle: Handle, given: Node): Dropped[] {
  const node = unwrapped(given)
  switch (node.type) {
    case 'UnaryExpression':
      return node.operator === 'void' ? droppedIn(source, handle, node.argument) : []
    case 'LogicalExpression':
      return droppedIn(source, handle, node.right)
    case 'ConditionalExpression':
      return [
        ...droppedIn(source, handle, node.consequent),
        ...droppedIn(source, handle, node.alternate),
      ]
    case 'CallExpression':
    case 'TaggedTemplateExpression':
      return droppedCall(source, handle, node)
    default:
      return []
  }
}

function droppedCall(
  source: SourceCode,
  handle: Handle,
  call: TSESTree.CallExpression | TSESTree.TaggedTemplateExpression,
): Dropped[] {
  if (handlesErrors(call)) return []
  const statement = statementOn(source, handle, call)
  if (statement !== undefined) {
    return [{ node: promiseBehind(call), messageId: messageFor(statement) }]
  }
  return call.type === 'CallExpression' ? droppedByIteration(source, handle, call) : []
}

function messageFor({ library, sent }: Statement): string {
  if (sent === 'when awaited') return 'neverSent'
  // A client of pg sends COMMIT after what it was given before.
  return library === 'pg' ? 'unawaitedInOrder' : 'unawaited'
}

/** `items.forEach(async (item) => { await tx… })`, or a `map` whose promises nobody takes. */
function droppedByIteration(
  source: SourceCode,
  handle: Handle,
  call: TSESTree.CallExpression,
): Dropped[] {
  const [callback] = call.arguments
  const callee = unwrapped(call.callee)
  if (!isIteration(call) || !isInlineFunction(callback)) return []
  const method = callee.type === 'MemberExpression' ? propertyName(callee) : undefined
  if (method !== 'forEach' && method !== 'map') return []
  const data = { method }
  let isDropped = false
  walk(source, callback.body, (node) => {
    if (isFunction(node)) return false
    const isTaken = node.parent?.type === 'ReturnStatement' || node === callback.body
    if (!isChain(node) || !(isTaken || isAwaited(node))) return true
    if (statementOn(source, handle, node) !== undefined) isDropped = true
    return true
  })
  return isDropped ? [{ node: callee, messageId: 'forEach', data }] : []
}

function statementOn(source: SourceCode, handle: Handle, node: Node): Statement | undefined {
  const chain = chainOf(source, node)
  const steps = chain && stepsAfter(handle.path, chain)
  if (steps === undefined) return undefined
  for (const library of handle.libraries) {
    const statement = statementOf(library, steps)
    if (statement !== undefined) return statement
  }
  return undefined
}
