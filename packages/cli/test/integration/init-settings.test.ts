/** What `holdfast init` takes from the settings of the command line, and what it says that it did not take. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clients } from '../../src/init/clients.ts'
import { runCommand } from '../support/run-command.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

let projects = 0

function project(
  packages: readonly string[],
  files: Readonly<Record<string, string>> = {},
  type: 'module' | 'commonjs' = 'module',
): string {
  projects += 1
  const at = join(folder, String(projects))
  const dependencies = Object.fromEntries(packages.map((each) => [each, '*']))
  const all = { 'package.json': JSON.stringify({ type, dependencies }), ...files }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(at, name)), { recursive: true })
    writeFileSync(join(at, name), text)
  }
  return at
}

interface Told {
  readonly client: string
  readonly file: string
  readonly content: string
  readonly notes: readonly string[]
  readonly next: readonly string[]
}

async function init(
  at: string,
  flags: readonly string[] = [],
  environment: Record<string, string> = {},
): Promise<Told> {
  const { out, err } = await runCommand(['init', '--json', ...flags], environment, at)
  expect(err).toBe('')
  return JSON.parse(out) as Told
}

describe('the schema', () => {
  const wanted = "createHoldfast(fromPg(pool), { schema: 'shop' })"
  const config = '{"schema":"shop"}'

  test.each<[string, Record<string, string>, string[], Record<string, string>]>([
    ['--schema', {}, ['--schema', 'shop'], {}],
    ['HOLDFAST_SCHEMA', {}, [], { HOLDFAST_SCHEMA: 'shop' }],
    ['.env', { '.env': 'HOLDFAST_SCHEMA=shop\n' }, [], {}],
    ['holdfast.config.json', { 'holdfast.config.json': config }, [], {}],
    ['--config', { 'other.json': config }, ['--config', 'other.json'], {}],
  ])('of %s is written', async (name, files, flags, environment) => {
    const at = project(['pg'], files)
    const all = flags.map((flag) => (flag === 'other.json' ? join(at, flag) : flag))
    const { content, next } = await init(at, all, environment)
    expect(content).toContain(wanted)
    // What the commands would not find by themselves is in the next step.
    expect(next.join('\n').includes('migrate --schema shop ')).toBe(name === '--schema')
    expect(next.join('\n').includes('doctor --schema shop ')).toBe(name === '--schema')
  })

  test.each(clients.map(({ name }) => name))('is written for %s', async (name) => {
    const { content } = await init(project([]), ['--client', name, '--schema', 'shop'])
    expect(content).toMatch(
      /^export const hf = createHoldfast\(from\w+\(.*\), \{ schema: 'shop' \}\)$/m,
    )
  })

  test('is left out if it is the usual one', async () => {
    for (const flags of [[], ['--schema', 'holdfast']])
      expect((await init(project(['pg']), flags)).content).toContain(
        'createHoldfast(fromPg(pool))\n',
      )
  })

  test('is quoted, in the file and in the next step', async () => {
    const { content, next } = await init(project(['pg']), ['--schema', "o'b\\r"])
    expect(content).toContain(String.raw`{ schema: 'o\'b\\r' }`)
    expect(next.join('\n')).toContain(String.raw`migrate --schema 'o'\''b\r' `)
  })

  test('that cannot be one is refused', async () => {
    const { code, err } = await runCommand(['init', '--schema', 'public'], {}, project(['pg']))
    expect([code, err]).toEqual([2, expect.stringContaining('--schema must be one of its own')])
  })
})

describe('what is not taken is told', () => {
  test('Kysely on postgres.js', async () => {
    const at = project(['kysely', 'kysely-postgres-js', 'postgres', 'holdfast'])
    const { client, notes } = await init(at)
    expect(client).toBe('postgres')
    expect(notes).toEqual([expect.stringMatching(/kysely .*kysely-postgres-js.*--client kysely/)])
    expect((await runCommand(['init'], {}, at)).out).toContain(notes[0])
    const named = await init(at, ['--client', 'kysely'])
    expect([named.notes, named.next[0]]).toEqual([[], 'npm install pg'])
  })

  test.each([
    ['drizzle-orm', 'knex'],
    ['kysely', 'knex'],
    ['@prisma/client', 'knex'],
  ])('%s without what it needs, beside %s', async (name, other) => {
    const { client, notes } = await init(project([name, other]))
    expect(client).toBe(other)
    expect(notes).toEqual([expect.stringContaining(`package.json has ${name}`)])
  })

  test('nothing is told of a client that was taken, in one of its ways', async () => {
    expect((await init(project(['drizzle-orm', 'postgres']))).notes).toEqual([])
    expect((await init(project(['kysely', 'pg']))).notes).toEqual([])
  })
})

describe('Prisma that is not there yet', () => {
  test('its commands are named, in their order', async () => {
    const { next } = await init(project(['holdfast']), ['--client', 'prisma', '--yes'])
    expect(next.slice(0, 4)).toEqual([
      'npm install @prisma/client @prisma/adapter-pg pg',
      'npm install --save-dev prisma',
      expect.stringMatching(/^npx prisma init /),
      expect.stringMatching(/^npx prisma generate /),
    ])
  })

  test('with a schema, it is generated; with a client, nothing is said', async () => {
    const schema = 'generator client {\n provider = "prisma-client"\n output = "../out"\n}\n'
    const packages = ['holdfast', '@prisma/client', '@prisma/adapter-pg', 'pg', 'prisma']
    const files = { 'prisma/schema.prisma': schema }
    const { next } = await init(project(packages, files))
    expect(next[0]).toMatch(/^npx prisma generate /)
    const { next: more } = await init(project(packages, { ...files, 'out/client.ts': '' }))
    expect(more.join('\n')).not.toContain('npx prisma')
  })
})

describe('CommonJS that TypeScript cannot be written in', () => {
  const options = { module: 'nodenext', verbatimModuleSyntax: true, erasableSyntaxOnly: true }
  const strict = { 'tsconfig.json': JSON.stringify({ compilerOptions: options }) }

  test.each<[string, Record<string, string>]>([
    ['verbatimModuleSyntax and erasableSyntaxOnly', strict],
    ['files that Node runs', { 'index.ts': '' }],
  ])('%s: an ES module is written, and told', async (_, files) => {
    const { file, content, notes } = await init(project(['typeorm', 'pg'], files, 'commonjs'))
    expect(file).toBe('holdfast.mts')
    expect(notes).toEqual([expect.stringContaining('ES module (.mts)')])
    // What waits while it is loaded cannot be loaded by require().
    expect(content).not.toContain('await ')
  })

  test('a name that says otherwise is refused', async () => {
    const at = project(['pg'], strict, 'commonjs')
    for (const file of ['a.ts', 'a.cts']) {
      const { code, err } = await runCommand(['init', '--file', file, '--json'], {}, at)
      expect([code, JSON.parse(err)]).toEqual([
        1,
        {
          error: expect.objectContaining({
            code: 'MODULE_SYNTAX',
            next: expect.stringContaining('--file a.mts'),
          }),
        },
      ])
    }
  })
})

test('a default import that TypeScript does not make is told', async () => {
  const compilerOptions = { module: 'esnext', moduleResolution: 'node', target: 'es2022' }
  const files = { 'tsconfig.json': JSON.stringify({ compilerOptions }) }
  const { notes } = await init(project(['postgres'], files))
  expect(notes).toEqual([expect.stringContaining('"esModuleInterop": true')])
  const { notes: none, content } = await init(project(['pg'], files))
  expect([none, content]).toEqual([[], expect.stringContaining("import * as pg from 'pg'")])
})
