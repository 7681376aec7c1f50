/** What a package offers, as its package.json says: the one place that knows where dist/ and src/ correspond. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** What an entry of `exports` looks like; paths begin with `./`. */
interface Target {
  readonly types?: string
  readonly default?: string
  /** What bundlers take: modules they can shake. */
  readonly module?: string
  readonly import?: { readonly types: string; readonly default: string }
  readonly require?: { readonly types: string; readonly default: string }
}

export interface PackageManifest {
  readonly name: string
  readonly bin?: Readonly<Record<string, string>>
  /** Of ours: what a program starts in processes of their own. */
  readonly programs?: readonly string[]
  readonly version: string
  readonly engines?: { readonly node?: string }
  readonly dependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Target>>
}

/** One thing that can be imported. */
export interface Entry {
  /** As users write it: `holdfast/locks`. */
  readonly specifier: string
  /** As its files are called: `locks`, and `index` for the package itself. */
  readonly name: string
  /** From the folder of the package: `src/entries/locks.ts`. */
  readonly source: string
  /** Whether it can be loaded by `require` where that means CommonJS. */
  readonly commonJs: boolean
}

export function readManifest(root: URL): PackageManifest {
  return JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as PackageManifest
}

/** Every entry with types; the others are files. */
export function entriesOf(manifest: PackageManifest): readonly Entry[] {
  return Object.entries(manifest.exports).flatMap(([path, target]) => {
    const types = typeof target === 'string' ? undefined : (target.import?.types ?? target.types)
    if (typeof target === 'string' || types === undefined) return []
    return [
      {
        specifier: manifest.name + path.slice(1),
        name: path === '.' ? 'index' : path.slice(2),
        source: types.replace(/^\.\/dist\/(types\/)?/, 'src/').replace(/\.d\.ts$/, '.ts'),
        commonJs: target.require !== undefined,
      },
    ]
  })
}

/** The programs, as entries that nobody imports. */
export function programsOf({ bin = {}, programs = [] }: PackageManifest): readonly Entry[] {
  return [...Object.values(bin), ...programs].map((path) => {
    const name = /([^/]+)\.js$/.exec(path)?.[1] ?? ''
    return { specifier: '', name, source: `src/${name}.ts`, commonJs: false }
  })
}

/** The packages that we publish. */
export const packages = ['holdfast', 'cli', 'race', 'console', 'nestjs', 'eslint-plugin'] as const

export function packageRoot(name: (typeof packages)[number]): URL {
  return new URL(`../../packages/${name}/`, import.meta.url)
}

/** The source file of everything that can be imported from one of our packages. */
export function sourcesByName(): ReadonlyMap<string, string> {
  return new Map(
    packages
      .map(packageRoot)
      .flatMap((root) =>
        entriesOf(readManifest(root)).map(({ specifier, source }) => [
          specifier,
          fileURLToPath(new URL(source, root)),
        ]),
      ),
  )
}
