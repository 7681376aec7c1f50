import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { type Chain, chainOf, classOf, variableRoot } from '../syntax/chain.ts'
import { importedBy, isOf } from '../syntax/imports.ts'
import { initializerOf, keyName, type Node, propertyName, unawaited } from '../syntax/node.ts'
import { isPrismaRootName, type Known, knownType } from './library.ts'
import { typedClient } from './typed-client.ts'

const packages = ['kysely', 'typeorm', 'drizzle-orm', 'pg', 'holdfast'] as const

/** What an expression is, by how it was made, by the type that is written down for it, or by types. */
export function knownClient(source: SourceCode, node: Node): Known | undefined {
  const chain = chainOf(source, node)
  return (chain && knownPath(source, chain)) ?? typedClient(source, node)
}

/** What a path leads to, as far as this file says. */
export function knownPath(source: SourceCode, chain: Chain): Known | undefined {
  const known = declaredAt(source, chain)
  const last = chain.steps.at(-1)
  if (known !== undefined) return known
  // `dataSource.manager` and `dataSource.getRepository(…)` work outside of every transaction.
  if (last?.name === 'manager' || last?.name === 'getRepository') {
    const owner = knownPath(source, { root: chain.root, steps: chain.steps.slice(0, -1) })
    return owner?.library === 'typeorm' ? owner : undefined
  }
  return undefined
}

/** Whether a path is surely no handle of a transaction that somebody passed in. */
export function isRootPath(source: SourceCode, chain: Chain, node: Node): boolean {
  const known = knownPath(source, chain)
  if (known !== undefined) return known.isRoot
  const variable = variableRoot(chain)
  const [definition] = variable?.defs ?? []
  if (definition?.type === 'ImportBinding') return true
  if (definition?.type === 'Variable' && variable?.scope.type === 'module') {
    const declaration = definition.parent as unknown as TSESTree.VariableDeclaration
    return declaration.kind === 'const'
  }
  const typed = typedClient(source, node)
  const isPassed = definition?.type === 'Parameter'
  return typed !== undefined && typed.isRoot && !(isPassed && !mayNotBeHandle(typed))
}

/** A function that takes Drizzle's database is given its transactions as well: they have all it asks for. */
function mayNotBeHandle({ library }: Known): boolean {
  return library !== 'drizzle'
}

function declaredAt(source: SourceCode, chain: Chain): Known | undefined {
  const variable = variableRoot(chain)
  if (variable !== undefined && chain.steps.length === 0) {
    const [definition] = variable.defs
    if (definition?.type === 'Parameter') {
      const known = annotated(source, definition.name as never)
      return known && { ...known, isRoot: known.isRoot && mayNotBeHandle(known) }
    }
    const init = initializerOf(variable)?.init
    return annotated(source, definition?.name as never) ?? (init ? madeBy(source, init) : undefined)
  }
  const [step] = chain.steps
  const owner = classOf(chain)
  if (owner === undefined || step === undefined || chain.steps.length > 1) return undefined
  return propertyOf(source, owner, step.name)
}

function propertyOf(
  source: SourceCode,
  owner: TSESTree.ClassDeclaration | TSESTree.ClassExpression,
  name: string,
): Known | undefined {
  for (const member of owner.body.body) {
    if (member.type === 'PropertyDefinition' && keyName(member.key) === name) {
      const known = annotatedBy(source, member.typeAnnotation)
      return asInjected(member, known ?? (member.value ? madeBy(source, member.value) : undefined))
    }
    if (member.type !== 'MethodDefinition' || member.kind !== 'constructor') continue
    for (const parameter of member.value.params) {
      if (parameter.type !== 'TSParameterProperty') continue
      const target = parameter.parameter
      const identifier = target.type === 'AssignmentPattern' ? target.left : target
      if (identifier.type !== 'Identifier' || identifier.name !== name) continue
      return asInjected(parameter, annotated(source, identifier))
    }
  }
  return undefined
}

