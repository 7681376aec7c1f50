import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** The package as users get it: packed, installed into an empty project, used from there. */
const run = promisify(execFile)
const packageRoot = fileURLToPath(new URL('../../', import.meta.url))
const workspaceRoot = resolve(packageRoot, '../..')
let project = ''
let installed = ''

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-package-'))
  installed = join(project, 'node_modules/holdfast')
  // Packs what `npm test` has just built; building here would pull dist/ from under other tests.
  const packed = await pack(packageRoot)
  // There may be no registry here; what the lockfile has is what users get.
  const croner = await pack(join(workspaceRoot, 'node_modules/croner'))
  await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', croner, packed], {
    cwd: project,
  })
})

async function pack(cwd: string): Promise<string> {
  const { stdout } = await run(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', project],
    { cwd },
  )
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  return join(project, filename)
}

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

async function manifest(): Promise<{ dependencies?: object; exports: Record<string, unknown> }> {
  return JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
}

async function entryPoints(): Promise<string[]> {
  return Object.keys((await manifest()).exports)
    .filter((key) => key !== './package.json')
    .map((key) => `holdfast${key.slice(1)}`)
}

describe('the packed package', () => {
  test('brings croner, and nothing else', async () => {
    expect(Object.keys((await manifest()).dependencies ?? {})).toEqual(['croner'])
    const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: project })
    const croner = join(project, 'node_modules/croner')
    expect(stdout.trim().split('\n').slice(1).toSorted()).toEqual([croner, installed])
  })

  test('is what publint expects of a package', async () => {
    const publint = join(workspaceRoot, 'node_modules/.bin/publint')
    await expect(
      run(publint, ['--strict', '--pack', 'false'], { cwd: packageRoot }),
    ).resolves.toBeDefined()
  })

  test('loads every entry point by import', async () => {
    const entries = await entryPoints()
    const code = entries.map((entry) => `await import('${entry}')`).join('\n')
    await run('node', ['--input-type=module', '-e', code], { cwd: project })
    expect(entries).toContain('holdfast/drivers/prisma')
  })

  test('brings the SQL files along', async () => {
    const code = `import { grants, plan } from 'holdfast/schema'
      process.stdout.write(plan() + grants({ role: 'app' }))`
    const { stdout } = await run('node', ['--input-type=module', '-e', code], { cwd: project })
    expect(stdout).toContain('-- migrations/0001-')
    expect(stdout).toContain('GRANT EXECUTE ON FUNCTION')
    await expect(readFile(join(installed, 'sql/catalogue.json'), 'utf8')).resolves.toContain(
      '"objects"',
    )
  })

  test('loads every entry point by require', async () => {
    const code = (await entryPoints()).map((entry) => `require('${entry}')`).join('\n')
    await run('node', ['--input-type=commonjs', '-e', code], { cwd: project })
    const { stdout } = await run('node', ['-p', 'typeof require("holdfast").createHoldfast'], {
      cwd: project,
    })
    expect(stdout.trim()).toBe('function')
  })

  test.each([
    ['7', join(workspaceRoot, 'node_modules/typescript')],
    ['5.9', join(workspaceRoot, 'node_modules/typescript-5')],
  ])('type-checks with TypeScript %s', { timeout: 300_000 }, async (version, compiler) => {
    const { bin, version: exact } = JSON.parse(
      await readFile(join(compiler, 'package.json'), 'utf8'),
    ) as { bin: { tsc: string }; version: string }
    expect(exact.startsWith(`${version}.`)).toBe(true)
    const imports = (await entryPoints()).map((e, n) => `import * as e${n} from '${e}'\nvoid e${n}`)
    await writeFile(join(project, 'use.ts'), [...imports, usage].join('\n'))
    const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022']
    const types = ['--typeRoots', join(workspaceRoot, 'node_modules/@types'), '--types', 'node']
    const tsc = [join(compiler, bin.tsc), ...options, ...types, 'use.ts']
    await expect(run('node', tsc, { cwd: project })).resolves.toMatchObject({ stdout: '' })
    await writeFile(join(project, 'use.ts'), usage.replace('byteSize: 1', 'byteSize: "one"'))
    await expect(run('node', tsc, { cwd: project })).rejects.toMatchObject({
      stdout: expect.stringContaining("Type 'string' is not assignable to type 'number'"),
    })
  })

  test.each([
    ['locks', ['core', 'engines', 'tx']],
    ['rows', ['core', 'engines', 'tx']],
    ['claims', ['core', 'engines', 'tx']],
    ['once', ['core', 'engines', 'tx']],
    ['schedule', ['core', 'engines', 'tx']],
    ['ledger', ['core', 'engines', 'tx']],
    ['leases', ['core', 'engines', 'tx']],
    ['quota', ['core', 'engines', 'ledger']],
    ['credits', ['core', 'engines', 'ledger']],
    ['stock', ['core', 'engines', 'ledger']],
    ['tx', ['core', 'engines']],
    ['schema', ['core', 'engines']],
  ])('holdfast/%s pulls in no other room', async (room, allowed) => {
    const dist = join(installed, 'dist')
    const rooms = new Set<string>()
    for (const file of await imported(join(dist, room, 'index.js'))) {
      rooms.add(relative(dist, file).split('/')[0] as string)
    }
    expect([...rooms].toSorted((a, b) => a.localeCompare(b))).toEqual([...allowed, room].toSorted())
  })
})

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

/** Every file a module loads, by following its imports. */
async function imported(file: string, seen = new Set<string>()): Promise<Set<string>> {
  if (seen.has(file)) return seen
  seen.add(file)
  const source = await readFile(file, 'utf8')
  for (const [, specifier] of source.matchAll(/(?:from|import)\s*['"](\.[^'"]+)['"]/g)) {
    await imported(resolve(dirname(file), specifier as string), seen)
  }
  return seen
}
