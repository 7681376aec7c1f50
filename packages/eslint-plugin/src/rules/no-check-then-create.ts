import type { TSESTree } from '@typescript-eslint/types'
import type { Rule, Scope, SourceCode } from 'eslint'
import { type Found, isInTry, isReachedByAbsence } from '../absence/absence.ts'
import { creationOf, type Lookup, lookupOf, type RowAccess } from '../absence/row-access.ts'
import { isRootPath } from '../clients/known-client.ts'
import { mayRunTwice } from '../file/concurrent-function.ts'
import { hasAmbientTransactions, isScript, isTest, protectsByItself } from '../file/file-kind.ts'
import { type Chain, chainOf, isSamePath } from '../syntax/chain.ts'
import {
  functionAround,
  initializerOf,
  type Node,
  propertyName,
  unawaited,
  unwrapped,
  variableOf,
  walk,
} from '../syntax/node.ts'
import { isChain, promiseBehind } from '../syntax/running.ts'
import { isInTransaction } from '../transactions/transaction.ts'
import { transactionsOf } from '../transactions/transactions-of.ts'
import { describeRule } from './rule.ts'

/** A row that is created because a look-up, without any protection, has not found it. */
export const noCheckThenCreate: Rule.RuleModule = {
  meta: describeRule(
    'no-check-then-create',
    'disallow creating a row because an unprotected look-up has not found it',
    {
      checkThenCreate:
        'Two calls at the same time both find nothing, and both create: there are two rows, or the second call fails with a unique violation that is not caught here. Let a unique constraint decide (`upsert`, `ON CONFLICT`) or catch its violation, or take a lock around both.',
    },
  ),
  create(context) {
    if (isTest(context) || isScript(context) || hasAmbientTransactions(context)) return {}
    const { sourceCode } = context
    if (protectsByItself(sourceCode)) return {}
    return {
      'Program:exit'() {
        const lookups: FoundLookup[] = []
        const root = sourceCode.ast as unknown as Node
        walk(sourceCode, root, (node) => {
          if (node.type === 'VariableDeclarator') lookups.push(...foundBy(sourceCode, node))
        })
        if (lookups.length === 0) return
        walk(sourceCode, root, (node) => {
          const creation = awaitedCreation(sourceCode, node)
          if (creation === undefined) return
          const lookup = lookups.find((each) => isCause(sourceCode, each, node, creation))
          if (lookup === undefined) return
          context.report({
            node: node as never,
            messageId: 'checkThenCreate',
          })
        })
      },
    }
  },
}

interface FoundLookup extends Found {
  readonly at: TSESTree.VariableDeclarator
  readonly lookup: Lookup
}

/** The variable that a declaration gives what an awaited look-up answers. */
function foundBy(source: SourceCode, at: TSESTree.VariableDeclarator): FoundLookup[] {
  const init = at.init && unwrapped(at.init)
  if (init?.type !== 'AwaitExpression') return []
  const node = unawaited(init)
  const chain = isChain(node) ? chainOf(source, node) : undefined
  const lookup = chain && lookupOf(source, chain)
  const around = functionAround(at)
  if (lookup === undefined || around === undefined || isInTransaction(at, transactionsOf(source))) {
    return []
  }
  if (!isRootPath(source, lookup.client, receiverOf(source, node, lookup))) return []
  if (!mayRunTwice(source, around) || isByFreshValue(source, node)) return []
  const bound = boundBy(at.id, lookup)
  const variable =
    bound && source.getDeclaredVariables(at as never).find(({ name }) => name === bound.name)
  return bound && variable ? [{ variable, answer: bound.answer, at, lookup }] : []
}

const fresh = /nanoid|uuid|ulid|cuid|random|generat|token|secret|nonce/i

/** Whether a look-up asks for a value that was just made up: no second call asks for the same. */
function isByFreshValue(source: SourceCode, lookup: Node): boolean {
  let isFresh = false
  walk(source, lookup, (node) => {
    if (node.type !== 'Identifier') return
    const variable = variableOf(source, node)
    const init = variable && initializerOf(variable)?.init
    const text = init ? source.getText(init as never) : node.name
    if (fresh.test(text) || fresh.test(node.name)) isFresh = true
  })
  return isFresh
}

