/** What `holdfast init` and `holdfast skill` write: it type-checks, runs, and never replaces anything of yours. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { clients } from '../../src/init/clients.ts'
import { runCommand } from '../support/run-command.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href
const drivers = JSON.parse(readFileSync(join(root, 'packages/holdfast/package.json'), 'utf8')) as {
  exports: Record<string, unknown>
}

/** In the repository, where git does not look, so that packages are found as in a project. */
let folder: string
beforeAll(() => {
  mkdirSync(join(root, 'generated'), { recursive: true })
  folder = mkdtempSync(join(root, 'generated', 'init-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function project(name: string, packages: readonly string[]): string {
  const at = join(folder, name.replaceAll(/\W/g, '-'))
  mkdirSync(at)
  const dependencies = Object.fromEntries(packages.map((each) => [each, '*']))
  writeFileSync(
    join(at, 'package.json'),
    JSON.stringify({ name: 'fresh', type: 'module', dependencies }),
  )
  return at
}

/** Those whose driver and package are here. */
const here = clients.filter(
  ({ driver, package: name }) =>
    `./drivers/${driver}` in drivers.exports && existsSync(join(root, 'node_modules', name)),
)

test('the file of every client type-checks and runs', async () => {
  expect(here.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['prisma', 'drizzle', 'kysely', 'typeorm', 'postgres', 'pg']),
  )
  for (const { name, package: shown, needs = [] } of here) {
    const at = project(name, [shown, ...needs])
    if (name === 'prisma') {
      mkdirSync(join(at, 'prisma'))
      const output = relative(
        join(at, 'prisma'),
        join(root, 'examples/upload-quota/prisma/generated'),
      )
      writeFileSync(
        join(at, 'prisma/schema.prisma'),
        `generator client {\n  provider = "prisma-client"\n  output   = "${output}"\n}\n`,
      )
    }
    const { code, out } = await runCommand(['init', '--yes', '--json'], {}, at)
    expect([name, code]).toEqual([name, 0])
    expect(JSON.parse(out)).toMatchObject({ client: name, file: 'holdfast.ts', done: true })
  }
  const names = here.map(({ name }) => name.replaceAll(/\W/g, '-'))
  writeFileSync(
    join(folder, 'all.ts'),
    `import { lockKey } from 'holdfast'
${names.map((name, at) => `import { hf as hf${at} } from './${name}/holdfast.ts'`).join('\n')}
${names.map((name, at) => `console.log('${name}', await hf${at}.guard(lockKey('a', 1), async () => 'in'))`).join('\n')}
process.exit()
`,
  )
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.json',
      compilerOptions: { isolatedDeclarations: false, declaration: false },
      include: ['all.ts'],
      exclude: [],
    }),
  )
  const run = promisify(execFile)
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  await run(process.execPath, [tsc, '-p', folder, '--pretty', 'false']).catch(
    (error: { stdout: string }) => expect(error.stdout).toBe(''),
  )
  const { directUrl } = await testDatabase()
  const { stdout } = await run(process.execPath, ['--import', fromSource, join(folder, 'all.ts')], {
    env: { ...process.env, DATABASE_URL: directUrl },
  })
  expect(stdout).toBe(names.map((name) => `${name} in\n`).join(''))
})

describe('init', () => {
  test('writes nothing without --yes, and nothing over a file', async () => {
    const at = project('asks', ['pg'])
    mkdirSync(join(at, 'src'))
    const asked = await runCommand(['init'], {}, at)
    expect([asked.code, asked.out]).toEqual([3, expect.stringContaining('Nothing was written')])
    expect(asked.out).toContain("import pg from 'pg'")
    expect(existsSync(join(at, 'src/holdfast.ts'))).toBe(false)
    const written = await runCommand(['init', '--yes'], {}, at)
    expect(written.out).toMatch(
      /^Wrote src\/holdfast\.ts, for pg\.\n\nNext:\n[^]*npx holdfast migrate/,
    )
    expect(written.out).toContain('npm install holdfast')
    writeFileSync(join(at, 'src/holdfast.ts'), 'mine')
    const again = await runCommand(['init', '--yes', '--json'], {}, at)
    expect([again.code, JSON.parse(again.err)]).toMatchObject([
      1,
      { error: { code: 'FILE_EXISTS' } },
    ])
    expect(readFileSync(join(at, 'src/holdfast.ts'), 'utf8')).toBe('mine')
  })

  test('takes what knows more, or what is named', async () => {
    const at = project('several', ['pg', 'postgres', 'drizzle-orm', 'holdfast'])
    const found = async (...flags: string[]): Promise<unknown> =>
      (
        JSON.parse((await runCommand(['init', '--json', ...flags], {}, at)).out) as {
          client: unknown
        }
      ).client
    expect(await found()).toBe('drizzle')
    expect(await found('--client', 'postgres')).toBe('postgres')
    expect(await runCommand(['init', '--client', 'oracle'], {}, at)).toMatchObject({ code: 2 })
    expect(await runCommand(['init', '--file', 'a.py'], {}, at)).toMatchObject({ code: 2 })
  })

  test('says so where it finds none', async () => {
    const at = project('none', ['left-pad'])
    for (const place of [at, dirname(folder)]) {
      const { code, err } = await runCommand(['init', '--json'], {}, place)
      expect([code, JSON.parse(err)]).toMatchObject([1, { error: { code: 'NOT_FOUND' } }])
    }
  })
})

test('skill add copies it, and leaves what somebody changed', async () => {
  const at = project('skill', [])
  const place = join(at, '.claude/skills/holdfast')
  const first = await runCommand(['skill', 'add'], {}, at)
  expect([first.code, first.out]).toEqual([0, 'Wrote 4 of 4 files into .claude/skills/holdfast.\n'])
  expect(readFileSync(join(place, 'SKILL.md'), 'utf8')).toMatch(
    /^---\nname: holdfast\ndescription: /,
  )
  expect((await runCommand(['skill', 'add'], {}, at)).out).toContain('is up to date already')
  writeFileSync(join(place, 'references/find.md'), 'mine')
  rmSync(join(place, 'SKILL.md'))
  const refused = await runCommand(['skill', 'add', '--json'], {}, at)
  expect([refused.code, JSON.parse(refused.err)]).toMatchObject([
    1,
    { error: { code: 'FILE_EXISTS' } },
  ])
  expect(existsSync(join(place, 'SKILL.md'))).toBe(false)
  expect(await runCommand(['skill', 'add', '--overwrite'], {}, at)).toMatchObject({ code: 0 })
  expect(readFileSync(join(place, 'references/find.md'), 'utf8')).not.toBe('mine')
  expect(await runCommand(['skill', 'add', 'docs/agents'], {}, at)).toMatchObject({ code: 0 })
  expect(existsSync(join(at, 'docs/agents/references/prove.md'))).toBe(true)
})
