import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { entriesOf, readManifest } from '../../../../scripts/package/entries.ts'
import { grants, plan } from '../../src/schema/index.ts'
import { catalogueText, packageVersion, sqlTexts } from '../../src/schema/package-files.ts'
import { pack } from '../support/packed-project.ts'

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
  const { path: packed } = await pack('packages/holdfast', project)
  // There may be no registry here; what the lockfile has is what users get.
  const { path: croner } = await pack('node_modules/croner', project)
  await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', croner, packed], {
    cwd: project,
  })
})

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

  test.each(['holdfast', 'race', 'console'])(
    'U5: the types of %s are those of what is loaded, wherever it is imported from',
    { timeout: 300_000 },
    async (name) => {
      const attw = join(workspaceRoot, 'node_modules/.bin/attw')
      const { path } = await pack(`packages/${name}`, project)
      // Vitest itself cannot be required.
      const but = name === 'race' ? ['--exclude-entrypoints', 'vitest'] : []
      const { stdout } = await run(attw, [path, '--format', 'json', ...but], {
        // It lists every file of the package, for every way to look for it.
        maxBuffer: 2 ** 26,
      })
      expect(JSON.parse(stdout)).toMatchObject({ problems: {} })
    },
  )

  test('loads every entry point by import', async () => {
    const entries = await entryPoints()
    const code = entries.map((entry) => `await import('${entry}')`).join('\n')
    await run('node', ['--input-type=module', '-e', code], { cwd: project })
    expect(entries).toContain('holdfast/drivers/prisma')
  })

  test('brings along what coding agents read', async () => {
    for (const path of [
      'AGENTS.md',
      'skills/holdfast/SKILL.md',
      'skills/holdfast/references/prove.md',
      'docs/README.md',
      'docs/recipes/wallet.md',
    ]) {
      expect(await readFile(join(installed, path), 'utf8')).toContain('#')
    }
  })

  test('U3: carries the SQL, the catalogue and the version that are in sql/ and package.json', async () => {
    const code = `import { grants, plan } from 'holdfast/schema'
      process.stdout.write(plan() + grants({ role: 'app' }))`
    const { stdout } = await run('node', ['--input-type=module', '-e', code], {
      cwd: project,
      maxBuffer: 2 ** 26,
    })
    expect(stdout).toBe(plan() + grants({ role: 'app' }))
    for (const format of ['cjs', 'esm']) {
      expect(await builtIn(format, 'sqlTexts')).toEqual(sqlTexts())
      expect(await builtIn(format, 'catalogueText')).toBe(catalogueText())
      expect(await builtIn(format, 'packageVersion')).toBe(packageVersion())
    }
  })

  test('U2: nothing in it depends on where it lies', async () => {
    for (const format of ['cjs', 'esm', 'node']) {
      for (const text of await textsIn(join(installed, 'dist', format))) {
        expect(text).not.toMatch(/import\.meta|__dirname|__filename/)
      }
    }
  })

  test('U11: every entry point is a few files', async () => {
    const count = 'process.stdout.write(String(Object.keys(require.cache).length))'
    const files: Record<string, number> = {}
    for (const entry of await entryPoints()) {
      const { stdout } = await run('node', ['-e', `require('${entry}'); ${count}`], {
        cwd: project,
      })
      files[entry] = Number(stdout)
    }
    const { holdfast: all, ...each } = files
    expect(all).toBeLessThanOrEqual(30)
    expect(Math.max(...Object.values(each))).toBeLessThanOrEqual(10)
  })

  test('loads every entry point by require', async () => {
    const code = (await entryPoints()).map((entry) => `require('${entry}')`).join('\n')
    await run('node', ['--input-type=commonjs', '-e', code], { cwd: project })
    const { stdout } = await run('node', ['-p', 'typeof require("holdfast").createHoldfast'], {
      cwd: project,
    })
    expect(stdout.trim()).toBe('function')
  })

  test.each(['knex', 'sequelize'])(
    'U10: the driver for %s is written with the driver kit alone, from outside',
    { timeout: 300_000 },
    async (name) => {
      const text = await readFile(join(packageRoot, `src/drivers/${name}.ts`), 'utf8')
      const file = `from-${name}.ts`
      await writeFile(join(project, file), text.replace("'./kit.ts'", "'holdfast/driver-kit'"))
      const compiler = join(workspaceRoot, 'node_modules/typescript/bin/tsc')
      const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'esnext']
      const types = ['--typeRoots', join(workspaceRoot, 'node_modules/@types'), '--types', 'node']
      await expect(
        run('node', [compiler, ...options, ...types, file], { cwd: project }),
      ).resolves.toMatchObject({ stdout: '' })
    },
  )

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
    ['tx', ['core']],
    ['schema', ['core', 'engines']],
  ])('holdfast/%s pulls in no other room', async (room, allowed) => {
    const source = join(packageRoot, 'src')
    const rooms = new Set<string>()
    const known = entriesOf(readManifest(new URL('../../', import.meta.url)))
    const entry = known.find(({ name }) => name === room)
    for (const file of await imported(join(packageRoot, entry?.source ?? ''))) {
      rooms.add(relative(source, file).split('/')[0] as string)
    }
    rooms.delete('entries')
    expect([...rooms].toSorted((a, b) => a.localeCompare(b))).toEqual([...allowed, room].toSorted())
  })
})

async function textsIn(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true })
  return Promise.all(
    names
      .filter((name) => /\.c?js$/.test(name))
      .map((name) => readFile(join(folder, name), 'utf8')),
  )
}

/** What a function returns that the build has put in the place of one that reads files. */
async function builtIn(format: string, name: string): Promise<unknown> {
  const texts = await textsIn(join(installed, 'dist', format))
  const [body] = texts.flatMap(
    (text) => new RegExp(`function ${name}\\(\\) \\{[^]*?\n\\}`).exec(text)?.[0] ?? [],
  )
  return runInNewContext(`${body}; JSON.parse(JSON.stringify(${name}()))`)
}

/** Every file a module loads, by following its imports; those of types are gone when it runs. */
async function imported(file: string, seen = new Set<string>()): Promise<Set<string>> {
  if (seen.has(file)) return seen
  seen.add(file)
  const source = await readFile(file, 'utf8')
  for (const [, type, specifier] of source.matchAll(
    /^(?:import|export) (type )?(?:[^'"]* from )?['"](\.[^'"]+)['"]$/gm,
  )) {
    if (type === undefined) await imported(resolve(dirname(file), specifier as string), seen)
  }
  return seen
}
