/** The packed types, with every way in which TypeScript looks for modules. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript-5'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import { type PackedProject, packedProject } from '../support/packed-project.ts'

const entries = entriesOf(readManifest(packageRoot('holdfast'))).map(({ specifier }) => specifier)
const endings = ['ts', 'cts', 'mts'] as const
let project: PackedProject

const usage = `
import { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
import { fromPg, type PgClient } from 'holdfast/drivers/pg'
declare const pool: { connect(): Promise<PgClient> }
const hf = createHoldfast(fromPg(pool))
export const uploaded: Promise<{ byteSize: number }> = hf.guard(
  lockKey('image-upload', 'user-1'),
  async (tx) => {
    await tx.query('SELECT 1')
    return { byteSize: 1 }
  },
)
export const busy = (error: unknown): boolean => isHoldfastError(error, 'LOCK_TIMEOUT')
`
const all = entries.map((entry, at) => `import * as e${at} from '${entry}'\nvoid e${at}\n`).join('')
const wrongly = usage.replace('byteSize: 1', 'byteSize: "one"')
const notANumber = "Type 'string' is not assignable to type 'number'"

beforeAll(async () => {
  project = await packedProject(['@types'])
  for (const ending of endings) {
    await project.write({ [`right.${ending}`]: all + usage, [`wrong.${ending}`]: wrongly })
  }
})

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

/** The libraries of TypeScript and Node are the same in every program: most of the time goes into reading them. */
const libraries = new Map<string, ts.SourceFile | undefined>()

function program(options: ts.CompilerOptions, files: readonly string[]): ts.Program {
  const host = ts.createCompilerHost(options)
  const read = host.getSourceFile.bind(host)
  host.getCurrentDirectory = () => project.folder
  host.getSourceFile = (name, how, ...rest) => {
    if (!/\/lib\.[^/]*\.d\.ts$|\/@types\//.test(name)) return read(name, how, ...rest)
    const format = typeof how === 'object' ? how.impliedNodeFormat : undefined
    const key = `${name} ${format}`
    if (!libraries.has(key)) libraries.set(key, read(name, how, ...rest))
    return libraries.get(key)
  }
  return ts.createProgram({ rootNames: [...files], options, host })
}

const { ModuleKind, ModuleResolutionKind } = ts

test.each([
  ['node10', 'ts', ModuleKind.CommonJS, ModuleResolutionKind.Node10],
  ['node16', 'cts', ModuleKind.Node16, ModuleResolutionKind.Node16],
  ['node16', 'mts', ModuleKind.Node16, ModuleResolutionKind.Node16],
  ['node18', 'cts', ModuleKind.Node18, ModuleResolutionKind.Node16],
  ['node18', 'mts', ModuleKind.Node18, ModuleResolutionKind.Node16],
  ['nodenext', 'cts', ModuleKind.NodeNext, ModuleResolutionKind.NodeNext],
  ['nodenext', 'mts', ModuleKind.NodeNext, ModuleResolutionKind.NodeNext],
  ['bundler', 'ts', ModuleKind.ESNext, ModuleResolutionKind.Bundler],
] as const)(
  'U5: TypeScript 5.9, %s, in a .%s file',
  { timeout: 300_000 },
  (_, ending, module, moduleResolution) => {
    const [right, wrong] = [`right.${ending}`, `wrong.${ending}`].map((name) =>
      join(project.folder, name),
    ) as [string, string]
    const options: ts.CompilerOptions = {
      module,
      moduleResolution,
      strict: true,
      noEmit: true,
      target: ts.ScriptTarget.ES2022,
      types: ['node'],
    }
    const checked = program(options, [right, wrong])
    const messages = (file?: ts.SourceFile): string[] =>
      checked
        .getSemanticDiagnostics(file)
        .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    expect(checked.getOptionsDiagnostics().map(({ messageText }) => messageText)).toEqual([])
    expect(messages(checked.getSourceFile(right))).toEqual([])
    expect(messages(checked.getSourceFile(wrong)).join('\n')).toContain(notANumber)
    // Not `skipLibCheck`: what we declare must be right where nothing of it is used.
    const ours = checked
      .getSourceFiles()
      .filter(({ fileName }) => fileName.includes('/holdfast/dist/'))
    expect(ours.length).toBeGreaterThan(100)
    if (module === ModuleKind.NodeNext) expect(ours.flatMap(messages)).toEqual([])
  },
)

test.each(endings)('TypeScript 7, in a .%s file', { timeout: 300_000 }, async (ending) => {
  const tsc = fileURLToPath(new URL('../../../../node_modules/typescript/bin/tsc', import.meta.url))
  const how =
    ending === 'ts'
      ? ['--module', 'esnext', '--moduleResolution', 'bundler']
      : ['--module', 'nodenext']
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--types', 'node', ...how]
  const checked = project.run('node', [tsc, ...options, `right.${ending}`, `wrong.${ending}`])
  const { stdout } = await checked.then(
    () => ({ stdout: '' }),
    (error: { readonly stdout: string }) => error,
  )
  const lines = stdout.split('\n').filter((line) => line.includes('error TS'))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(new RegExp(`^wrong\\.${ending}`))
  expect(stdout).toContain(notANumber)
})
