/** What `holdfast init` says of versions, and of the tool that installs packages. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../support/run-command.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

let projects = 0

function project(dependencies: object, files: Readonly<Record<string, string>> = {}): string {
  projects += 1
  const at = join(folder, String(projects))
  const manifest = JSON.stringify({ name: 'fresh', type: 'module', dependencies })
  for (const [name, text] of Object.entries({ 'package.json': manifest, ...files })) {
    mkdirSync(dirname(join(at, name)), { recursive: true })
    writeFileSync(join(at, name), text)
  }
  return at
}

type Told = Readonly<Record<'notes' | 'next', readonly string[]>> & { readonly content: string }

async function init(at: string, ...flags: readonly string[]): Promise<Told> {
  const { code, out, err } = await runCommand(['init', '--json', ...flags], {}, at)
  expect([err, code]).toEqual(['', 3])
  return JSON.parse(out) as Told
}

describe('versions', () => {
  test.each([
    [{ '@prisma/client': '^6.19.3', '@prisma/adapter-pg': '^6.19.3' }, '@prisma/client 6.19', '7'],
    [{ '@prisma/client': '^7', '@prisma/adapter-pg': '~6.1' }, '@prisma/adapter-pg 6.1', '7'],
    [{ '@mikro-orm/postgresql': '>=6.4 <7' }, '@mikro-orm/postgresql 6.4', '7'],
  ])('%j is not supported: nothing is written', async (dependencies, named, wanted) => {
    const { code, err } = await runCommand(['init', '--json', '--yes'], {}, project(dependencies))
    expect(code).toBe(1)
    expect(JSON.parse(err)).toEqual({
      error: {
        code: 'CLIENT_UNSUPPORTED',
        message: `${named} is not supported by Holdfast. Nothing was written.`,
        next: `Update it to ${wanted}, or name another client: --client pg.`,
      },
    })
  })

  test('what is installed counts, and not what is asked for', async () => {
    const installed = { 'node_modules/@mikro-orm/postgresql/package.json': '{"version":"6.4.1"}' }
    const at = project({ '@mikro-orm/postgresql': '*' }, installed)
    const { err } = await runCommand(['init', '--json'], {}, at)
    expect(err).toContain('@mikro-orm/postgresql 6.4 is not supported')
  })

  test.each([
    [{ pg: '^7.18.0' }, 'pg 7.18: it is tested with 8.11 to 8'],
    [{ postgres: '3.2.0' }, 'postgres 3.2'],
    [{ typeorm: '2.0.0', pg: '^8.20' }, 'typeorm 2.0'],
    [{ knex: '0.21.1', pg: '^8.20' }, 'knex 0.21'],
  ])('%j was not tested, which is noted', async (dependencies, named) => {
    const { notes } = await init(project(dependencies))
    expect(notes).toEqual([expect.stringContaining(`was not tested with ${named}`)])
  })

  test.each([
    [{ pg: '^8.23.1' }],
    [{ pg: 'latest' }],
    [{ pg: 'workspace:*' }],
    [{ 'drizzle-orm': '1.0.0-rc.5', pg: '^8.16.3' }],
    [{ '@prisma/client': '^7.10', '@prisma/adapter-pg': '7.10.0', pg: '^8.16.3' }],
  ])('%j: nothing is noted', async (dependencies) => {
    expect((await init(project(dependencies))).notes).toEqual([])
  })

  test('Prisma without its adapter is named', async () => {
    const { err } = await runCommand(['init', '--json'], {}, project({ '@prisma/client': '^7' }))
    expect(err).toContain('package.json has @prisma/client and not @prisma/adapter-pg')
  })
})

describe('Prisma works on a pool, so that a statement can be canceled', () => {
  const prisma = { '@prisma/client': '^7.10', '@prisma/adapter-pg': '^7.10' }

  test('the adapter is given one, and pg is a dependency', async () => {
    const { content, next } = await init(project({ ...prisma, holdfast: '*' }))
    expect(content).toContain('new PrismaPg(pool)')
    expect(content).toContain('export const pool = new pg.Pool({ connectionString })')
    expect(next[0]).toBe('npm install pg')
  })

  test('it has to be the pg of the adapter', async () => {
    const { notes } = await init(project({ ...prisma, pg: '8.11.0' }))
    expect(notes).toEqual([expect.stringContaining('ask for pg ^8.16')])
  })
})

describe('the tool that installs packages', () => {
  const json = (packageManager: string): string =>
    JSON.stringify({ name: 'a', type: 'module', dependencies: { pg: '8.20' }, packageManager })
  test.each<[string, Record<string, string>, readonly RegExp[]]>([
    ['pnpm', { 'pnpm-lock.yaml': '' }, [/^pnpm add holdfast$/, /^pnpm exec holdfast migrate/]],
    ['yarn', { 'yarn.lock': '' }, [/^yarn add holdfast$/, /^yarn holdfast migrate/]],
    ['bun', { 'bun.lock': '' }, [/^bun add holdfast$/, /^bunx holdfast migrate/]],
    ['npm', { 'package-lock.json': '' }, [/^npm install holdfast$/, /^npx holdfast migrate/]],
    ['packageManager', { 'package.json': json('pnpm@10.1.0') }, [/^pnpm add holdfast$/]],
    ['none', {}, [/^npm install holdfast$/]],
  ])('%s', async (_, files, steps) => {
    const { next } = await init(project({ pg: '8.20' }, files))
    for (const step of steps) expect(next).toContainEqual(expect.stringMatching(step))
    if (!steps.some((step) => step.source.includes('npm '))) {
      expect(next.join('\n')).not.toMatch(/\bnp[mx] /)
    }
  })

  test('in a workspace, what the repository says', async () => {
    const at = project({}, { 'pnpm-lock.yaml': '', '.git/HEAD': '' })
    const manifest = '{ "type": "module", "dependencies": { "pg": "8.20" } }'
    mkdirSync(join(at, 'packages/api'), { recursive: true })
    writeFileSync(join(at, 'packages/api/package.json'), manifest)
    expect((await init(join(at, 'packages/api'))).next[0]).toBe('pnpm add holdfast')
  })
})

test('an ES module in a CommonJS project with Jest: what Jest does with it is noted', async () => {
  const manifest = { type: 'commonjs', dependencies: { pg: '8.20', jest: '30', typescript: '5.9' } }
  const at = project({}, { 'package.json': JSON.stringify(manifest) })
  const { notes } = await init(at)
  expect(notes).toEqual([
    expect.stringContaining('ES module (.mts)'),
    expect.stringContaining('--file holdfast.js'),
  ])
})

test('files with a byte order mark are read', async () => {
  const mark = '\uFEFF'
  const files = {
    'package.json': `${mark}{ "type": "module", "dependencies": { "pg": "8.20" } }`,
    'tsconfig.json': `${mark}{ "compilerOptions": { "module": "nodenext" } }`,
    '.env': `${mark}DATABASE_URL=postgres://u@127.0.0.1:1/x`,
    'holdfast.config.json': `${mark}{ "schema": "shop" }`,
  }
  const at = project({}, files)
  const { content, next } = await init(at)
  expect(content).toContain("{ schema: 'shop' }")
  expect(next.join('\n')).not.toContain('export DATABASE_URL')
  expect((await runCommand(['locks', '--json'], {}, at)).err).toContain('ECONNREFUSED')
})
