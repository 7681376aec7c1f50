import type { TSESTree } from '@typescript-eslint/types'
import type { Scope, SourceCode } from 'eslint'
import { isRootPath, knownPath } from '../clients/known-client.ts'
import type { Library } from '../clients/library.ts'
import { librariesOf } from '../clients/statements.ts'
import { typedClient } from '../clients/typed-client.ts'
import { before, type Chain, chainOf, variableRoot } from '../syntax/chain.ts'
import { importedBy, importOf, isOf } from '../syntax/imports.ts'
import { initializerOf, type Node, unawaited, unwrapped } from '../syntax/node.ts'
import { handleOf } from './handle.ts'
import { nameOf, type Transaction } from './transaction.ts'

/** The methods whose bodies run in a transaction, with what stands before them besides the Holdfast itself. */
const methods: readonly (readonly string[])[] = [
  ['guard'],
  ['tryGuard'],
  ['transaction'],
  ['once'],
  ['locks', 'guard'],
  ['locks', 'tryGuard'],
  ['tx', 'run'],
]

const drivers: Readonly<Record<string, Library>> = {
  fromPrisma: 'prisma',
  fromDrizzle: 'drizzle',
  fromDrizzleMysql: 'drizzle',
  fromKysely: 'kysely',
  fromKyselyMysql: 'kysely',
  fromTypeOrm: 'typeorm',
  fromTypeOrmMysql: 'typeorm',
  fromPg: 'pg',
}

/** The transaction that a method of Holdfast opens for its body. */
export function holdfastBody(
  source: SourceCode,
  call: TSESTree.CallExpression,
  chain: Chain,
  body: TSESTree.ArrowFunctionExpression | TSESTree.FunctionExpression,
): Transaction | undefined {
  const method = methods
    .filter((names) => names.every((name, at) => stepFromEnd(chain, names.length - at) === name))
    .toSorted((a, b) => b.length - a.length)[0]
  if (method === undefined) return undefined
  const holdfast = before(chain, method.length)
  if (!isHoldfast(source, call, holdfast)) return undefined
  const [parameter] = body.params
  const over = clientUnder(source, holdfast)
  return {
    name: nameOf(source, unwrapped(call.callee)),
    region: body,
    libraries: over === undefined ? librariesOf(source) : [over.library],
    ...(over?.root && { root: over.root }),
    ...handleOf(source, parameter),
    takesHandle: parameter !== undefined,
  }
}

function stepFromEnd({ steps }: Chain, count: number): string | undefined {
  return steps[steps.length - count]?.name
}

function isHoldfast(source: SourceCode, call: TSESTree.CallExpression, path: Chain): boolean {
  const known = knownPath(source, path)
  if (known !== undefined) return known.library === 'holdfast'
  const callee = unwrapped(call.callee)
  if (callee.type !== 'MemberExpression') return false
  if (typedClient(source, callee.object)?.library === 'holdfast') return true
  // `hf` from another file, with a key that says whose method this is.
  const [key] = call.arguments
  return path.steps.length === 0 && key !== undefined && isKey(source, key)
}

/** `lockKey(…)`, or a call of what `lockNamespace(…)` made. */
function isKey(source: SourceCode, given: Node): boolean {
  const node = unwrapped(given)
  if (node.type !== 'CallExpression' || node.callee.type !== 'Identifier') return false
  const imported = importedBy(source, node.callee)
  if (imported !== undefined && isOf(imported.module, 'holdfast'))
    return imported.name === 'lockKey'
  const variable = chainOf(source, node.callee)
  const declared = variable && variableRoot(variable)
  const init = declared && initializerOf(declared)?.init
  if (init?.type !== 'CallExpression') return false
  const maker = importedBy(source, init.callee)
  return maker?.name === 'lockNamespace' && isOf(maker.module, 'holdfast')
}

/** The client that a Holdfast of this file was made over: `createHoldfast(fromPrisma(prisma))`. */
function clientUnder(
  source: SourceCode,
  path: Chain,
): { readonly library: Library; readonly root?: Chain } | undefined {
  const variable = path.steps.length === 0 ? variableRoot(path) : undefined
  const made = variable && madeFrom(source, variable)
  if (made?.callee.type !== 'Identifier') return undefined
  const imported = importedBy(source, made.callee)
  const library = imported && isOf(imported.module, 'holdfast') ? drivers[imported.name] : undefined
  const [client] = made.arguments
  if (library === undefined || client === undefined) return undefined
  const root = chainOf(source, client)
  return root && isRootPath(source, root, client) ? { library, root } : { library }
}

function madeFrom(
  source: SourceCode,
  variable: Scope.Variable,
): TSESTree.CallExpression | undefined {
  if (importOf(source, variable) !== undefined) return undefined
  const init = initializerOf(variable)?.init
  const create = init && unawaited(init)
  if (create?.type !== 'CallExpression') return undefined
  const driver = create.arguments[0] && unawaited(create.arguments[0])
  return driver?.type === 'CallExpression' ? driver : undefined
}
