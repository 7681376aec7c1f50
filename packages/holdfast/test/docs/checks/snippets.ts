import { existsSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-5'
import { type Block, root, standsAlone } from './pages.ts'

const preambles = fileURLToPath(new URL('../preambles/', import.meta.url))

/** A block as a module that can be type-checked and run. */
export interface Snippet {
  readonly block: Block
  /** Nothing if the block stands alone. */
  readonly preamble: string | undefined
  /** One line more than the block: the import of what the block takes from its preamble. */
  readonly source: string
  readonly run: boolean
  /** What it is to print: the `// → …` at the ends of lines, or the block that follows. */
  readonly prints: readonly string[]
}

/** TypeScript blocks that stand for themselves; those of a region are checked in their file. */
export function snippetsOf(blocks: readonly Block[], folder: string): Snippet[] {
  return blocks
    .filter(({ language, notes }) => language === 'ts' && !notes.has('region'))
    .map((block) => snippetOf(block, folder))
}

/** `folder` is where the module will be written, since its import of the preamble is relative. */
export function snippetOf(block: Block, folder: string): Snippet {
  const place = `${block.page}:${block.line}`
  const run = block.flags.includes('run')
  const unknown = block.flags.filter((flag) => flag !== 'run')
  if (unknown.length > 0) throw new Error(`${place} has the unknown flag ${unknown.join(' ')}`)
  const told = [...block.code.matchAll(/\/\/ → (.*)$/gm)].map(([, text]) => (text as string).trim())
  const prints = block.printed === undefined ? told : lastingLines(block.printed)
  if (prints.length > 0 && !run) {
    throw new Error(`${place} promises an output that is not checked: mark the block as run`)
  }
  if (standsAlone({ path: block.page })) {
    if (block.notes.has('preamble'))
      throw new Error(`${place} has to stand alone, and has a preamble`)
    return { block, preamble: undefined, source: `\n${block.code}\n`, run, prints }
  }
  const preamble = preambleOf(block)
  const names = namesToImport(block.code, readFileSync(preamble, 'utf8'))
  const from = relative(folder, preamble).replaceAll('\\', '/')
  const source = `import { ${names.join(', ')} } from '${from}'\n${block.code}\n`
  return { block, preamble, source, run, prints }
}

/** What a report prints the same every time: not how long it took, on which server, nor under load. */
export function lastingLines(text: string): string[] {
  return text
    .replaceAll(/^ {2}note .*\n(?: {10,}.*\n?)*/gm, '')
    .replaceAll(/\b[\d.,]+ m?s\b/g, '# ms')
    .replaceAll(/PostgreSQL [\d.]+/g, 'PostgreSQL #')
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd())
}

/** Named above the block, else by the driver it imports, else by its page, else the one for `pg`. */
function preambleOf({ page, line, notes, code }: Block): string {
  const [, driver] = /'holdfast\/drivers\/([\w-]+)'/.exec(code) ?? []
  const named = notes.get('preamble') ?? driver
  const ofPage = join(preambles, `${basename(page, '.md').toLowerCase()}.ts`)
  if (named === undefined) return existsSync(ofPage) ? ofPage : join(preambles, 'pg.ts')
  const path = join(preambles, `${named}.ts`)
  if (!existsSync(path)) {
    throw new Error(`${page}:${line} names no preamble: ${relative(root, path)}`)
  }
  return path
}

/** What the preamble exports, the block uses, and the block does not declare itself. */
function namesToImport(code: string, preamble: string): string[] {
  const block = ts.createSourceFile('block.ts', code, ts.ScriptTarget.Latest, true)
  const declared = new Set(block.statements.flatMap(declaredBy).map(({ name }) => name))
  const used = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) used.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(block)
  return ts
    .createSourceFile('preamble.ts', preamble, ts.ScriptTarget.Latest, true)
    .statements.filter(isExported)
    .flatMap(declaredBy)
    .filter(({ name }) => used.has(name) && !declared.has(name))
    .map(({ name, typeOnly }) => (typeOnly ? `type ${name}` : name))
}

interface Declared {
  readonly name: string
  readonly typeOnly: boolean
}

function declaredBy(statement: ts.Statement): Declared[] {
  const values = (names: readonly ts.Node[]): Declared[] =>
    names.map((name) => ({ name: name.getText(), typeOnly: false }))
  if (ts.isVariableStatement(statement)) {
    return values(statement.declarationList.declarations.flatMap(({ name }) => boundNames(name)))
  }
  if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) {
    return statement.name === undefined ? [] : values([statement.name])
  }
  if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
    return [{ name: statement.name.text, typeOnly: true }]
  }
  if (ts.isExportDeclaration(statement)) {
    const { exportClause } = statement
    if (exportClause === undefined || ts.isNamespaceExport(exportClause)) return []
    return exportClause.elements.map(({ name, isTypeOnly }) => ({
      name: name.text,
      typeOnly: isTypeOnly || statement.isTypeOnly,
    }))
  }
  if (ts.isImportDeclaration(statement)) {
    const { name, namedBindings } = statement.importClause ?? {}
    const bound = namedBindings === undefined ? [] : importedNames(namedBindings)
    return values(name === undefined ? bound : [name, ...bound])
  }
  return []
}

function boundNames(name: ts.BindingName): ts.Node[] {
  if (ts.isIdentifier(name)) return [name]
  return name.elements.flatMap((element) =>
    ts.isOmittedExpression(element) ? [] : boundNames(element.name),
  )
}

function importedNames(bindings: ts.NamedImportBindings): ts.Node[] {
  if (ts.isNamespaceImport(bindings)) return [bindings.name]
  return bindings.elements.map(({ name }) => name)
}

function isExported(statement: ts.Statement): boolean {
  if (ts.isExportDeclaration(statement)) return true
  const modifiers = ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : undefined
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
}
