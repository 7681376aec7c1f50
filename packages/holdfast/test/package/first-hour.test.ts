/**
 * The packed library in projects of others: by a bundler and without one, by import and by require. The heavier
 * tools are in `npm run test:bundlers`.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase } from '@holdfast/testkit'
import { type BuildOptions, build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { entriesOf, packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import {
  type FirstHour,
  firstHour,
  firstHourMain,
  foreignVersion,
  type PackedProject,
  packedProject,
} from '../support/packed-project.ts'

const manifest = readManifest(packageRoot('holdfast'))
const entries = entriesOf(manifest).map(({ specifier }) => specifier)
let project: PackedProject

beforeAll(async () => {
  project = await packedProject(['pg'])
  await project.write({
    'first-hour.mjs': firstHour,
    'main.mjs': firstHourMain,
  })
})

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

/** Runs a program of the project on an empty database. */
async function onEmptyDatabase(args: readonly string[]): Promise<FirstHour> {
  const url = await createDatabase(inject('postgresUrl'), 'first_hour', inject('emptyDatabase'))
  return JSON.parse(await project.run('node', args, { DATABASE_URL: url })) as FirstHour
}

/** The version is ours: theirs is another one. */
const everything = {
  applied: expect.toSatisfy((count: number) => count > 150),
  again: 0,
  most: 1,
  spent: true,
  code: 'LOCK_KEY_INVALID',
  version: manifest.version,
}

describe('bundled by esbuild', () => {
  const bundle = (options: BuildOptions): ReturnType<typeof build> =>
    build({
      absWorkingDir: project.folder,
      entryPoints: ['main.mjs'],
      bundle: true,
      platform: 'node',
      external: ['pg'],
      logLevel: 'silent',
      ...options,
    })

  test.each([
    ['esm', 'out.mjs'],
    ['cjs', 'out.cjs'],
  ] as const)('U2, U3: to %s it installs, locks and books', async (format, outfile) => {
    const { warnings } = await bundle({ format, outfile })
    expect(warnings).toEqual([])
    // Away from where it was installed: nothing may be looked for beside it.
    const text = await readFile(join(project.folder, outfile), 'utf8')
    expect(text).not.toContain('import.meta')
    await project.write({ [`elsewhere/dist/server/${outfile}`]: text })
    expect(await onEmptyDatabase([`elsewhere/dist/server/${outfile}`])).toEqual(everything)
  })

  test('U3: a package whose SQL got lost says so', async () => {
    const lost: BuildOptions['plugins'] = [
      {
        name: 'lost',
        setup: ({ onLoad }) =>
          onLoad({ filter: /holdfast\/dist\/esm\/.*\.js$/ }, async ({ path }) => {
            const text = await readFile(path, 'utf8')
            return { contents: text.replace(/function sqlTexts\(\) \{/, '$& return {};') }
          }),
      },
    ]
    await bundle({ format: 'esm', outfile: 'lost.mjs', plugins: lost })
    await expect(onEmptyDatabase(['lost.mjs'])).rejects.toThrow('SCHEMA_FILES_MISSING')
  })
})

describe('without a bundler', () => {
  test('by import', async () => {
    expect(await onEmptyDatabase(['main.mjs'])).toEqual(everything)
    expect(manifest.version).not.toBe(foreignVersion)
  })

  test('U5: by require, where that cannot load modules, as in Jest', async () => {
    const all = entries.map((entry) => `require('${entry}')`).join('\n')
    const flags = ['--no-experimental-require-module', '--input-type=commonjs']
    await project.run('node', [...flags, '-e', all])
    // The flag does what it says.
    await project.write({ 'only-esm.mjs': 'export const one = 1' })
    await expect(
      project.run('node', [...flags, '-e', "require('./only-esm.mjs')"]),
    ).rejects.toThrow('ERR_REQUIRE_ESM')
  })

  test('U5: by node --require', async () => {
    await project.write({
      'preload.cjs': "globalThis.preloaded = require('holdfast').createHoldfast",
    })
    const code = "console.log(globalThis.preloaded === (await import('holdfast')).createHoldfast)"
    const args = ['--require', './preload.cjs', '--input-type=module', '-e', code]
    expect(await project.run('node', args)).toBe('true\n')
  })

  test('imported and required are one and the same, by every entry', async () => {
    await project.write({
      'both.mjs': `import { createRequire } from 'node:module'
        const require = createRequire(import.meta.url)
        for (const entry of ${JSON.stringify(entries)}) {
          const [imported, required] = [await import(entry), require(entry)]
          const names = Object.keys(required).toSorted()
          if (names.join() !== Object.keys(imported).toSorted().join()) throw new Error(entry)
          for (const name of names) {
            if (imported[name] !== required[name]) throw new Error(entry + ' ' + name)
          }
        }
        console.log('one')`,
    })
    expect(await project.run('node', ['both.mjs'])).toBe('one\n')
  })
})
