/** The package as it is published: packed, unpacked, and used by each test runner that it speaks to. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const run = promisify(execFile)
const source = fileURLToPath(new URL('../../', import.meta.url))
const workspaceRoot = resolve(source, '../..')
let project = ''
let files: string[] = []

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-race-'))
  const modules = join(project, 'node_modules')
  const into = join(modules, '@holdfast/race')
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', project]
  const { stdout } = await run('npm', args, { cwd: source })
  const [{ filename, files: packed }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ]
  await mkdir(into, { recursive: true })
  await run('tar', ['-xzf', join(project, filename), '-C', into, '--strip-components', '1'])
  files = packed.map(({ path }) => path)
  for (const name of ['pg', 'libpg-query', 'vitest', '@types']) {
    await symlink(join(workspaceRoot, 'node_modules', name), join(modules, name))
  }
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
})

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

describe('the packed race explorer', () => {
  test('is what publint expects of a package', async () => {
    const publint = join(workspaceRoot, 'node_modules/.bin/publint')
    const checked = run(publint, ['--strict', '--pack', 'false'], { cwd: source })
    await expect(checked).resolves.toBeDefined()
  })

  test('needs pg and its parser and nothing else, and is released with the library', async () => {
    const read = async (path: string): Promise<{ version: string; dependencies?: object }> =>
      JSON.parse(await readFile(path, 'utf8'))
    const own = await read(join(source, 'package.json'))
    expect(Object.keys(own.dependencies ?? {})).toEqual(['@types/pg', 'libpg-query', 'pg'])
    expect(own.version).toBe((await read(join(source, '../holdfast/package.json'))).version)
  })

  test('holds the program, its sources and a page about it', () => {
    expect(files).toEqual(
      expect.arrayContaining(['README.md', 'dist/esm/main.js', 'dist/cjs/index.cjs']),
    )
    const others = /^(?!README\.md|LICENSE|package\.json|dist\/|src\/)/
    expect(files.filter((path) => others.test(path))).toEqual([])
  })

  test('runs as a command', async () => {
    const program = join(project, 'node_modules/@holdfast/race/dist/esm/main.js')
    expect((await readFile(program, 'utf8')).startsWith('#!/usr/bin/env node\n')).toBe(true)
    const { stdout } = await run('node', [program, '--help'])
    expect(stdout).toContain('npx @holdfast/race demo --url')
  })

  test('adds itself to vitest, and to a global expect like that of jest', async () => {
    await writeFile(
      join(project, 'race.test.js'),
      `import '@holdfast/race/vitest'
       import { expect, test } from 'vitest'
       test('fails', () => expect(() => expect(1).toBeRaceFree()).toThrow(/report of explore/))`,
    )
    const vitest = join(workspaceRoot, 'node_modules/vitest/vitest.mjs')
    const { stdout } = await run('node', [vitest, 'run', '--root', project], { cwd: project })
    expect(stdout).toMatch(/1 passed/)
    const jest = `globalThis.expect = { extend: (all) => console.log(Object.keys(all).join()) }
      await import('@holdfast/race/jest')`
    const { stdout: added } = await run('node', ['--input-type=module', '-e', jest], {
      cwd: project,
    })
    expect(added).toBe('toBeRaceFree,toHaveRace\n')
  })

  test('U5: is loaded by require where that cannot load modules, as in Jest', async () => {
    const code = `globalThis.expect = { extend: (all) => console.log(Object.keys(all).join()) }
      require('@holdfast/race/jest')
      console.log(typeof require('@holdfast/race').explore)`
    const flags = ['--no-experimental-require-module', '--input-type=commonjs']
    const { stdout } = await run('node', [...flags, '-e', code], { cwd: project })
    expect(stdout).toBe('toBeRaceFree,toHaveRace\nfunction\n')
  })

  test('has types that another project can use', async () => {
    await writeFile(
      join(project, 'types.ts'),
      `import '@holdfast/race/vitest'
       import { explore, type ExploreOptions, formatReport } from '@holdfast/race'
       import { expect } from 'vitest'
       const options: ExploreOptions = { url: 'x', flows: { a: ({ pool }) => pool.query('SELECT 1') } }
       const report = await explore(options)
       expect(report).toBeRaceFree({ bounded: true })
       expect(report).not.toHaveRace(/x/)
       formatReport(report, { columns: 80 })
       // @ts-expect-error a word is no option
       expect(report).toBeRaceFree('bounded')`,
    )
    const tsc = join(workspaceRoot, 'node_modules/typescript/bin/tsc')
    const args = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2024',
    ]
    const { stdout } = await run('node', [tsc, ...args, 'types.ts'], { cwd: project }).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toBe('')
  })
})
