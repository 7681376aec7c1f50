/**
 * What a package offers, as text: every name that its entries export, and every declaration that these lead to. It
 * is committed, so that a change of the public API is seen in a review, and a test compares it with the sources.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-5'
import { entriesOf, type packages, packageRoot, readManifest } from './entries.ts'

type PackageName = (typeof packages)[number]

/** The report that is committed. */
export function reportFile(name: PackageName): URL {
  return new URL('api-report.md', packageRoot(name))
}

/** The report as the sources would have it. */
export function apiReport(name: PackageName): string {
  const manifest = readManifest(packageRoot(name))
  const declarations = declarationsIn(fileURLToPath(new URL('src/', packageRoot(name))))
  const program = programOf(declarations)
  const checker = program.getTypeChecker()
  const seen = new Set<ts.Statement>()
  const sections = entriesOf(manifest).map(({ specifier, source }) => {
    const file = program.getSourceFile(`/${declared(source.slice('src/'.length))}`)
    const module = file && checker.getSymbolAtLocation(file)
    if (module === undefined) throw new Error(`${source} is no module`)
    const exported = checker.getExportsOfModule(module)
    for (const symbol of exported) follow(symbol, checker, seen)
    const names = exported.map(({ name: each }) => each).toSorted(compare)
    return `## ${specifier}\n\n${names.map((each) => `- \`${each}\``).join('\n')}\n`
  })
  return [
    `# API of \`${manifest.name}\`\n`,
    '<!-- Written by `npm run api:report`; a change here is a change for users. -->\n',
    ...sections,
    '## Declarations\n',
    `\`\`\`ts\n${printed(seen)}\n\`\`\`\n`,
  ].join('\n')
}

/** Without types having to be worked out: ours are all written down (`isolatedDeclarations`). */
function declarationsIn(root: string): ReadonlyMap<string, string> {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !/^(ui|generated)\//.test(name),
  )
  return new Map(
    names.map((name) => {
      const { outputText } = ts.transpileDeclaration(readFileSync(join(root, name), 'utf8'), {
        fileName: name,
        compilerOptions: { declaration: true, stripInternal: true, target: ts.ScriptTarget.ESNext },
      })
      return [`/${declared(name)}`, outputText]
    }),
  )
}

function declared(name: string): string {
  return name.replace(/\.ts$/, '.d.ts')
}

/** Of our declarations alone; what they take from elsewhere is only a name. */
function programOf(files: ReadonlyMap<string, string>): ts.Program {
  const options: ts.CompilerOptions = { noLib: true, types: [], target: ts.ScriptTarget.ESNext }
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost(options),
    fileExists: (name) => files.has(name),
    readFile: (name) => files.get(name),
    getSourceFile: (name, language) => {
      const text = files.get(name)
      return text === undefined ? undefined : ts.createSourceFile(name, text, language, true)
    },
    resolveModuleNameLiterals: (literals, from) =>
      literals.map(({ text }) => {
        const name = declared(join(dirname(from), text))
        return files.has(name) && text.startsWith('.')
          ? { resolvedModule: { resolvedFileName: name, extension: ts.Extension.Dts } }
          : { resolvedModule: undefined }
      }),
  }
  return ts.createProgram({ rootNames: [...files.keys()], options, host })
}

/** Notes the declarations of a symbol, and of everything that they mention. */
function follow(symbol: ts.Symbol, checker: ts.TypeChecker, seen: Set<ts.Statement>): void {
  const target =
    (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol)
  for (const declaration of target.declarations ?? []) {
    const statement = ts.findAncestor(declaration, (node) => ts.isSourceFile(node.parent ?? node))
    if (statement === undefined || ts.isSourceFile(statement)) continue
    if (seen.has(statement as ts.Statement)) continue
    seen.add(statement as ts.Statement)
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node)) {
        const mentioned = checker.getSymbolAtLocation(node)
        if (mentioned !== undefined) follow(mentioned, checker, seen)
      }
      ts.forEachChild(node, visit)
    }
    visit(statement)
  }
}

function printed(statements: ReadonlySet<ts.Statement>): string {
  const printer = ts.createPrinter({ removeComments: true })
  const texts = [...statements]
    .filter((statement) => !ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement))
    .map((statement) => {
      const file = statement.getSourceFile()
      const text = printer.printNode(ts.EmitHint.Unspecified, statement, file)
      return {
        file: file.fileName.slice(1),
        // Of the tables of errors the codes count, not the words.
        text: text
          .replace(/^(export )?(declare )?/, '')
          .replaceAll(/^\s*readonly (what|next): ".*";\n/gm, ''),
      }
    })
  return texts
    .toSorted((a, b) => compare(a.file, b.file) || compare(a.text, b.text))
    .map(({ file, text }, at, all) => (all[at - 1]?.file === file ? text : `// ${file}\n${text}`))
    .join('\n')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