/** `found`, `[found]` of a list, `{ rows }` or `{ rowCount }` of a result. */
function boundBy(
  id: TSESTree.VariableDeclarator['id'],
  { answer }: Lookup,
): { readonly name: string; readonly answer: Lookup['answer'] } | undefined {
  if (id.type === 'Identifier') return { name: id.name, answer }
  if (id.type === 'ArrayPattern' && answer === 'list') return firstOf(id)
  if (id.type !== 'ObjectPattern' || answer !== 'result') return undefined
  for (const property of id.properties) {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') continue
    const { key, value } = property
    if (key.name === 'rows' && value.type === 'Identifier')
      return { name: value.name, answer: 'list' }
    if (key.name === 'rows' && value.type === 'ArrayPattern') return firstOf(value)
    if (key.name === 'rowCount' && value.type === 'Identifier')
      return { name: value.name, answer: 'row' }
  }
  return undefined
}

function firstOf({
  elements: [first],
}: TSESTree.ArrayPattern): { readonly name: string; readonly answer: 'row' } | undefined {
  return first?.type === 'Identifier' ? { name: first.name, answer: 'row' } : undefined
}

/** The expression that the client is written as, for its type: what is left of the steps of the look-up. */
function receiverOf(source: SourceCode, node: Node, { client }: Lookup): Node {
  let receiver = unwrapped(node)
  for (;;) {
    const chain = chainOf(source, receiver)
    if (chain === undefined || isSamePath(client, chain)) return receiver
    if (receiver.type === 'CallExpression') receiver = unwrapped(receiver.callee)
    else if (receiver.type === 'MemberExpression') receiver = unwrapped(receiver.object)
    else return receiver
  }
}

function awaitedCreation(source: SourceCode, node: Node): RowAccess | undefined {
  if (!isChain(node)) return undefined
  const { parent } = node
  const isTaken = parent?.type === 'AwaitExpression' || parent?.type === 'ReturnStatement'
  const chain = isTaken ? chainOf(source, node) : undefined
  return chain && creationOf(source, chain)
}

function isCause(source: SourceCode, found: FoundLookup, node: Node, creation: RowAccess): boolean {
  const { at, lookup, variable } = found
  return (
    functionAround(at) === functionAround(node) &&
    at.range[1] <= node.range[0] &&
    lookup.model === creation.model &&
    isSamePath(lookup.client, creation.client) &&
    isReachedByAbsence(source, node, found) &&
    !isChangedBefore(variable, at, node) &&
    !asksOthersBetween(source, at, node, creation) &&
    !isInTransaction(node, transactionsOf(source)) &&
    !isInTry(node)
  )
}

/** Functions that only compute, in a thread of their own. */
const computing = /^(hash|genSalt|encrypt|argon|bcrypt|scrypt|randomBytes)/i

/**
 * Whether the function waits for anything else between the look-up and the creation: what it calls may take a lock, or
 * refuse the second caller by itself.
 */
function asksOthersBetween(
  source: SourceCode,
  at: TSESTree.VariableDeclarator,
  creation: Node,
  { client }: RowAccess,
): boolean {
  const around = functionAround(at)
  if (around === undefined) return true
  let asks = false
  walk(source, around, (node) => {
    if (node.type !== 'AwaitExpression') return
    const isBetween = node.range[0] >= at.range[1] && node.range[1] <= creation.range[0]
    if (isBetween && !isHarmless(source, unawaited(node), client)) asks = true
  })
  return asks
}

function isHarmless(source: SourceCode, node: Node, client: Chain): boolean {
  const call = promiseBehind(node)
  if (call.type !== 'CallExpression') return false
  const { callee } = call
  const name = callee.type === 'MemberExpression' ? propertyName(callee) : identifierName(callee)
  if (name !== undefined && computing.test(name)) return true
  const chain = chainOf(source, call)
  const isOnClient = chain?.root === client.root
  return isOnClient && (lookupOf(source, chain) ?? creationOf(source, chain)) !== undefined
}

function identifierName(node: Node): string | undefined {
  return node.type === 'Identifier' ? node.name : undefined
}

/** Whether something else was put into the variable, so that a test of it says nothing about the look-up. */
function isChangedBefore(
  variable: Scope.Variable,
  at: TSESTree.VariableDeclarator,
  node: Node,
): boolean {
  return variable.references.some((reference) => {
    const { range } = reference.identifier as unknown as Node
    const isOwn = range[0] >= at.range[0] && range[1] <= at.range[1]
    // `found = await create(…)` writes when all is over.
    const isOfCreation = reference.writeExpr === node.parent
    return reference.isWrite() && !isOwn && !isOfCreation && range[0] < node.range[0]
  })
}
