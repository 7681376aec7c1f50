/**
 * The quick starts: each page is done as it is written, in an empty folder outside the workspace, with what is packed. Its
 * test has to prove the bug, and to pass with the fix.
 */
import { execFile } from 'node:child_process'
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { createDatabase, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import {
  type Block,
  blocksOf,
  isQuickStart,
  type Page,
  proseLines,
  readPages,
  root,
} from '../docs/checks/pages.ts'
import { openShelf, type Run, type Shelf } from '../support/packed-shelf.ts'

const pages = readPages().filter(isQuickStart)
/** In a brief run one page of each kind: by address, with a generated client, compiled. */
const isChosen = ({ path }: Page): boolean =>
  process.env['HOLDFAST_BRIEF'] !== '1' || /postgres-js|prisma|nestjs/.test(path)
/** The lines that are not empty: what a reader has to get through. */
const mostLines = 120
let shelf: Shelf

beforeAll(async () => {
  shelf = await openShelf(['holdfast', 'race', 'nestjs'])
})

afterAll(async () => {
  await shelf[Symbol.asyncDispose]()
})

const nameOf = ({ path }: Page): string => basename(path, '.md')
const isTest = ({ language, code }: Block): boolean => language === 'sh' && code.includes('--test')

interface Followed {
  /** With the bug, and with the fix. */
  readonly first: Run
  readonly last: Run
}

/** Does what the page says, from its first block to its last, and then runs its test again. */
async function follow(page: Page): Promise<Followed> {
  const project = await shelf.project(nameOf(page))
  const url = await createDatabase(inject('postgresUrl'), 'start', inject('emptyDatabase'))
  const run = async ({ code }: Block): Promise<Run> =>
    await project.run(code.replaceAll('postgres://localhost/test', url), {
      DATABASE_URL: url,
      NODE_ENV: 'test',
      // Prisma generates without its engine, and would fetch it all the same.
      PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
      CHECKPOINT_DISABLE: '1',
    })
  const blocks = blocksOf(page)
  const command = blocks.find(isTest)
  if (command === undefined) throw new Error(`${page.path} runs no test`)
  let first: Run | undefined
  for (const block of blocks) {
    if (block === command) first = await run(block)
    else if (block.language === 'sh') expect(await run(block)).toMatchObject({ passes: true })
    else if (block.language === 'sql') await withClient(url, (client) => client.query(block.code))
    else if (block.language !== 'text') await write(block, project.folder)
  }
  return { first: first as Run, last: await run(command) }
}

/** A file that was there is kept beside the new one, for the check of the types. */
async function write({ page, line, code }: Block, folder: string): Promise<void> {
  const [, name] = /^\/\/ ([\w./-]+)\n/.exec(code) ?? []
  if (name === undefined) throw new Error(`${page}:${line} does not name its file`)
  const file = join(folder, name)
  await mkdir(dirname(file), { recursive: true })
  await rename(file, file.replace(/\.ts$/, '-before.ts')).catch(() => undefined)
  await writeFile(file, `${code}\n`)
}

describe('the quick starts', () => {
  test('are one page for each client, short, and alike', () => {
    expect(pages.map(nameOf).toSorted()).toEqual([
      'drizzle',
      'knex',
      'kysely',
      'mikro-orm',
      'nestjs',
      'pg',
      'postgres-js',
      'prisma',
      'typeorm',
    ])
    for (const page of pages) {
      const headings = proseLines(page).filter((line) => line.startsWith('## '))
      expect([page.path, ...headings]).toEqual([
        page.path,
        '## Install',
        '## The bug',
        '## The proof',
        '## The fix',
        '## Next',
      ])
      const lines = page.text.split('\n').filter((line) => line !== '')
      expect([page.path, lines.length <= mostLines]).toEqual([page.path, true])
    }
  })

  test.each(pages.filter(isChosen).map((page) => [page.path, page] as const))(
    '%s proves its bug, and its fix',
    { timeout: 180_000 },
    async (_, page) => {
      const { first, last } = await follow(page)
      expect(first).toMatchObject({ passes: false })
      const told = blocksOf(page).filter(({ language }) => language === 'text')
      expect(told).toHaveLength(1)
      for (const line of told[0]?.code.split('\n') ?? [])
        expect(first.output).toContain(line.trim())
      expect(last.passes ? 'passes' : last.output).toBe('passes')
    },
  )

  test('are type-checked, before and after', async () => {
    const types = join(shelf.folder, 'node_modules/@types')
    await mkdir(dirname(types))
    await symlink(join(root, 'node_modules/@types'), types)
    await writeFile(
      join(shelf.folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module: 'nodenext',
          target: 'es2024',
          types: ['node'],
          strict: true,
          noEmit: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
        },
        // The one of NestJS has compiled itself.
        exclude: ['shelf', 'nestjs', '**/node_modules'],
      }),
    )
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const told = await promisify(execFile)(process.execPath, [compiler, '-p', shelf.folder]).catch(
      (error: unknown) => error as { stdout: string },
    )
    expect(told.stdout).toBe('')
  })
})

describe('the checks go red', () => {
  const pg = pages.find((page) => nameOf(page) === 'pg') as Page

  test('for a fix that is none', { timeout: 180_000 }, async () => {
    const text = pg.text.replace("hf.guard(lockKey('team', team), ", 'hf.transaction(')
    expect(text).not.toBe(pg.text)
    const { last } = await follow({ path: 'docs/start/no-fix.md', text })
    expect(last.output).toMatch(/✗ race in /)
  })

  test('for a package that the page forgets to install', async () => {
    const text = pg.text.replace('npm install holdfast pg', 'npm install holdfast')
    const { first } = await follow({ path: 'docs/start/forgetful.md', text })
    expect(first.output).toContain('ERR_MODULE_NOT_FOUND')
  })
})
