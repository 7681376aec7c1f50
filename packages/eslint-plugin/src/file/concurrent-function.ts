import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { decoratorsOf } from '../clients/known-client.ts'
import { type FunctionNode, functionAround, keyName, propertyName, textOf } from '../syntax/node.ts'

const serializing =
  /lock|mutex|semaphore|exclusive|serializ|isolation|queue|debounce|throttle|transaction|single/i
const startUp =
  /^(seed|bootstrap|setup|set-?up|init|migrate|import|backfill|sync|ensure|onModuleInit|onApplicationBootstrap|main$)/i
const verbs = /^(get|post|put|patch|delete|all|use)$/

/**
 * Whether nothing here speaks against two calls of a function at the same time: it names no lock, no start-up of a
 * process, and is given to nobody who may call it one after the other.
 */
export function mayRunTwice(source: SourceCode, node: FunctionNode): boolean {
  const name = nameOf(node)
  if (name !== undefined && startUp.test(name)) return false
  if (serializing.test(codeOf(source, node))) return false
  if (isMethod(node)) return !isDecoratedAgainst(node.parent)
  const outer = functionAround(node)
  const { parent } = node
  if (parent.type === 'CallExpression') return outer === undefined && isRoute(parent)
  // A function inside of another one is called by it, or given to somebody by it.
  if (outer !== undefined) return false
  return (
    node.type === 'FunctionDeclaration' ||
    parent.type === 'VariableDeclarator' ||
    parent.type === 'PropertyDefinition'
  )
}

type Method = TSESTree.FunctionExpression & { readonly parent: TSESTree.MethodDefinition }

function isMethod(node: FunctionNode): node is Method {
  return node.parent.type === 'MethodDefinition'
}

const againstTwice =
  /transaction|guarded|lock|once|idempot|mutex|serial|cron|interval|timeout|tick|process/i

/** Whether decorators may put a method into a transaction, behind a lock or on a clock. */
function isDecoratedAgainst(method: TSESTree.MethodDefinition): boolean {
  return [method, method.parent.parent].some((each) =>
    [...decoratorsOf(each).keys()].some((name) => againstTwice.test(name)),
  )
}

/** `app.post('/users', async (request, response) => …)`. */
function isRoute({ callee, arguments: [path] }: TSESTree.CallExpression): boolean {
  if (callee.type !== 'MemberExpression' || callee.object.type !== 'Identifier') return false
  const isRouter = /^(app|router|server|fastify|api|routes?)$|Router$/.test(callee.object.name)
  return (
    isRouter && verbs.test(propertyName(callee) ?? '') && textOf(path)?.startsWith('/') === true
  )
}

function nameOf(node: FunctionNode): string | undefined {
  if (node.type !== 'ArrowFunctionExpression' && node.id) return node.id.name
  const { parent } = node
  if (parent.type === 'VariableDeclarator' && parent.id.type === 'Identifier') return parent.id.name
  if (parent.type === 'MethodDefinition' || parent.type === 'PropertyDefinition') {
    return keyName(parent.key)
  }
  return undefined
}

/** The text of a function without its comments. */
function codeOf(source: SourceCode, node: FunctionNode): string {
  return source
    .getTokens(node as never)
    .map(({ value }) => value)
    .join(' ')
}
