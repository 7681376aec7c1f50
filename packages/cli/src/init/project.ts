import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readText } from '../settings/read-text.ts'
import { type CompilerOptions, compilerOptions } from './compiler-options.ts'
import { notFound } from '../failure.ts'

/** What `init` knows of a project. */
export interface Project {
  readonly folder: string
  /** Names of what package.json asks for. */
  readonly installed: ReadonlySet<string>
  /** What it asks for of each. */
  readonly ranges: Readonly<Record<string, string | undefined>>
  /** What files are unless their names say otherwise; nothing if package.json does not say it. */
  readonly packageType: 'module' | 'commonjs' | undefined
  readonly isTypeScript: boolean
  /** Of TypeScript; nothing if it is not set up. */
  readonly compiler: CompilerOptions | undefined
  /** The major version of TypeScript that package.json asks for; 0 if it does not say. */
  readonly typescript: number
  /** Where package.json says that Prisma's schema is. */
  readonly prismaSchema: string | undefined
}

type Manifest = Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>

const kinds = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']

/** @throws Failed */
export function readProject(folder: string): Project {
  const manifest = manifestIn(folder)
  const installed = new Set(kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {})))
  const ranges = Object.fromEntries(
    kinds.flatMap((kind) =>
      Object.entries(manifest[kind] ?? {}).map(([name, range]) => [name, String(range)]),
    ),
  )
  const { type } = manifest as { readonly type?: unknown }
  const compiler = compilerOptions(folder)
  const files = [...namesIn(folder), ...namesIn(join(folder, 'src'))]
  const has = (ending: RegExp): boolean => files.some((name) => ending.test(name))
  const isSetUp = compiler !== undefined || installed.has('typescript') || has(/\.[cm]?tsx?$/)
  const schema = manifest['prisma']?.['schema']
  return {
    folder,
    installed,
    ranges,
    packageType: type === 'module' || type === 'commonjs' ? type : undefined,
    // Node runs TypeScript by itself; a project that has begun with require() or JavaScript goes on with it.
    isTypeScript: isSetUp || (type === 'module' && !has(/\.[cm]?jsx?$/)),
    compiler,
    typescript: majorOf(kinds.map((kind) => manifest[kind]?.['typescript'])),
    prismaSchema: typeof schema === 'string' ? schema : undefined,
  }
}

function majorOf(ranges: readonly unknown[]): number {
  const [range] = ranges.filter((each) => typeof each === 'string')
  return Number(/\d+/.exec(range ?? '')?.[0] ?? 0)
}

function manifestIn(folder: string): Manifest {
  try {
    return JSON.parse(readText(join(folder, 'package.json'))) as Manifest
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
