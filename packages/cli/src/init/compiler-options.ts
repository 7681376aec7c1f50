import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { readText } from '../settings/read-text.ts'

/** Of `compilerOptions`, what decides how a file has to be written. */
export interface CompilerOptions {
  readonly module?: string
  readonly moduleResolution?: string
  readonly target?: string
  readonly types?: readonly string[]
  readonly esModuleInterop?: boolean
  readonly allowSyntheticDefaultImports?: boolean
  readonly verbatimModuleSyntax?: boolean
  readonly erasableSyntaxOnly?: boolean
  readonly allowImportingTsExtensions?: boolean
  readonly rewriteRelativeImportExtensions?: boolean
}

interface Settings {
  readonly extends?: string | readonly string[]
  readonly compilerOptions?: CompilerOptions
}

/** As many files may extend each other. */
const mostFiles = 10

/** The project's options for TypeScript, with what they extend; nothing if there is no tsconfig.json. */
export function compilerOptions(folder: string): CompilerOptions | undefined {
  const file = join(folder, 'tsconfig.json')
  return existsSync(file) ? optionsIn(file, mostFiles) : undefined
}

function optionsIn(file: string, left: number): CompilerOptions {
  const settings = settingsIn(file)
  const bases = left === 0 ? [] : [settings.extends ?? []].flat()
  const extended = bases.flatMap((base) => {
    const found = fileOf(base, file)
    return found === undefined ? [] : [optionsIn(found, left - 1)]
  })
  return Object.assign({}, ...extended, settings.compilerOptions) as CompilerOptions
}

/** A path, with or without its ending, or a package. */
function fileOf(base: string, from: string): string | undefined {
  if (/^\.{0,2}\//.test(base)) {
    const path = resolve(dirname(from), base)
    return [path, `${path}.json`].find((each) => each.endsWith('.json') && existsSync(each))
  }
  const { resolve: find } = createRequire(from)
  for (const name of [base, `${base}.json`, `${base}/tsconfig.json`]) {
    try {
      const found = find(name)
      if (found.endsWith('.json')) return found
    } catch {
      // Under another of its names, or not installed.
    }
  }
  return undefined
}

/** JSON with comments and commas too many. What cannot be read says nothing. */
function settingsIn(file: string): Settings {
  try {
    const text = readText(file)
      .replaceAll(
        /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g,
        (_, kept?: string) => kept ?? ' ',
      )
      .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, kept?: string) => kept ?? '')
    return JSON.parse(text) as Settings
  } catch {
    return {}
  }
}
