/** What a hunt writes for Jest, in a project of somebody else's: it fails on the race, and passes without it. */
import { readFile } from 'node:fs/promises'
import { createDatabase } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import {
  installedProject,
  pack,
  type PackedProject,
} from '../../../holdfast/test/support/packed-project.ts'

let project: PackedProject
let url: string

const written = 'test/races/post-coupons-x-itself.test.js'
const support = new URL('../support/hunted/', import.meta.url)
const textOf = (name: string): Promise<string> => readFile(new URL(name, support), 'utf8')

beforeAll(async () => {
  url = await createDatabase(inject('postgresUrl'), 'jest', inject('emptyDatabase'))
  project = await installedProject(['pg@8', 'jest@30'])
  const { path } = await pack('packages/race', project.folder)
  await project.run('npm', ['install', '--no-audit', '--no-fund', path])
  await project.write({
    'app/package.json': '{ "type": "module" }',
    'app/app.ts': await textOf('app.ts'),
    'app/suite.ts': await textOf('suite.ts'),
    'app/suite-node.ts': (await textOf('suite-node.ts')).replace(
      '../../../src/hunt.ts',
      '@holdfast/race/hunt',
    ),
  })
}, 600_000)

afterAll(() => project[Symbol.asyncDispose]())

/** What it said, and whether it ended well. */
async function said(command: string, args: readonly string[], env = {}): Promise<string> {
  const told = (error: Error & { readonly stderr?: string }): string =>
    `failed: ${error.message} ${error.stderr ?? ''}`
  return await project.run(command, args, { DATABASE_URL: url, ...env }).catch(told)
}

test('Jest 30 without any flag or transformer', { timeout: 300_000 }, async () => {
  const hunt = ['holdfast-race', 'hunt', '--app', 'app/app.ts', '--write-tests', 'test/races']
  // By package.json the project has Jest.
  expect(await said('npx', [...hunt, '--', 'node', '--test', 'app/suite-node.ts'])).toContain(
    `wrote ${written}`,
  )
  const text = await readFile(`${project.folder}/${written}`, 'utf8')
  expect(text).toContain(`require('@holdfast/race/hunt')`)
  const jest = ['jest', '--rootDir', '.', written]
  expect(await said('npx', jest)).toMatch(/^failed: [\s\S]*race in POST \/coupons × itself/)

  // The control: it runs, and is what passes.
  const json = ['--json', '--rootDir', '.', written]
  const passed = JSON.parse(await said('npx', ['jest', ...json], { COUPONS: 'fixed' })) as object
  expect(passed).toMatchObject({ numPassedTests: 1, numFailedTests: 0 })
})
