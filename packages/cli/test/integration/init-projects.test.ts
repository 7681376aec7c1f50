/** What `holdfast init` makes of projects that are not the usual one: it runs there as it stands, or says what is missing. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sample } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import ts from 'typescript-5'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { clients } from '../../src/init/clients.ts'
import { runCommand } from '../support/run-command.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href

/** In the repository, where git does not look, so that packages are found as in a project. */
let folder: string
beforeAll(() => {
  mkdirSync(join(root, 'generated'), { recursive: true })
  folder = mkdtempSync(join(root, 'generated', 'init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

let projects = 0

/** A project with these packages and files; what is no text is written as JSON. */
function project(
  packages: readonly string[],
  files: Readonly<Record<string, unknown>> = {},
  manifest: object = {},
): string {
  projects += 1
  const at = join(folder, String(projects))
  const dependencies = Object.fromEntries(packages.map((each) => [each, '*']))
  const all = { 'package.json': { name: 'fresh', dependencies, ...manifest }, ...files }
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(dirname(join(at, name)), { recursive: true })
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    writeFileSync(join(at, name), text)
  }
  return at
}

interface Told {
  readonly client: string
  readonly others: readonly string[]
  readonly file: string
  readonly content: string
  readonly next: readonly string[]
}

async function init(at: string, ...flags: readonly string[]): Promise<Told> {
  const { code, out, err } = await runCommand(['init', '--json', ...flags], {}, at)
  expect([err, code]).toEqual(['', flags.includes('--yes') ? 0 : 3])
  return JSON.parse(out) as Told
}

async function refused(at: string, ...flags: readonly string[]): Promise<Record<string, string>> {
  const before = readdirSync(at)
  const { code, err } = await runCommand(['init', '--json', '--yes', ...flags], {}, at)
  expect([code, readdirSync(at)]).toEqual([1, before])
  return (JSON.parse(err) as { error: Record<string, string> }).error
}

const module = { type: 'module' }
const withoutPrisma = clients.filter(({ name }) => name !== 'prisma')
const packagesOf = (name: string): readonly string[] => {
  const client = clients.find((each) => each.name === name)
  return client === undefined ? [] : [client.package, ...(client.needs ?? [])]
}

/** Runs a CommonJS program in the folder, with a database. */
async function runs(at: string, program: string): Promise<string> {
  const { directUrl } = await testDatabase()
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ['--import', fromSource, program], {
    cwd: at,
    env: { ...process.env, DATABASE_URL: directUrl },
  })
  return stdout
}

const main = (file: string): string => `
const { lockKey } = require('holdfast')
const { hf, ready } = require('./${file}')
Promise.resolve(ready)
  .then(() => hf.guard(lockKey('a', 1), async () => 'in'))
  .then((told) => { console.log(told); process.exit() })
`

describe('in CommonJS', () => {
  test.each(sample(withoutPrisma).map(({ name }) => name))(
    '%s: a file for require() runs',
    async (name) => {
      const at = project(packagesOf(name), { 'index.js': '' })
      const { file, content } = await init(at, '--yes', '--client', name)
      expect(file).toBe('holdfast.js')
      expect(content).not.toMatch(/^(?:import|export) /m)
      writeFileSync(join(at, 'main.js'), main(file))
      expect(await runs(at, 'main.js')).toBe('in\n')
    },
  )

  test.each(
    sample(withoutPrisma, 3, 1).flatMap(({ name }) => [
      [name, true] as const,
      [name, false] as const,
    ]),
  )('%s: TypeScript that becomes CommonJS runs, esModuleInterop %s', async (name, interop) => {
    const compilerOptions = { module: 'commonjs', target: 'es2022', esModuleInterop: interop }
    const at = project(packagesOf(name), { 'tsconfig.json': { compilerOptions } })
    const { file, content } = await init(at, '--yes', '--client', name)
    expect(file).toBe('holdfast.ts')
    const { outputText, diagnostics = [] } = ts.transpileModule(content, {
      compilerOptions: {
        module: ts.ModuleKind.CommonJS,
        target: ts.ScriptTarget.ES2022,
        esModuleInterop: interop,
      },
      reportDiagnostics: true,
    })
    expect(diagnostics.map(({ messageText }) => messageText)).toEqual([])
    rmSync(join(at, file))
    writeFileSync(join(at, 'compiled.js'), outputText)
    writeFileSync(join(at, 'main.js'), main('compiled.js'))
    expect(await runs(at, 'main.js')).toBe('in\n')
  })

  test('prisma: the generated client is loaded by require()', async () => {
    const output = join(root, 'examples/upload-quota/prisma/generated')
    const schema = `generator client {\n  provider = "prisma-client"\n  output = "${output}"\n}\n`
    const at = project(packagesOf('prisma'), { 'index.js': '', 'prisma/schema.prisma': schema })
    const { file, content } = await init(at, '--yes')
    expect(content).toMatch(/^const \{ PrismaClient \} = require\('.*\/generated\/client\.ts'\)$/m)
    writeFileSync(join(at, 'main.js'), main(file))
    expect(await runs(at, 'main.js')).toBe('in\n')
  })

  test('the settings may come from another file, and have comments', async () => {
    const base = '{ // ours\n "compilerOptions": { "module": "CommonJS", /* no */ }, }'
    const at = project(['postgres'], {
      'tsconfig.json': { extends: './base.json', compilerOptions: { strict: true } },
      'base.json': base,
    })
    expect((await init(at)).content).toContain("import postgres = require('postgres')")
    const other = project(['typeorm', 'pg'], {
      'tsconfig.json': {
        extends: './base',
        compilerOptions: { module: 'esnext', target: 'es2022' },
      },
      'base.json': base,
    })
    expect((await init(other)).content).toContain('await dataSource.initialize()')
  })

  test('the name of the file decides, if it says which', async () => {
    const at = project(['typeorm', 'pg'], { 'index.js': '' })
    expect((await init(at, '--file', 'a.mjs')).content).toContain('await dataSource.initialize()')
    const esm = project(['typeorm', 'pg'], { 'index.js': '' }, module)
    expect((await init(esm)).file).toBe('holdfast.js')
    expect((await init(esm)).content).toContain("import { DataSource } from 'typeorm'")
    expect((await init(esm, '--file', 'a.cjs')).content).toContain("require('typeorm')")
    const typed = project(['kysely', 'pg'], {}, module)
    expect((await init(typed)).content).toContain('export interface Database')
    expect((await init(typed, '--file', 'a.js')).content).not.toContain('interface')
  })
})

describe('what else has to be installed', () => {
  test.each(['knex', 'sequelize', 'typeorm'])(
    '%s without pg: the first step is pg',
    async (name) => {
      const { next } = await init(project([name, 'holdfast'], {}, module), '--yes')
      expect(next[0]).toBe('npm install pg')
      const all = [name, 'holdfast', 'pg', '@holdfast/cli']
      const { next: more } = await init(project(all, {}, module), '--yes')
      expect(more[0]).not.toContain('npm install')
    },
  )

  test('types of pg are for TypeScript', async () => {
    const typed = await init(project(['pg', 'holdfast'], {}, module), '--yes')
    // What `npx holdfast` is, which the next steps call.
    expect(typed.next[0]).toBe('npm install --save-dev @holdfast/cli @types/pg')
    const plain = await init(project(['pg', 'holdfast'], { 'index.js': '' }), '--yes')
    expect(plain.next.join('\n')).not.toContain('@types')
  })
})

describe('databases of others', () => {
  test.each([
    ['mysql2', ['mysql2']],
    ['better-sqlite3', ['better-sqlite3']],
    ['mysql2', ['knex', 'mysql2']],
    ['better-sqlite3', ['drizzle-orm', 'better-sqlite3']],
    ['mongoose', ['mongoose', 'holdfast']],
    ['@mikro-orm/mysql', ['@mikro-orm/core', '@mikro-orm/mysql']],
  ])('%s is named, and nothing is written: %j', async (named, packages) => {
    const { code, message, next } = await refused(project(packages, {}, module))
    expect(code).toBe('DATABASE_UNSUPPORTED')
    expect(message).toContain(named)
    expect(next).toContain('--client')
    // What there is for MariaDB and MySQL is named, and where it says how.
    expect(next?.includes('holdfast/mysql')).toBe(packages.includes('mysql2'))
  })

  test('Prisma on another database', async () => {
    const schema =
      'generator client {\n provider = "prisma-client"\n output = "../out"\n}\ndatasource db {\n provider = "sqlite"\n}\n'
    const packages = ['@prisma/client', '@prisma/adapter-pg', 'pg']
    const at = project(packages, { 'prisma/schema.prisma': schema }, module)
    expect(await refused(at)).toMatchObject({
      code: 'DATABASE_UNSUPPORTED',
      message: expect.stringContaining('prisma/schema.prisma is for sqlite'),
    })
  })

  test('beside PostgreSQL they do not matter, and --client is believed', async () => {
    expect(await init(project(['pg', 'better-sqlite3'], {}, module))).toMatchObject({
      client: 'pg',
    })
    expect(await init(project(['mysql2'], {}, module), '--client', 'pg')).toMatchObject({
      next: expect.arrayContaining([expect.stringMatching(/^npm install holdfast pg/)]),
    })
  })
})

describe('several clients', () => {
  const packages = ['drizzle-orm', 'kysely', 'pg', 'holdfast', '@types/pg']

  test('it says which it took, and how to take another', async () => {
    const at = project(packages, {}, module)
    expect(await init(at)).toMatchObject({ client: 'drizzle', others: ['kysely'] })
    const asked = await runCommand(['init'], {}, at)
    const choice = 'package.json has kysely as well: for that, add --client kysely.'
    expect(asked.out).toContain(choice)
    const written = await runCommand(['init', '--yes'], {}, at)
    expect(written.out).toContain(
      'package.json has kysely as well: for that, remove holdfast.ts and add --client kysely.',
    )
    const named = await runCommand(['init', '--client', 'kysely', '--file', 'b.ts'], {}, at)
    expect(named.out).not.toContain('as well')
  })

  test('one that another brings along is not a choice', async () => {
    expect(await init(project(['drizzle-orm', 'pg'], {}, module))).toMatchObject({ others: [] })
    expect(await init(project(['knex', 'pg'], {}, module))).toMatchObject({
      client: 'knex',
      others: [],
    })
    expect(await init(project(['drizzle-orm', 'pg', 'postgres'], {}, module))).toMatchObject({
      client: 'drizzle',
      others: ['drizzle-postgres-js'],
    })
  })
})

describe('Prisma, wherever its schema is', () => {
  const generator = (output: string): string =>
    `generator zod {\n  provider = "zod-prisma"\n  output   = "./zod"\n}\ngenerator client {\n  provider = "prisma-client"\n  output   = "${output}"\n}\n`
  const packages = ['@prisma/client', '@prisma/adapter-pg']
  const at = (files: Record<string, unknown>, manifest: object = {}): string =>
    project(packages, { ...files, 'src/index.ts': '' }, { ...module, ...manifest })

  test.each([
    [
      'package.json',
      { 'db/app.prisma': generator('./out') },
      { prisma: { schema: 'db/app.prisma' } },
    ],
    [
      'prisma.config.ts',
      {
        'db/app.prisma': generator('./out'),
        'prisma.config.ts':
          "import { defineConfig } from 'prisma/config'\nexport default defineConfig({ schema: 'db/app.prisma' })",
      },
      {},
    ],
    [
      'prisma.config.ts with path.join',
      {
        'db/app.prisma': generator('./out'),
        'prisma.config.ts':
          "import path from 'node:path'\nexport default {\n  schema: path.join('db', 'app.prisma'),\n}",
      },
      {},
    ],
    [
      'a folder that package.json names',
      {
        'db/models/user.prisma': 'model A {\n id Int @id\n}',
        'db/main.prisma': generator('./out'),
      },
      { prisma: { schema: './db' } },
    ],
    [
      'prisma/schema/',
      {
        'prisma/schema/main.prisma': generator('../../db/out'),
        'prisma/schema/user.prisma': 'model A {\n id Int @id\n}',
      },
      {},
    ],
    ['prisma/schema.prisma', { 'prisma/schema.prisma': generator('../db/out') }, {}],
  ])('%s', async (_, files, manifest) => {
    const { content } = await init(at(files, manifest))
    expect(content).toContain("import { PrismaClient } from '../db/out/client.ts'")
  })
})

describe('the next command', () => {
  const url = 'DATABASE_URL=postgres://localhost/x\n'

  test('with a .env: the command line reads it, and the program is told how to', async () => {
    const { directUrl } = await testDatabase()
    const at = project(['pg', 'holdfast'], { '.env': `DATABASE_URL=${directUrl}\n` }, module)
    const { next } = await init(at, '--yes')
    expect(next.join('\n')).toContain('node --env-file=.env')
    expect(next.join('\n')).not.toContain('export DATABASE_URL')
    const line = next.find((each) => each.startsWith('npx holdfast migrate')) ?? ''
    const words = (line.split('#')[0] as string).trim().split(' ').slice(2)
    expect(await runCommand(words, {}, at)).toMatchObject({ code: 0 })
  })

  test('a package that loads .env itself needs no flag', async () => {
    const at = project(['pg', 'dotenv'], { '.env': url }, module)
    expect((await init(at, '--yes')).next.join('\n')).not.toContain('--env-file')
  })

  test('in a package of a repository, the .env above it', async () => {
    const at = project([], { '.git/HEAD': '', '.env': url })
    mkdirSync(join(at, 'packages/a'), { recursive: true })
    writeFileSync(join(at, 'packages/a/package.json'), '{"dependencies":{"pg":"*"}}')
    expect((await init(join(at, 'packages/a'), '--yes')).next.join('\n')).toContain(
      'node --env-file=../../.env',
    )
  })

  test('without one: the database URL comes first', async () => {
    for (const files of [{}, { '.env': 'OTHER=1\n' }]) {
      const all = ['pg', 'holdfast', '@types/pg', '@holdfast/cli']
      const { next } = await init(project(all, files, module), '--yes')
      expect(next[0]).toMatch(/^export DATABASE_URL=postgres:\/\/\S+ +# or in \.env$/)
      expect(next.join('\n')).not.toContain('--env-file')
    }
  })
})

test('everything that init writes is in the folder it was asked in', () => {
  expect(existsSync(join(root, 'holdfast.js'))).toBe(false)
})
