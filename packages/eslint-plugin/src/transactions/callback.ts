import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { isRootPath, knownClient } from '../clients/known-client.ts'
import type { Library } from '../clients/library.ts'
import { before, type Chain, chainOf, type Step } from '../syntax/chain.ts'
import { imports } from '../syntax/imports.ts'
import { isInlineFunction, type Node, textOf, unwrapped } from '../syntax/node.ts'
import { handleOf } from './handle.ts'
import { holdfastBody } from './holdfast-body.ts'
import { nameOf, type Transaction } from './transaction.ts'

type Body = TSESTree.ArrowFunctionExpression | TSESTree.FunctionExpression

/** The transaction that a call opens for the function it is given, if it is one that we know. */
export function callbackTransaction(
  source: SourceCode,
  call: TSESTree.CallExpression,
): Transaction | undefined {
  const callee = unwrapped(call.callee)
  if (callee.type !== 'MemberExpression') return undefined
  const chain = chainOf(source, call)
  const last = chain?.steps.at(-1)
  if (chain === undefined || last?.call !== call) return undefined
  const body = call.arguments.find(isInlineFunction)
  if (body === undefined) return undefined
  const holdfast = holdfastBody(source, call, chain, body)
  if (holdfast !== undefined) return holdfast
  const opened = openedBy(source, call, chain, callee.object, body)
  if (opened === undefined) return undefined
  const { library, client } = opened
  const [parameter] = body.params
  return {
    name: nameOf(source, callee),
    region: body,
    libraries: [library],
    ...(isRootPath(source, client, callee.object) && { root: client }),
    ...handleOf(source, parameter),
    takesHandle: parameter !== undefined,
  }
}

function openedBy(
  source: SourceCode,
  call: TSESTree.CallExpression,
  chain: Chain,
  receiver: Node,
  body: Body,
): { readonly library: Library; readonly client: Chain } | undefined {
  const [first, second] = call.arguments
  const last = chain.steps.at(-1)
  const client = before(chain, 1)
  if (last?.name === '$transaction') {
    return first === body ? { library: 'prisma', client } : undefined
  }
  if (last?.name === 'execute') {
    const length = lengthOfOpening(chain.steps)
    return first === body && length > 0
      ? { library: 'kysely', client: before(chain, length) }
      : undefined
  }
  if (last?.name !== 'transaction' || !body.async) return undefined
  const isWithLevel = second === body && isIsolationLevel(first)
  if (first !== body && !isWithLevel) return undefined
  if (isTypeOrm(source, receiver, body, isWithLevel)) return { library: 'typeorm', client }
  return first === body && isDrizzle(source, receiver, body)
    ? { library: 'drizzle', client }
    : undefined
}

const settings = new Set(['setIsolationLevel', 'setAccessMode'])

/** How many steps `.transaction().setIsolationLevel(…).execute(…)` has; 0 if it is something else. */
function lengthOfOpening(steps: readonly Step[]): number {
  let at = steps.length - 2
  while (settings.has(steps[at]?.name ?? '')) at -= 1
  const opening = steps[at]
  if (opening?.name !== 'transaction' || opening.call?.type !== 'CallExpression') return 0
  return opening.call.arguments.length === 0 ? steps.length - at : 0
}

function isIsolationLevel(node: Node | undefined): boolean {
  const text = node && textOf(node)
  return text !== undefined && /^(READ (UN)?COMMITTED|REPEATABLE READ|SERIALIZABLE)$/.test(text)
}

function isTypeOrm(source: SourceCode, receiver: Node, body: Body, isWithLevel: boolean): boolean {
  const known = knownClient(source, receiver)
  if (known !== undefined) return known.library === 'typeorm'
  if (!imports(source, 'typeorm')) return false
  if (isWithLevel) return true
  const [parameter] = body.params
  return parameter?.type === 'Identifier' && /manager|^em$/i.test(parameter.name)
}

/** Only Drizzle and drivers of SQLite have `transaction(body)`, and these take no `async` body. */
function isDrizzle(source: SourceCode, receiver: Node, body: Body): boolean {
  const known = knownClient(source, receiver)
  if (known !== undefined) return known.library === 'drizzle'
  const isOther = ['knex', 'sequelize', 'objection', 'typeorm'].some((name) =>
    imports(source, name),
  )
  return body.params.length > 0 && imports(source, 'drizzle-orm') && !isOther
}