/** What Nest injects is made once for the application, and belongs to no transaction. */
function asInjected(node: Decorated, known: Known | undefined): Known | undefined {
  const decorators = decoratorsOf(node)
  const isInjected = decorators.has('InjectEntityManager') || decorators.has('InjectRepository')
  return isInjected && known?.library === 'typeorm' ? { ...known, isRoot: true } : known
}

interface Decorated {
  readonly decorators?: readonly TSESTree.Decorator[]
}

/** The decorators of a parameter or property by name, with their arguments. */
export function decoratorsOf(node: Decorated): ReadonlyMap<string, readonly Node[]> {
  const found = new Map<string, readonly Node[]>()
  for (const { expression } of node.decorators ?? []) {
    if (expression.type === 'Identifier') found.set(expression.name, [])
    if (expression.type !== 'CallExpression' || expression.callee.type !== 'Identifier') continue
    found.set(expression.callee.name, expression.arguments)
  }
  return found
}

function annotated(source: SourceCode, identifier: TSESTree.Node | undefined): Known | undefined {
  return identifier?.type === 'Identifier' && 'typeAnnotation' in identifier
    ? annotatedBy(source, identifier.typeAnnotation)
    : undefined
}

/** What a written type says: of one name alone, for of `PrismaClient | TransactionClient` nobody knows which. */
function annotatedBy(
  source: SourceCode,
  annotation: TSESTree.TSTypeAnnotation | undefined,
): Known | undefined {
  if (annotation?.typeAnnotation.type !== 'TSTypeReference') return undefined
  const { typeName } = annotation.typeAnnotation
  if (typeName.type === 'TSQualifiedName') {
    const { left, right } = typeName
    if (left.type !== 'Identifier') return undefined
    if (left.name === 'Prisma' && right.name === 'TransactionClient') {
      return { library: 'prisma', isRoot: false }
    }
    const imported = importedBy(source, left)
    return imported && knownImport(imported.module, right.name)
  }
  if (typeName.type !== 'Identifier') return undefined
  if (isPrismaRootName(typeName.name)) return { library: 'prisma', isRoot: true }
  const imported = importedBy(source, typeName)
  return imported && knownImport(imported.module, imported.name)
}

function knownImport(module: string, name: string): Known | undefined {
  const packageName = packages.find((each) => isOf(module, each))
  return packageName && knownType(packageName, name)
}

/** What an expression makes: `new Pool(…)`, `drizzle(…)`, `globalThis.prisma ?? new PrismaClient()`. */
function madeBy(source: SourceCode, node: Node): Known | undefined {
  const made = unawaited(node)
  if (made.type === 'LogicalExpression') return madeBy(source, made.right)
  if (made.type === 'NewExpression') return madeByClass(source, made.callee)
  if (made.type !== 'CallExpression') return undefined
  const { callee } = made
  if (callee.type === 'MemberExpression') {
    // `new DataSource(…).initialize()`, `new PrismaClient().$extends(…)`.
    const name = propertyName(callee)
    return name === 'initialize' || name === '$extends' ? madeBy(source, callee.object) : undefined
  }
  const imported = importedBy(source, callee)
  if (imported === undefined) return undefined
  if (imported.name === 'drizzle' && isOf(imported.module, 'drizzle-orm')) {
    // These run their transactions without waiting, on the one connection they have.
    const isSync = /(better-sqlite3|bun-sqlite|expo-sqlite|op-sqlite|durable-sqlite|sql-js)/.test(
      imported.module,
    )
    return isSync ? undefined : { library: 'drizzle', isRoot: true }
  }
  if (imported.name === 'createHoldfast' && isOf(imported.module, 'holdfast')) {
    return { library: 'holdfast', isRoot: true }
  }
  return undefined
}

function madeByClass(source: SourceCode, callee: Node): Known | undefined {
  if (callee.type === 'MemberExpression') {
    const name = propertyName(callee)
    const imported = importedBy(source, callee.object)
    return imported && name !== undefined ? knownImport(imported.module, name) : undefined
  }
  if (callee.type !== 'Identifier') return undefined
  if (callee.name === 'PrismaClient') return { library: 'prisma', isRoot: true }
  const imported = importedBy(source, callee)
  return imported && knownImport(imported.module, imported.name)
}
