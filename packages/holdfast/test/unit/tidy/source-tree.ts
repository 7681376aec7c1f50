import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
// TypeScript 7 has no compiler API yet; 5.9 parses everything we write.
import ts from 'typescript-5'

/** Sources by path relative to `src/`, with forward slashes. */
export type SourceTree = ReadonlyMap<string, ts.SourceFile>

export function parseSources(texts: Readonly<Record<string, string>>): SourceTree {
  return new Map(
    Object.entries(texts).map(([path, text]) => [
      path,
      ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true),
    ]),
  )
}

export function readSources(folder: string, ending: RegExp = /\.ts$/): SourceTree {
  const texts: Record<string, string> = {}
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !ending.test(entry.name)) continue
    const path = join(entry.parentPath, entry.name)
    texts[relative(folder, path).replaceAll('\\', '/')] = readFileSync(path, 'utf8')
  }
  return parseSources(texts)
}

/** Something that is not in order, in the form `path:line what is wrong`. */
export function finding(node: ts.Node, problem: string): string {
  const file = node.getSourceFile()
  const { line } = file.getLineAndCharacterOfPosition(node.getStart(file))
  return `${file.fileName}:${line + 1} ${problem}`
}

export function walk(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

export interface ImportedModule {
  readonly specifier: string
  readonly typeOnly: boolean
  readonly node: ts.Node
}

/** Every `import`, `export … from`, `import()` and `import('…')` type of one file. */
export function importsOf(file: ts.SourceFile): ImportedModule[] {
  const found: ImportedModule[] = []
  walk(file, (node) => {
    const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
      if (specifier !== undefined && ts.isStringLiteralLike(specifier)) {
        found.push({ specifier: specifier.text, typeOnly, node })
      }
    }
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, isTypeOnly(node.importClause))
    } else if (ts.isExportDeclaration(node)) {
      add(node.moduleSpecifier, node.isTypeOnly || allTypes(node.exportClause))
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false)
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true)
    }
  })
  return found
}

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  return clause.name === undefined && allTypes(clause.namedBindings)
}

function allTypes(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined): boolean {
  if (bindings === undefined || !('elements' in bindings)) return false
  return bindings.elements.length > 0 && bindings.elements.every(({ isTypeOnly }) => isTypeOnly)
}
