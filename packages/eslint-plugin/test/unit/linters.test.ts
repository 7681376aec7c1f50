/** The same findings in ESLint 9 and in oxlint, whose trees and scopes are made by others. */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Linter } from 'eslint'
import { Linter as Linter9 } from 'eslint-9'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import plugin from '../../src/index.ts'
import { expectedOf, found, lintCode } from '../support/lint-code.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url))
const files = await Promise.all(
  ['wrong', 'right'].map(async (folder) =>
    (await readdir(join(fixtures, folder))).map((file) => join(folder, file)),
  ),
).then((lists) => lists.flat())

test('ESLint 9 and 10 are what they are called', () => {
  expect([Linter9.version, Linter.version].map((version) => version.split('.')[0])).toEqual([
    '9',
    '10',
  ])
})

describe('ESLint 9', () => {
  test.each(files)('%s', async (file) => {
    const code = await readFile(join(fixtures, file), 'utf8')
    const options = { Linter: Linter9 as unknown as typeof Linter, filename: `src/${file}` }
    expect(found(lintCode(code, options))).toEqual(expectedOf(code))
  })
})

describe('oxlint', () => {
  let project = ''
  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'holdfast-oxlint-'))
    const rules = Object.keys(plugin.rules).map((name) => [`holdfast/${name}`, 'error'])
    const config = {
      plugins: [],
      jsPlugins: [join(root, 'packages/eslint-plugin/src/index.ts')],
      categories: { correctness: 'off' },
      rules: Object.fromEntries(rules) as Record<string, string>,
    }
    await writeFile(join(project, '.oxlintrc.json'), JSON.stringify(config))
    for (const file of files) {
      const name = file.replace('/', '-')
      await writeFile(join(project, name), await readFile(join(fixtures, file)))
    }
  })
  afterAll(async () => {
    await rm(project, { recursive: true, force: true })
  })

  test('reports the same lines, and no others', async () => {
    const reported = await runOxlint(project)
    for (const file of files) {
      const name = file.replace('/', '-')
      // A test by its name or by what it imports is passed over here as well.
      const expected = expectedOf(await readFile(join(fixtures, file), 'utf8'))
      const own = reported.filter(({ filename }) => filename === name)
      const lines = own.map(({ line, rule }) => `${line} ${rule}`)
      expect({ file, lines: lines.toSorted() }).toEqual({ file, lines: expected.toSorted() })
    }
  })
})

interface Diagnostic {
  readonly code: string
  readonly filename: string
  readonly labels: readonly { readonly span: { readonly line: number } }[]
}

async function runOxlint(
  folder: string,
): Promise<{ filename: string; line: number; rule: string }[]> {
  const oxlint = join(root, 'node_modules/.bin/oxlint')
  const stdout = await new Promise<string>((resolve) => {
    // Its exit code says that something was found.
    execFile(oxlint, ['--format', 'json'], { cwd: folder }, (_, out) => resolve(out))
  })
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: readonly Diagnostic[] }
  return diagnostics.map(({ code, filename, labels: [label] }) => ({
    filename,
    line: label?.span.line ?? 0,
    rule: /\((.+)\)/.exec(code)?.[1] ?? code,
  }))
}
