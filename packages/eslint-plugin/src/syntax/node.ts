import type { TSESTree } from '@typescript-eslint/types'
import type { Scope, SourceCode } from 'eslint'

/** A node of the tree, as ESLint, typescript-eslint and oxlint make it. */
export type Node = TSESTree.Node

/** A function whose body we read. */
export type FunctionNode =
  | TSESTree.ArrowFunctionExpression
  | TSESTree.FunctionExpression
  | TSESTree.FunctionDeclaration

/** A function of this file. */
export function isFunction(node: Node | null | undefined): node is FunctionNode {
  return (
    node?.type === 'ArrowFunctionExpression' ||
    node?.type === 'FunctionExpression' ||
    node?.type === 'FunctionDeclaration'
  )
}

/** A function that is written where it is given. */
export function isInlineFunction(
  node: Node | null | undefined,
): node is TSESTree.ArrowFunctionExpression | TSESTree.FunctionExpression {
  return isFunction(node) && node.type !== 'FunctionDeclaration'
}

/** The expression without what only TypeScript sees, and without the wrapper of `?.`. */
export function unwrapped(node: Node): Node {
  switch (node.type) {
    case 'ChainExpression':
    case 'TSAsExpression':
    case 'TSNonNullExpression':
    case 'TSSatisfiesExpression':
    case 'TSTypeAssertion':
      return unwrapped(node.expression)
    default:
      return node
  }
}

/** The expression without `await` around it. */
export function unawaited(node: Node): Node {
  const inner = unwrapped(node)
  return inner.type === 'AwaitExpression' ? unawaited(inner.argument) : inner
}

/** Every node from here down, parents first; a visitor that answers false is not taken further down. */
export function walk(source: SourceCode, node: Node, visit: (each: Node) => unknown): void {
  if (visit(node) === false) return
  for (const child of childrenOf(source, node)) walk(source, child, visit)
}

function childrenOf(source: SourceCode, node: Node): Node[] {
  const keys = source.visitorKeys[node.type] ?? []
  return keys
    .flatMap((key) => (node as unknown as Record<string, unknown>)[key])
    .filter((child): child is Node => typeof child === 'object' && child !== null)
}

/** The nodes around this one, the nearest first. */
export function* ancestorsOf(node: Node): Generator<Node> {
  for (let { parent } = node; parent; { parent } = parent) yield parent
}

/** The function that this node is in; none at the top of a file. */
export function functionAround(node: Node): FunctionNode | undefined {
  for (const ancestor of ancestorsOf(node)) if (isFunction(ancestor)) return ancestor
  return undefined
}

/** Whether one node lies within the other. */
export function isWithin(inner: Node, outer: Node): boolean {
  return inner.range[0] >= outer.range[0] && inner.range[1] <= outer.range[1]
}

/** The name after the dot, also as `['name']`. */
export function propertyName(node: TSESTree.MemberExpression): string | undefined {
  if (!node.computed) return keyName(node.property)
  return node.property.type === 'Literal' && typeof node.property.value === 'string'
    ? node.property.value
    : undefined
}

/** A name as it is written before a colon or after a dot; private names keep their `#`. */
export function keyName(key: Node): string | undefined {
  if (key.type === 'PrivateIdentifier') return `#${key.name}`
  return key.type === 'Identifier' ? key.name : undefined
}

/** The variable that a name stands for; none for globals that the file does not declare. */
export function variableOf(
  source: SourceCode,
  identifier: TSESTree.Identifier,
): Scope.Variable | undefined {
  const at = identifier as unknown as Parameters<SourceCode['getScope']>[0]
  for (let scope: Scope.Scope | null = source.getScope(at); scope; scope = scope.upper) {
    const variable = scope.set.get(identifier.name)
    if (variable !== undefined) return variable.defs.length > 0 ? variable : undefined
  }
  return undefined
}

/** Where a variable gets its value, if it is given only once. */
export function initializerOf(variable: Scope.Variable): TSESTree.VariableDeclarator | undefined {
  const [definition, ...others] = variable.defs
  if (definition?.type !== 'Variable' || others.length > 0) return undefined
  const declarator = definition.node as unknown as TSESTree.VariableDeclarator
  const writes = variable.references.filter((reference) => reference.isWrite())
  return declarator.init !== null && writes.length === 1 ? declarator : undefined
}

/** The text of a string or of a template, whose inserted values become `?`. */
export function textOf(node: Node | null | undefined): string | undefined {
  if (!node) return undefined
  const inner = unwrapped(node)
  if (inner.type === 'Literal') return typeof inner.value === 'string' ? inner.value : undefined
  if (inner.type === 'TaggedTemplateExpression') return textOf(inner.quasi)
  if (inner.type !== 'TemplateLiteral') return undefined
  return inner.quasis.map(({ value }) => value.cooked).join('?')
}
