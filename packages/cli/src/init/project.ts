import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { notFound } from '../command.ts'
import { type CompilerOptions, compilerOptions } from './compiler-options.ts'

/** What `init` knows of a project. */
export interface Project {
  readonly folder: string
  /** Names of what package.json asks for. */
  readonly installed: ReadonlySet<string>
  /** Files are ES modules unless their names say otherwise. */
  readonly isModule: boolean
  readonly isTypeScript: boolean
  /** Of TypeScript; nothing if it is not set up. */
  readonly compiler: CompilerOptions | undefined
  /** Where package.json says that Prisma's schema is. */
  readonly prismaSchema: string | undefined
}

type Manifest = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>

const kinds = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']

/** @throws Failed */
export function readProject(folder: string): Project {
  const manifest = manifestIn(folder)
  const installed = new Set(kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {})))
  const isModule = (manifest as { readonly type?: unknown }).type === 'module'
  const compiler = compilerOptions(folder)
  const files = [...namesIn(folder), ...namesIn(join(folder, 'src'))]
  const has = (ending: RegExp): boolean => files.some((name) => ending.test(name))
  const isSetUp = compiler !== undefined || installed.has('typescript') || has(/\.[cm]?tsx?$/)
  const schema = manifest['prisma']?.['schema']
  return {
    folder,
    installed,
    isModule,
    // Node runs TypeScript by itself; a project that has begun with require() or JavaScript goes on with it.
    isTypeScript: isSetUp || (isModule && !has(/\.[cm]?jsx?$/)),
    compiler,
    prismaSchema: typeof schema === 'string' ? schema : undefined,
  }
}

function manifestIn(folder: string): Manifest {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  } catch {
    throw notFound(
      'There is no package.json here that can be read.',
      'Run it in the folder of your project, or run `npm init` first.',
    )
  }
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}
