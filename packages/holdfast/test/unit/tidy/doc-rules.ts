import { posix } from 'node:path'
import ts from 'typescript-5'
import { finding, type SourceTree } from './source-tree.ts'

/** Every name that an entry point exports must be documented where it is declared. */
export function checkDocs(sources: SourceTree, entries: readonly string[]): string[] {
  const findings: string[] = []
  for (const entry of entries) {
    const file = sources.get(entry)
    if (file === undefined) {
      findings.push(`${entry}:1 is an entry point of package.json and does not exist`)
      continue
    }
    for (const name of exportedNames(sources, entry)) {
      const declarations = declarationsOf(sources, entry, name)
      if (declarations.some((node) => ts.getJSDocCommentsAndTags(node).length > 0)) continue
      findings.push(finding(declarations[0] ?? file, `exports ${name} without a JSDoc comment`))
    }
  }
  return [...new Set(findings)]
}

function exportedNames(sources: SourceTree, path: string): string[] {
  return (sources.get(path)?.statements ?? []).flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause, moduleSpecifier } = statement
      if (exportClause === undefined) return exportedNames(sources, target(path, moduleSpecifier))
      if (ts.isNamespaceExport(exportClause)) return [exportClause.name.text]
      return exportClause.elements.map((element) => element.name.text)
    }
    return isExported(statement) ? declared(statement) : []
  })
}

/** The statements that declare what `path` exports as `name`, found through re-exports. */
function declarationsOf(sources: SourceTree, path: string, name: string): ts.Statement[] {
  const statements = sources.get(path)?.statements ?? []
  const local = statements.filter(
    (statement) => declared(statement).includes(name) && !ts.isExportDeclaration(statement),
  )
  if (local.length > 0) return local
  return statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause, moduleSpecifier } = statement
      if (exportClause === undefined) {
        return declarationsOf(sources, target(path, moduleSpecifier), name)
      }
      // A namespace has no declaration of its own: its comment is on the export.
      if (ts.isNamespaceExport(exportClause)) {
        return exportClause.name.text === name ? [statement] : []
      }
      const element = exportClause.elements.find((candidate) => candidate.name.text === name)
      if (element === undefined) return []
      const original = (element.propertyName ?? element.name).text
      return moduleSpecifier === undefined
        ? imported(sources, path, original)
        : declarationsOf(sources, target(path, moduleSpecifier), original)
    }
    return []
  })
}

/** Follows `import { a } from './a.ts'; export { a }`. */
function imported(sources: SourceTree, path: string, name: string): ts.Statement[] {
  const file = sources.get(path)
  if (file === undefined) return []
  const local = file.statements.filter((statement) => declared(statement).includes(name))
  if (local.length > 0) return local
  for (const statement of file.statements) {
    if (!ts.isImportDeclaration(statement)) continue
    const bindings = statement.importClause?.namedBindings
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue
    const element = bindings.elements.find((candidate) => candidate.name.text === name)
    if (element === undefined) continue
    const original = (element.propertyName ?? element.name).text
    return declarationsOf(sources, target(path, statement.moduleSpecifier), original)
  }
  return []
}

function declared(statement: ts.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map((one) => one.name.getText())
  }
  const named = statement as ts.Statement & { readonly name?: ts.Node }
  return ts.isDeclarationStatement(statement) && named.name ? [named.name.getText()] : []
}

function isExported(statement: ts.Statement): boolean {
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
}

function target(path: string, specifier: ts.Expression | undefined): string {
  const text = specifier !== undefined && ts.isStringLiteralLike(specifier) ? specifier.text : ''
  return posix.join(posix.dirname(path), text)
}
