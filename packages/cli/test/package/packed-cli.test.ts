/** The command as it is published: both packages packed, unpacked side by side, and run. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const run = promisify(execFile)
const packages = fileURLToPath(new URL('../../../', import.meta.url))
const workspaceRoot = resolve(packages, '..')
let project = ''
let files: string[] = []

interface Manifest {
  readonly version: string
  readonly bin: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}

async function manifest(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(packages, name, 'package.json'), 'utf8'))
}

/** Packs what `npm test` has just built, and puts it where an installation would. */
async function unpack(name: string, into: string): Promise<string[]> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', project]
  const { stdout } = await run('npm', args, { cwd: join(packages, name) })
  const [{ filename, files: packed }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ]
  await mkdir(into, { recursive: true })
  const from = join(project, filename)
  await run('tar', ['-xzf', from, '-C', into, '--strip-components', '1'])
  return packed.map(({ path }) => path)
}

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-cli-'))
  const modules = join(project, 'node_modules')
  await unpack('holdfast', join(modules, 'holdfast'))
  files = await unpack('cli', join(modules, '@holdfast/cli'))
  for (const name of ['croner', 'pg']) {
    await symlink(join(workspaceRoot, 'node_modules', name), join(modules, name))
  }
})

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

describe('the packed command', () => {
  test('is released together with the library it needs', async () => {
    const [cli, library] = [await manifest('cli'), await manifest('holdfast')]
    expect(cli.version).toBe(library.version)
    expect(cli.dependencies).toEqual({
      holdfast: library.version,
      mysql2: expect.any(String),
      pg: expect.any(String),
    })
  })

  test('is what publint expects of a package', async () => {
    const publint = join(workspaceRoot, 'node_modules/.bin/publint')
    await expect(
      run(publint, ['--strict', '--pack', 'false'], { cwd: join(packages, 'cli') }),
    ).resolves.toBeDefined()
  })

  test('holds the program, its sources and a page about it', () => {
    expect(files).toEqual(expect.arrayContaining(['README.md', 'package.json', 'dist/main.js']))
    expect(
      files.filter((path) => !/^(README\.md|LICENSE|package\.json|dist\/|src\/)/.test(path)),
    ).toEqual([])
  })

  test('runs', async () => {
    const { bin } = await manifest('cli')
    const program = join(project, 'node_modules/@holdfast/cli', bin['holdfast'] as string)
    expect((await readFile(program, 'utf8')).startsWith('#!/usr/bin/env node\n')).toBe(true)
    expect((await stat(program)).isFile()).toBe(true)
    const { stdout: help } = await run('node', [program, '--help'])
    expect(help).toContain('Usage: holdfast <command>')
    const { stdout: sql } = await run('node', [program, 'plan', '--schema', 'x'])
    expect(sql).toContain('CREATE TABLE "x".')
  })

  test('lists commands and their flags without a client, and says what is missing', async () => {
    const bare = await mkdtemp(join(tmpdir(), 'holdfast-cli-bare-'))
    const modules = join(bare, 'node_modules')
    await unpack('holdfast', join(modules, 'holdfast'))
    await unpack('cli', join(modules, '@holdfast/cli'))
    await symlink(join(workspaceRoot, 'node_modules/croner'), join(modules, 'croner'))
    const program = join(modules, '@holdfast/cli/dist/main.js')
    const { stdout: help } = await run('node', [program, '--help'])
    const names = [...help.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name as string)
    expect(names).toEqual(expect.arrayContaining(['locks', 'top', 'why', 'schedules', 'console']))
    for (const name of ['locks', 'top', 'audit', 'doctor', 'schedules']) {
      const { stdout } = await run('node', [program, name, '--help'])
      expect(stdout).toContain(`Usage: holdfast ${name}`)
    }
    const added = await run('node', [program, 'skill', 'add'], { cwd: bare })
    expect(added.stdout).toContain('files into .claude/skills/holdfast')
    const failing = run('node', [program, 'console'], { cwd: bare })
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('npm install --save-dev @holdfast/console'),
    })
    await rm(bare, { recursive: true })
  })
})
