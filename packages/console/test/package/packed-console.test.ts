/** The package as it is published: packed, unpacked beside the library, imported and run. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pack, packages } from '../support/packed.ts'

const run = promisify(execFile)
const workspaceRoot = resolve(packages, '..')
let project = ''
let files: readonly string[] = []

interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

async function manifest(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(packages, name, 'package.json'), 'utf8'))
}

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-console-'))
  const modules = join(project, 'node_modules')
  for (const [folder, name] of [
    ['holdfast', 'holdfast'],
    ['console', '@holdfast/console'],
  ] as const) {
    const into = join(modules, name)
    const packed = await pack(folder, project)
    await mkdir(into, { recursive: true })
    await run('tar', ['-xzf', packed.path, '-C', into, '--strip-components', '1'])
    if (folder === 'console') files = packed.files
  }
  for (const name of ['croner', 'pg', '@types']) {
    await symlink(join(workspaceRoot, 'node_modules', name), join(modules, name))
  }
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
})

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

describe('the packed console', () => {
  test('is released together with the library it needs, and needs little', async () => {
    const [own, library] = [await manifest('console'), await manifest('holdfast')]
    expect(own.version).toBe(library.version)
    expect(own.dependencies).toEqual({
      holdfast: library.version,
      mysql2: expect.any(String),
      pg: expect.any(String),
    })
  })

  test('is what publint expects of a package', async () => {
    const publint = join(workspaceRoot, 'node_modules/.bin/publint')
    const checked = run(publint, ['--strict', '--pack', 'false'], {
      cwd: join(packages, 'console'),
    })
    await expect(checked).resolves.toBeDefined()
  })

  test('holds the program, the pages, its sources and a page about it', () => {
    expect(files).toEqual(
      expect.arrayContaining([
        'README.md',
        'package.json',
        'dist/esm/main.js',
        'dist/esm/index.js',
        'dist/cjs/index.cjs',
        'dist/node/index.js',
        'dist/types/index.d.ts',
      ]),
    )
    const others = /^(?!README\.md|LICENSE|package\.json|dist\/|src\/)/
    expect(files.filter((path) => others.test(path))).toEqual([])
  })

  test('runs as a command', async () => {
    const program = join(project, 'node_modules/@holdfast/console/dist/esm/main.js')
    expect((await readFile(program, 'utf8')).startsWith('#!/usr/bin/env node\n')).toBe(true)
    const { stdout } = await run('node', [program, '--help'])
    expect(stdout).toContain('Usage: npx @holdfast/console')
  })

  test('serves its pages, and asks nobody else for anything', async () => {
    const script = `
      import { createConsole } from '@holdfast/console'
      const { fetch } = createConsole({
        observer: {},
        auth: { tokens: [{ name: 'x', role: 'view', token: 'x'.repeat(20) }] },
      })
      const page = await (await fetch(new Request('http://localhost/'))).text()
      const files = [...page.matchAll(/"\\.\\/(assets[^"]+)"/g)].map(([, file]) => file)
      const sizes = []
      for (const file of files) {
        const response = await fetch(new Request('http://localhost/' + file))
        sizes.push([response.status, (await response.text()).length > 200])
      }
      console.log(JSON.stringify({ sizes, foreign: /(src|href)="(https?:)?\\/\\//.test(page) }))`
    const { stdout } = await run('node', ['--input-type=module', '-e', script], { cwd: project })
    const { sizes, foreign } = JSON.parse(stdout) as { sizes: unknown[]; foreign: boolean }
    expect(foreign).toBe(false)
    expect(sizes.length).toBeGreaterThanOrEqual(2)
    for (const size of sizes) expect(size).toEqual([200, true])
  })

  test('has types that another project can use', async () => {
    await writeFile(
      join(project, 'types.ts'),
      `import { type AuditEntry, createConsole, toFastify, toNode } from '@holdfast/console'
       import { fromPg } from 'holdfast/drivers/pg'
       import pg from 'pg'
       const entries: AuditEntry[] = []
       const made = createConsole({
         driver: fromPg(new pg.Pool()),
         base: '/holdfast',
         auth: { authenticate: () => ({ name: 'ada', role: 'view' }) },
         actions: ['cancel'],
         audit: (entry) => { entries.push(entry) },
       })
       toNode(made)
       toFastify(made)
       // @ts-expect-error there is no such role
       createConsole({ driver: fromPg(new pg.Pool()), auth: { tokens: [{ name: 'x', role: 'admin' }] } })`,
    )
    const tsc = join(workspaceRoot, 'node_modules/typescript/bin/tsc')
    const options = '--noEmit --strict --skipLibCheck --module nodenext --target es2024'.split(' ')
    const { stdout } = await run('node', [tsc, ...options, 'types.ts'], { cwd: project }).catch(
      (error: { stdout: string }) => error,
    )
    expect(stdout).toBe('')
  })
})
