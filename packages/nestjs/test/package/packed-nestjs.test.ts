/** The package as it is published. That an application runs with it, `examples/nestjs` shows. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pack, packages } from '../../../console/test/support/packed.ts'
import type { Tarball } from '../../../holdfast/test/support/packed-project.ts'

const run = promisify(execFile)
const root = resolve(packages, '..')
let project = ''
let packed: Tarball

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-nestjs-package-'))
  const modules = join(project, 'node_modules')
  packed = await pack('nestjs', project)
  for (const [name, { path }] of [
    ['holdfast', await pack('holdfast', project)],
    ['@holdfast/nestjs', packed],
  ] as const) {
    await mkdir(join(modules, name), { recursive: true })
    await run('tar', ['-xzf', path, '-C', join(modules, name), '--strip-components', '1'])
  }
  for (const name of ['croner', '@nestjs', 'rxjs', 'reflect-metadata'])
    await symlink(join(root, 'node_modules', name), join(modules, name))
})

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

interface Manifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
}

async function manifest(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(packages, name, 'package.json'), 'utf8')) as Manifest
}

test('is released together with the library it needs, and brings nothing else', async () => {
  const [own, library] = [await manifest('nestjs'), await manifest('holdfast')]
  expect(own.version).toBe(library.version)
  expect(own.dependencies).toEqual({ holdfast: library.version })
})

test('is what publint expects of a package', async () => {
  const publint = join(root, 'node_modules/.bin/publint')
  await run(publint, ['--strict', '--pack', 'false'], { cwd: join(packages, 'nestjs') })
  expect(packed.files).toEqual(
    expect.arrayContaining(['README.md', 'dist/index.js', 'dist/index.d.ts']),
  )
})

test('U9: has the same names and the same classes by require and by import', async () => {
  const code = `
    import { createRequire } from 'node:module'
    import * as imported from '@holdfast/nestjs'
    import { Guarded, HoldfastModule } from '@holdfast/nestjs'
    const required = createRequire(import.meta.url)('@holdfast/nestjs')
    const same = Object.keys(required).every((name) => required[name] === imported[name])
    console.log(same, Object.keys(required).length > 10, typeof Guarded, HoldfastModule.name)`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], {
    cwd: project,
  })
  expect(stdout.trim()).toBe('true true function HoldfastModule')
})
