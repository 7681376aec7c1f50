import type { TSESTree } from '@typescript-eslint/types'
import type { Scope, SourceCode } from 'eslint'
import { destructuredName } from './imports.ts'
import {
  ancestorsOf,
  initializerOf,
  isFunction,
  type Node,
  propertyName,
  unwrapped,
  variableOf,
} from './node.ts'

/** One link of a chain: a property, or a call of it. */
export interface Step {
  readonly name: string
  readonly call?: TSESTree.CallExpression | TSESTree.TaggedTemplateExpression
}

/** An expression like `this.prisma.user.create(…)`: where it begins, and what follows. */
export interface Chain {
  /** A variable, the class (or function) that `this` belongs to, or the name of a global. */
  readonly root: Scope.Variable | Node | string
  readonly steps: readonly Step[]
}

/** Calls after which one still has the same client, or a part of it. */
export const sameClient: ReadonlySet<string> = new Set([
  'getRepository',
  'getTreeRepository',
  'withSchema',
  'withPlugin',
  'withoutPlugins',
  'withTables',
  '$extends',
])

const mostAliases = 8

/**
 * Reads an expression as a chain. A constant that stands for a client, or for a part of one, is read as
 * what it stands for: after `const { user } = prisma`, `user.create` is `prisma.user.create`.
 */
export function chainOf(source: SourceCode, node: Node, depth = 0): Chain | undefined {
  const inner = unwrapped(node)
  switch (inner.type) {
    case 'Identifier':
      return identifierChain(source, inner, depth)
    case 'ThisExpression': {
      const root = ownerOfThis(inner)
      return root && { root, steps: [] }
    }
    case 'MemberExpression': {
      const name = propertyName(inner)
      if (name === undefined) return undefined
      return longer(chainOf(source, inner.object, depth), { name })
    }
    case 'CallExpression':
      return called(source, inner, inner.callee, depth)
    case 'TaggedTemplateExpression':
      return called(source, inner, inner.tag, depth)
    default:
      return undefined
  }
}

/** The steps that follow a path, if the chain begins with it. */
export function stepsAfter(path: Chain, chain: Chain): readonly Step[] | undefined {
  if (chain.root !== path.root || chain.steps.length < path.steps.length) return undefined
  const begins = path.steps.every(({ name }, at) => chain.steps[at]?.name === name)
  return begins ? chain.steps.slice(path.steps.length) : undefined
}

/** Whether two chains are the same path. */
export function isSamePath(one: Chain, other: Chain): boolean {
  return stepsAfter(one, other)?.length === 0
}

/** What stands before the last call of this name: `db` of `db.transaction().execute(…)`. */
export function before(chain: Chain, count: number): Chain {
  return { root: chain.root, steps: chain.steps.slice(0, chain.steps.length - count) }
}

/** Whether a node is the whole chain, and not a part of a longer one. */
export function isWholeChain(node: Node): boolean {
  return unwrapped(wholeChain(node)) === node
}

/** The longest chain that this expression begins. */
export function wholeChain(node: Node): Node {
  let child = node
  for (const parent of ancestorsOf(node)) {
    const isLonger =
      (parent.type === 'MemberExpression' && parent.object === child) ||
      (parent.type === 'CallExpression' && parent.callee === child) ||
      (parent.type === 'TaggedTemplateExpression' && parent.tag === child)
    if (!isLonger && unwrapped(parent) === parent) return child
    child = parent
  }
  return child
}

function identifierChain(
  source: SourceCode,
  identifier: TSESTree.Identifier,
  depth: number,
): Chain | undefined {
  const variable = variableOf(source, identifier)
  if (variable === undefined) return { root: identifier.name, steps: [] }
  const own: Chain = { root: variable, steps: [] }
  const declarator = initializerOf(variable)
  if (!declarator?.init || depth > mostAliases) return own
  const init = unwrapped(declarator.init)
  if (!isAliasable(init)) return own
  const aliased = chainOf(source, init, depth + 1)
  if (aliased === undefined || !aliased.steps.every(keepsClient)) return own
  if (declarator.id.type === 'Identifier') return aliased
  if (declarator.id.type !== 'ObjectPattern') return own
  const name = destructuredName(declarator.id, variable.name)
  return name === undefined ? own : longer(aliased, { name })
}

function isAliasable({ type }: Node): boolean {
  return (
    type === 'Identifier' ||
    type === 'ThisExpression' ||
    type === 'MemberExpression' ||
    type === 'CallExpression'
  )
}

function keepsClient({ name, call }: Step): boolean {
  return call === undefined || sameClient.has(name)
}

function called(
  source: SourceCode,
  call: TSESTree.CallExpression | TSESTree.TaggedTemplateExpression,
  callee: Node,
  depth: number,
): Chain | undefined {
  const inner = unwrapped(callee)
  // Of functions that are called by their name alone we know nothing.
  if (inner.type !== 'MemberExpression') return undefined
  const name = propertyName(inner)
  if (name === undefined) return undefined
  return longer(chainOf(source, inner.object, depth), { name, call })
}

function longer(chain: Chain | undefined, step: Step): Chain | undefined {
  return chain && { root: chain.root, steps: [...chain.steps, step] }
}

function ownerOfThis(node: Node): Node | undefined {
  for (const ancestor of ancestorsOf(node)) {
    if (ancestor.type === 'ClassDeclaration' || ancestor.type === 'ClassExpression') return ancestor
    if (!isFunction(ancestor) || ancestor.type === 'ArrowFunctionExpression') continue
    const { parent } = ancestor
    if (parent?.type !== 'MethodDefinition') return ancestor
    // A static `this` is the class itself, and not what it makes.
    return parent.static ? ancestor : parent.parent.parent
  }
  return undefined
}

/** The class that a path through `this` begins at. */
export function classOf({
  root,
}: Chain): TSESTree.ClassDeclaration | TSESTree.ClassExpression | undefined {
  if (typeof root === 'string' || !('type' in root)) return undefined
  return root.type === 'ClassDeclaration' || root.type === 'ClassExpression' ? root : undefined
}

/** The variable that a path begins at. */
export function variableRoot({ root }: Chain): Scope.Variable | undefined {
  return typeof root === 'string' || 'type' in root ? undefined : root
}
