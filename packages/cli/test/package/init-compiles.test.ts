/**
 * What `holdfast init` writes compiles and runs, however the project loads its modules: every kind of package, of
 * tsconfig.json and of file, for every client. With TypeScript 5.9 and 7, on the types and programs that are packed.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sample } from '@holdfast/testkit'
import ts from 'typescript-5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { clients } from '../../src/init/clients.ts'
import { runCommand } from '../support/run-command.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** In the repository, where git does not look, so that packages are found as in a project. */
let folder: string
beforeAll(() => {
  mkdirSync(join(root, 'generated'), { recursive: true })
  folder = mkdtempSync(join(root, 'generated', 'init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const types = ['module', 'commonjs', 'absent'] as const
const modules = ['none', 'commonjs', 'nodenext', 'preserve'] as const
const endings = ['ts', 'mts', 'cts'] as const
type Kind = readonly [
  type: (typeof types)[number],
  module: (typeof modules)[number],
  verbatim: boolean,
]

const kinds = types.flatMap((type) =>
  modules.flatMap((module): Kind[] =>
    // Without settings there is nothing to be verbatim about.
    module === 'none'
      ? [[type, module, false]]
      : [
          [type, module, false],
          [type, module, true],
        ],
  ),
)

/** As Prisma generates it, without what it does. */
const prisma = `// @ts-nocheck
export class PrismaClient {
  readonly options: { readonly adapter: unknown }
  constructor(options: { readonly adapter: unknown }) {
    this.options = options
  }
  async $queryRawUnsafe(_text: string, ..._values: unknown[]): Promise<unknown> {
    return []
  }
  async $executeRawUnsafe(_text: string, ..._values: unknown[]): Promise<number> {
    return 0
  }
  async $transaction(body: (tx: PrismaClient) => Promise<unknown>, _options?: object): Promise<unknown> {
    return await body(this)
  }
}
`

/** What `tsc --init` of TypeScript 5.9 writes beside the module, so far as it can matter to a file. */
const usual = {
  target: 'esnext',
  types: [],
  declaration: true,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  isolatedModules: true,
  noUncheckedSideEffectImports: true,
  moduleDetection: 'force',
  skipLibCheck: true,
}

function project(
  [type, module, verbatim]: Kind,
  name = [type, module, verbatim].join('-'),
): string {
  const at = join(folder, name)
  mkdirSync(join(at, 'out'), { recursive: true })
  const packages = clients.flatMap(({ package: name, needs = [], also = [] }) => [
    name,
    ...needs,
    ...also,
  ])
  const files: Record<string, unknown> = {
    'package.json': {
      name: 'fresh',
      dependencies: Object.fromEntries(packages.map((name) => [name, '*'])),
      ...(type === 'absent' ? {} : { type }),
    },
    'prisma/schema.prisma':
      'generator client {\n  provider = "prisma-client"\n  output = "../out"\n}\n',
    ...(module === 'none'
      ? {}
      : {
          'tsconfig.json': {
            compilerOptions: {
              ...usual,
              module,
              // As it has been written since TypeScript 2; the others imply it.
              ...(module === 'commonjs' ? { esModuleInterop: true } : {}),
              verbatimModuleSyntax: verbatim,
              outDir: 'dist',
              rootDir: '.',
            },
            include: ['*'],
          },
        }),
  }
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true })
    writeFileSync(join(at, name), typeof content === 'string' ? content : JSON.stringify(content))
  }
  return at
}

const run = promisify(execFile)

/** Declarations of packages are the same in every program: most of the time goes into reading them. */
const read = new Map<string, ts.SourceFile | undefined>()

/** With TypeScript 5.9, into `dist`: what it has to say, and what it wrote. */
function compiled(at: string): string[] {
  const config = ts.getParsedCommandLineOfConfigFile(join(at, 'tsconfig.json'), undefined, {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => expect(messageText).toBe(''),
  })
  const { options, fileNames } = config as ts.ParsedCommandLine
  const host = ts.createCompilerHost(options)
  const getSourceFile = host.getSourceFile.bind(host)
  host.getSourceFile = (name, how, ...rest) => {
    if (!/\.d\.[cm]?ts$/.test(name)) return getSourceFile(name, how, ...rest)
    const key = `${name} ${typeof how === 'object' ? how.impliedNodeFormat : ''}`
    if (!read.has(key)) read.set(key, getSourceFile(name, how, ...rest))
    return read.get(key)
  }
  const program = ts.createProgram({ rootNames: fileNames, options, host })
  const { diagnostics } = program.emit()
  return [...ts.getPreEmitDiagnostics(program), ...diagnostics].map(
    ({ file, code, messageText }) =>
      `${file?.fileName.slice(at.length + 1)}: TS${code} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
  )
}

describe.each(sample(kinds, 5))('type %s, module %s, verbatimModuleSyntax %s', (...kind) => {
  const [, module] = kind
  const written: string[] = []
  let at: string

  beforeAll(async () => {
    at = project(kind)
    for (const { name } of clients) {
      for (const ending of endings) {
        const file = `hf-${name}.${ending}`
        const flags = ['--client', name, '--file', file, '--yes', '--json']
        await runCommand(['init', ...flags], {}, at)
        written.push(file)
      }
    }
    writeFileSync(join(at, 'out/client.ts'), prisma)
  })

  test.skipIf(module === 'none')('compiles with TypeScript 5.9', () => {
    expect(compiled(at)).toEqual([])
  })

  test.skipIf(module === 'none')('compiles with TypeScript 7', async () => {
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = await run(process.execPath, [
      tsc,
      '-p',
      at,
      '--noEmit',
      '--pretty',
      'false',
    ]).catch((error: { readonly stdout: string }) => error)
    expect(stdout).toBe('')
  })

  test('runs', async () => {
    const place = module === 'none' ? at : join(at, 'dist')
    // What TypeScript made of the files is not always what package.json says: a bundler, or another folder, is between.
    const made = { commonjs: 'commonjs', preserve: 'module' }[module as string]
    if (made !== undefined)
      writeFileSync(join(place, 'package.json'), JSON.stringify({ type: made }))
    const files = written
      .filter((name) => !name.startsWith('hf-prisma'))
      .map((name) => (module === 'none' ? name : name.replace(/ts$/, 'js')))
    writeFileSync(
      join(place, 'main.mjs'),
      `import { lockKey } from 'holdfast'
for (const file of ${JSON.stringify(files)}) {
  try {
    const loaded = await import('./' + file)
    const { hf, ready } = loaded.hf === undefined ? loaded.default : loaded
    await ready
    console.log(file, await hf.guard(lockKey('a', 1), async () => 'in'))
  } catch (error) {
    console.log(file, String(error))
  }
}
process.exit()
`,
    )
    const { directUrl } = await testDatabase()
    const { stdout } = await run(process.execPath, [join(place, 'main.mjs')], {
      cwd: at,
      env: { ...process.env, DATABASE_URL: directUrl },
    })
    expect(stdout).toBe(files.map((file) => `${file} in\n`).join(''))
  })
})

test.each(clients.map(({ name }) => name))(
  '%s alone: nothing else has to bring the types of Node',
  async (name) => {
    const at = project(['commonjs', 'nodenext', true], `alone-${name}`)
    writeFileSync(join(at, 'out/client.ts'), prisma)
    const { code, out } = await runCommand(['init', '--client', name, '--yes'], {}, at)
    expect(code).toBe(0)
    expect(out).toContain("The file uses import x = require('x') and export =")
    expect(compiled(at)).toEqual([])
    expect(readFileSync(join(at, 'holdfast.ts'), 'utf8')).toMatch(/^export = \{ .*\bhf \}$/m)
  },
)
