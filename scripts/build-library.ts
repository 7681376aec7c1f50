/**
 * Builds the package in the working directory into `dist/`: few files instead of one per source, for three readers.
 *
 * - `cjs/`: CommonJS. Node loads nothing else, so that whoever imports and whoever requires share one copy, and
 *   with it queues, declared namespaces and error classes.
 * - `node/`: what Node imports: a list of names, from `cjs/`.
 * - `esm/`: ES modules for bundlers (condition `module`), which drop what is not used.
 * - `types/` and, the same once more as those of CommonJS, `types-cjs/`.
 *
 * Modules called `package-files.ts` read files of the package. In their place the build puts what their
 * functions return now.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { cwd, execPath } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import {
  type OutputChunk,
  type OutputOptions,
  type Plugin,
  type RolldownBuild,
  rolldown,
} from 'rolldown'
import { type Entry, entriesOf, programsOf, readManifest } from './package/entries.ts'

const root = pathToFileURL(`${cwd()}/`)
const manifest = readManifest(root)
const entries = entriesOf(manifest)
const inRoot = (path: string): string => fileURLToPath(new URL(path, root))

/** What so many entries need is loaded at once, by all of them. */
const sharedBy = 4

async function build(): Promise<void> {
  rmSync(inRoot('dist'), { recursive: true, force: true })
  writeTypes()
  const required = entries.filter(({ commonJs }) => commonJs)
  await write(required, { format: 'cjs', dir: 'dist/cjs', ending: 'cjs' })
  const all = [...entries, ...programsOf(manifest)]
  for (const chunk of await write(all, { format: 'esm', dir: 'dist/esm', ending: 'js' })) {
    if (required.some(({ name }) => chunk.isEntry && name === chunk.name)) writeWrapper(chunk)
  }
}

interface Target {
  readonly format: 'cjs' | 'esm'
  readonly dir: string
  readonly ending: string
}

async function write(
  of: readonly Entry[],
  { format, dir, ending }: Target,
): Promise<OutputChunk[]> {
  await using bundle: RolldownBuild = await rolldown({
    input: Object.fromEntries(of.map(({ name, source }) => [name, inRoot(source)])),
    platform: 'node',
    external: (id) => id.startsWith('node:') || isDependency(id),
    plugins: [frozenFiles()],
    // Entries are kept whole; nothing else does anything when it is loaded.
    treeshake: { moduleSideEffects: false },
    // A machine that is busy is no reason to fail.
    checks: { bundlerTimings: false },
    onLog(level, log) {
      throw new Error(`${level}: ${log.message}`)
    },
  })
  const options: OutputOptions = {
    dir: inRoot(dir),
    format,
    exports: 'named',
    entryFileNames: `[name].${ending}`,
    chunkFileNames: `chunks/[name].${ending}`,
    // Sources are in the package.
    sourcemap: true,
    sourcemapExcludeSources: true,
    comments: { annotation: true, jsdoc: false, legal: false },
    codeSplitting: {
      groups: [
        { name: 'core', minShareCount: sharedBy },
        { name: 'driver', test: /\/src\/drivers\//, minShareCount: 2 },
      ],
    },
  }
  const { output } = await bundle.write(options)
  return output.filter((file) => file.type === 'chunk')
}

function isDependency(id: string): boolean {
  const { dependencies, peerDependencies } = manifest
  const names = Object.keys({ ...dependencies, ...peerDependencies })
  return names.some((name) => id === name || id.startsWith(`${name}/`))
}

/** Calls every function of a module that reads files, and gives a module that returns the same. */
function frozenFiles(): Plugin {
  return {
    name: 'frozen-files',
    async load(id) {
      if (!id.endsWith('/package-files.ts')) return null
      const functions = Object.entries(
        (await import(pathToFileURL(id).href)) as Record<string, () => unknown>,
      )
      const code = functions.map(
        ([name, read]) => `export function ${name}() { return ${JSON.stringify(read())} }`,
      )
      return { code: code.join('\n'), moduleType: 'js' }
    },
  }
}

/** What Node imports: the same objects that it requires. */
function writeWrapper({ name, exports: names, fileName }: OutputChunk): void {
  const cjs = `${'../'.repeat(fileName.split('/').length)}cjs/${name}.cjs`
  const lines = names.toSorted().map((each) => `export const ${each} = all.${each}`)
  const file = inRoot(`dist/node/${fileName}`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, [`import all from '${cjs}'`, '', ...lines, ''].join('\n'))
}

/** Twice: TypeScript reads from the nearest package.json of which kind a declaration is. */
function writeTypes(): void {
  const tsc = fileURLToPath(import.meta.resolve('../node_modules/typescript/bin/tsc'))
  const options = ['--emitDeclarationOnly', '--outDir', 'dist/types']
  execFileSync(execPath, [tsc, '-p', 'tsconfig.build.json', ...options], { stdio: 'inherit' })
  const isDeclaration = (path: string): boolean => !path.endsWith('.map')
  cpSync(inRoot('dist/types'), inRoot('dist/types-cjs'), { recursive: true, filter: isDeclaration })
  writeFileSync(inRoot('dist/types-cjs/package.json'), '{ "type": "commonjs" }\n')
}

await build()
