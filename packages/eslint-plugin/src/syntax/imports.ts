import type { TSESTree } from '@typescript-eslint/types'
import type { Scope, SourceCode } from 'eslint'
import { initializerOf, type Node, unawaited, unwrapped, variableOf } from './node.ts'

/** What a name was imported as. */
export interface Imported {
  readonly module: string
  /** As the module calls it: `default` for its default, `*` for all of it. */
  readonly name: string
}

/** What an identifier was imported as, also by `require`. */
export function importedBy(source: SourceCode, node: Node): Imported | undefined {
  const inner = unwrapped(node)
  if (inner.type !== 'Identifier') return undefined
  const variable = variableOf(source, inner)
  return variable && importOf(source, variable)
}

/** What a variable was imported as, also by `require`. */
export function importOf(source: SourceCode, variable: Scope.Variable): Imported | undefined {
  const [definition] = variable.defs
  if (definition?.type === 'ImportBinding') {
    const declaration = definition.parent as unknown as TSESTree.Node
    if (declaration.type !== 'ImportDeclaration') return undefined
    return {
      module: declaration.source.value,
      name: specifierName(definition.node as unknown as TSESTree.ImportClause),
    }
  }
  const declarator = initializerOf(variable)
  const module = declarator?.init ? requiredModule(source, declarator.init) : undefined
  if (module === undefined || declarator === undefined) return undefined
  if (declarator.id.type === 'Identifier') return { module, name: '*' }
  if (declarator.id.type !== 'ObjectPattern') return undefined
  const name = destructuredName(declarator.id, variable.name)
  return name === undefined ? undefined : { module, name }
}

/** The property that a pattern like `{ a, b: c }` binds to this name. */
export function destructuredName(
  pattern: TSESTree.ObjectPattern,
  variableName: string,
): string | undefined {
  for (const property of pattern.properties) {
    if (property.type !== 'Property' || property.computed) continue
    const { key, value } = property
    const isIt = value.type === 'Identifier' && value.name === variableName
    if (isIt && key.type === 'Identifier') return key.name
  }
  return undefined
}

/** Every module that the file imports, for values or for types. */
export function modulesImported(source: SourceCode): ReadonlySet<string> {
  const known = modulesOf.get(source)
  if (known !== undefined) return known
  const modules = new Set<string>()
  for (const statement of source.ast.body as unknown as TSESTree.ProgramStatement[]) {
    if (statement.type === 'ImportDeclaration') modules.add(statement.source.value)
    if (statement.type !== 'VariableDeclaration') continue
    for (const { init } of statement.declarations) {
      const module = init ? requiredModule(source, init) : undefined
      if (module !== undefined) modules.add(module)
    }
  }
  modulesOf.set(source, modules)
  return modules
}

const modulesOf = new WeakMap<SourceCode, ReadonlySet<string>>()

/** Whether the file imports this package or a part of it. */
export function imports(source: SourceCode, packageName: string): boolean {
  for (const module of modulesImported(source)) if (isOf(module, packageName)) return true
  return false
}

/** Whether a module is this package or a part of it. */
export function isOf(module: string, packageName: string): boolean {
  return module === packageName || module.startsWith(`${packageName}/`)
}

function specifierName(specifier: TSESTree.ImportClause): string {
  if (specifier.type === 'ImportDefaultSpecifier') return 'default'
  if (specifier.type === 'ImportNamespaceSpecifier') return '*'
  return specifier.imported.type === 'Identifier'
    ? specifier.imported.name
    : specifier.imported.value
}

function requiredModule(source: SourceCode, node: Node): string | undefined {
  const call = unawaited(node)
  if (call.type === 'ImportExpression') return literal(call.source)
  if (call.type !== 'CallExpression' || call.callee.type !== 'Identifier') return undefined
  const isRequire = call.callee.name === 'require' && !variableOf(source, call.callee)
  return isRequire && call.arguments[0] ? literal(call.arguments[0]) : undefined
}

function literal(node: Node): string | undefined {
  return node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined
}
