/** The package as it is published. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
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
  project = await mkdtemp(join(tmpdir(), 'holdfast-eslint-plugin-'))
  const own = join(project, 'node_modules/eslint-plugin-holdfast')
  await mkdir(own, { recursive: true })
  packed = await pack('eslint-plugin', project)
  await run('tar', ['-xzf', packed.path, '-C', own, '--strip-components', '1'])
  await symlink(join(root, 'node_modules/eslint'), join(project, 'node_modules/eslint'))
})

afterAll(async () => {
  await rm(project, { recursive: true, force: true })
})

test('is released together with the library, and brings nothing else', async () => {
  const [own, library] = await Promise.all(
    ['eslint-plugin', 'holdfast'].map(
      async (name) =>
        JSON.parse(await readFile(join(packages, name, 'package.json'), 'utf8')) as {
          version: string
          dependencies?: unknown
        },
    ),
  )
  expect(own?.version).toBe(library?.version)
  expect(own?.dependencies).toBe(undefined)
})

test('is what publint expects of a package', async () => {
  const publint = join(root, 'node_modules/.bin/publint')
  await run(publint, ['--strict', '--pack', 'false'], { cwd: join(packages, 'eslint-plugin') })
  expect(packed.files).toEqual(
    expect.arrayContaining(['README.md', 'dist/index.js', 'dist/index.d.ts']),
  )
})

test('the configuration of the README works with the command of ESLint', async () => {
  const readme = await readFile(join(packages, 'eslint-plugin/README.md'), 'utf8')
  const config = /```js\n\/\/ eslint\.config\.js\n([^]*?)```/.exec(readme)?.[1] ?? ''
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
  await writeFile(join(project, 'eslint.config.js'), config)
  await writeFile(
    join(project, 'order.js'),
    `import { prisma } from './database.js'
     await prisma.$transaction(async (tx) => {
       await prisma.order.count()
       await tx.order.count()
     })`,
  )
  const eslint = join(project, 'node_modules/eslint/bin/eslint.js')
  const outcome = await run(process.execPath, [eslint, 'order.js'], { cwd: project }).then(
    () => 'nothing found',
    (error: { stdout: string }) => error.stdout,
  )
  expect(outcome).toMatch(/3:\d+ +error .*holdfast\/no-root-client-in-transaction/)
  expect(outcome).toContain('1 problem')
})
