import type { Client } from './clients.ts'
import type { CompilerOptions } from './compiler-options.ts'
import type { Project } from './project.ts'

/**
 * How a file loads modules: as an ES module; in the same words, by TypeScript that makes CommonJS of them; by
 * `import x = require('x')`, where TypeScript may not change the words; by `require()`, where Node reads them itself.
 */
export type Style = 'esm' | 'compiled' | 'import-require' | 'require'

type Known = Pick<Project, 'packageType' | 'compiler' | 'typescript'>

/** TypeScript 6 has other defaults. */
const newDefaults = 6

export function isTyped(file: string): boolean {
  return /\.[cm]?ts$/.test(file)
}

export function styleOf(project: Known, file: string): Style {
  const { compiler, packageType } = project
  if (/\.m[jt]s$/.test(file)) return 'esm'
  const isCommon = /\.c[jt]s$/.test(file)
  if (!isTyped(file)) return isCommon || packageType !== 'module' ? 'require' : 'esm'
  // Without options it is Node that runs the file. It sees by the words what it is, unless package.json says so.
  if (compiler === undefined) return isCommon || packageType === 'commonjs' ? 'require' : 'esm'
  if (!isCommon && !becomesCommonJs(project, compiler)) return 'esm'
  const isVerbatim =
    compiler.verbatimModuleSyntax === true || /^preserve$/i.test(compiler.module ?? '')
  return isVerbatim ? 'import-require' : 'compiled'
}

function becomesCommonJs({ packageType, typescript }: Known, options: CompilerOptions): boolean {
  const module = options.module?.toLowerCase()
  if (module === undefined) return typescript < newDefaults && !isSince(options.target, 2015)
  if (isNode(module)) return packageType !== 'module'
  return /^(?:commonjs|none|umd|amd|system)$/.test(module)
}

/** Whether it may wait while it is loaded: CommonJS cannot, nor can it load what does, nor does every target have it. */
export function awaitsIn(project: Known, file: string): boolean {
  const { compiler, packageType, typescript } = project
  if (styleOf(project, file) !== 'esm' || packageType === 'commonjs') return false
  if (!isTyped(file) || compiler === undefined) return true
  const module = compiler.module?.toLowerCase() ?? (typescript < newDefaults ? 'es2015' : 'esnext')
  if (isNode(module)) return isSince(compiler.target ?? 'esnext', 2017)
  if (!/^(?:es2022|esnext|preserve)$/.test(module)) return false
  return isSince(compiler.target ?? (typescript < newDefaults ? 'es5' : 'esnext'), 2017)
}

/** Whether a CommonJS module that is a function can be imported under a name: TypeScript may not make a default of it. */
export function hasDefaults({ compiler, typescript }: Known): boolean {
  if (compiler === undefined) return true
  const { module = '', moduleResolution = '', allowSyntheticDefaultImports } = compiler
  if (typescript >= newDefaults || /^bundler$/i.test(moduleResolution)) return true
  const isImplied = isNode(module.toLowerCase()) || /^preserve$/i.test(module)
  return allowSyntheticDefaultImports ?? compiler.esModuleInterop ?? isImplied
}

/** Whether the file has to ask for the types of Node itself. */
export function lacksNodeTypes({ compiler, typescript }: Known, file: string): boolean {
  if (compiler === undefined || !isTyped(file)) return false
  const { types } = compiler
  if (types === undefined) return typescript >= newDefaults
  return !types.includes('node') && !types.includes('*')
}

/** Neither of the words for CommonJS is allowed. */
export function isImpossible(project: Known, file: string): boolean {
  return (
    styleOf(project, file) === 'import-require' && project.compiler?.erasableSyntaxOnly === true
  )
}

/** The ending of a file that nobody has named; in CommonJS, one that is typed for those that load it. */
export function usualEnding(project: Known & Pick<Project, 'isTypeScript'>): 'ts' | 'mts' | 'js' {
  if (!project.isTypeScript) return 'js'
  const isUntyped = styleOf(project, 'a.ts') === 'require'
  return isUntyped || isImpossible(project, 'a.ts') ? 'mts' : 'ts'
}

/** What is not usual about the file, and why. */
export function moduleNotes(client: Client, project: Project, file: string): string[] {
  const style = styleOf(project, file)
  const isRequired = style === 'import-require'
  const isOther = file.endsWith('.mts') && usualEnding(project) === 'mts'
  const isDefault = client.imports.some(({ is }) => is === 'function') && style === 'esm'
  return [
    ...(isRequired
      ? [
          "The file uses import x = require('x') and export =: TypeScript takes nothing else in a CommonJS file with verbatimModuleSyntax, or with module preserve.",
        ]
      : []),
    ...(isOther
      ? [
          'The file is an ES module (.mts): this project is CommonJS, and TypeScript that Node runs, or erasableSyntaxOnly, has no typed CommonJS. require() loads it.',
          ...(['jest', 'ts-jest'].some((name) => project.installed.has(name))
            ? [
                'Jest with its usual configuration does not load ES modules: if tests need the file, write it as JavaScript in CommonJS with --file holdfast.js.',
              ]
            : []),
        ]
      : []),
    ...(isDefault && !hasDefaults(project)
      ? ['Set "esModuleInterop": true in tsconfig.json: postgres cannot be imported without it.']
      : []),
  ]
}

function isNode(module: string): boolean {
  return /^node(?:\d+|next)$/.test(module)
}

/** ES6 is of 2015. */
function isSince(target: string | undefined, year: number): boolean {
  const [, given = '0'] = /^es(\d+|next)$/i.exec(target ?? '') ?? []
  if (/next/i.test(given)) return true
  return (Number(given) < 2000 ? 2009 + Number(given) : Number(given)) >= year
}
