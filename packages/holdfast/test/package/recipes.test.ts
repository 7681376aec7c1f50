/**
 * The recipes, as a reader has them: the set-up is done as it is written, in an empty folder outside the workspace, with
 * what is packed, and each recipe in a folder of its own. That each fix holds is said by test/docs/recipes.test.ts.
 * The blocks of the README stand alone in the same project.
 */
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { createDatabase, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Block, blocksOf, type Page, readPages, root } from '../docs/checks/pages.ts'
import { isRecipe } from '../docs/checks/recipes.ts'
import { openShelf, type Run, type Shelf, type ShelfProject } from '../support/packed-shelf.ts'

const isSetUp = ({ path }: Page): boolean => path.endsWith('/README.md')
const pages = readPages().filter(isRecipe)
const setUp = pages.filter(isSetUp).flatMap(blocksOf)
const recipes = pages.filter((page) => !isSetUp(page))
const readme = readPages()
  .filter(({ path }) => path === 'README.md')
  .flatMap(blocksOf)
  .filter(({ language }) => language === 'ts')
/** In a brief run one of them; all of them are type-checked. */
const isChosen = ({ path }: Page): boolean =>
  process.env['HOLDFAST_BRIEF'] !== '1' || path.includes('wallet')

let shelf: Shelf
let project: ShelfProject

const nameOf = ({ path }: Page): string => basename(path, '.md')
const fileOf = ({ code }: Block): string | undefined => /^\/\/ ([\w.-]+)\n/.exec(code)?.[1]
const of = (language: string) => (block: Block) => block.language === language

beforeAll(async () => {
  shelf = await openShelf(['holdfast', 'race', 'cli'])
  project = await shelf.project('recipes')
  const url = await createDatabase(inject('postgresUrl'), 'reader', inject('emptyDatabase'))
  const models = recipes.flatMap(blocksOf).filter(of('prisma'))
  const shown = new Set(models.map(({ code }) => code))
  // What the README is about is a model of the reader's.
  const uploads = await readFile(join(root, 'examples/upload-quota/prisma/schema.prisma'), 'utf8')
  shown.add(uploads.slice(uploads.indexOf('model ')))
  for (const block of setUp) {
    if (of('sh')(block)) {
      if (block.code.includes('--test')) continue
      const { passes, output } = await run(block.code, url)
      if (!passes) throw new Error(`${block.page}:${block.line} fails: ${output}`)
    } else {
      const more = of('prisma')(block) ? [...shown] : []
      const file = join(project.folder, fileOf(block) as string)
      await writeFile(file, [block.code, ...more, ''].join('\n\n'))
    }
  }
}, 300_000)

afterAll(async () => {
  await shelf[Symbol.asyncDispose]()
})

async function run(lines: string, url: string): Promise<Run> {
  return await project.run(lines.replaceAll('postgres://localhost/test', url), {
    DATABASE_URL: url,
    NODE_ENV: 'test',
    // Prisma generates without its engine, and would fetch it all the same.
    PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true',
    CHECKPOINT_DISABLE: '1',
  })
}

/** Writes the files of the set-up and of a page; of a file that is shown several times the one that is asked for. */
async function save(page: Page, folder: string, which: Block | undefined): Promise<void> {
  const own = join(project.folder, folder)
  await mkdir(own)
  await symlink('../generated', join(own, 'generated'))
  const files = new Map<string, Block>()
  for (const block of [...setUp, ...blocksOf(page)].filter(of('ts'))) {
    const name = fileOf(block) as string
    if (!files.has(name)) files.set(name, block)
  }
  if (which !== undefined) files.set(fileOf(which) as string, which)
  for (const [name, { code }] of files) await writeFile(join(own, name), `${code}\n`)
}

describe('the recipes, with what is packed', () => {
  test.each(recipes.filter(isChosen).map((page) => [page.path, page] as const))(
    '%s shows its bug, by its own command',
    { timeout: 180_000 },
    async (_, page) => {
      const [tables] = blocksOf(page).filter(of('sql'))
      const [command] = blocksOf(page).filter((block) => block.code.includes('node --test'))
      const url = await createDatabase(inject('postgresUrl'), 'recipe', inject('installedDatabase'))
      await withClient(url, (client) => client.query((tables as Block).code))
      const folder = `${nameOf(page)}-bug`
      await save(page, folder, undefined)
      const { output } = await run(`cd ${folder} && ${(command as Block).code}`, url)
      expect(output).toMatch(/✗ (?:race|deadlock) in /)
    },
  )

  test('each block of the README runs, alone in a folder', { timeout: 180_000 }, async () => {
    expect(readme.length).toBeGreaterThan(1)
    const url = await createDatabase(inject('postgresUrl'), 'readme', inject('installedDatabase'))
    const tables = await readFile(join(root, 'examples/upload-quota/prisma/schema.sql'), 'utf8')
    await withClient(url, (client) => client.query(tables))
    for (const { line, code } of readme) {
      const folder = `readme-${line}`
      await mkdir(join(project.folder, folder))
      await symlink('../generated', join(project.folder, folder, 'generated'))
      await writeFile(join(project.folder, folder, 'block.ts'), `${code}\n`)
      expect(await run(`node ${folder}/block.ts`, url)).toMatchObject({ passes: true })
    }
  })

  test('each block is type-checked beside the files of its page', {
    timeout: 180_000,
  }, async () => {
    for (const page of recipes) {
      for (const block of blocksOf(page).filter(of('ts'))) {
        await save(page, `${nameOf(page)}-${block.line}`, block)
      }
    }
    const clients = ['drizzle-orm', 'kysely', 'typeorm', '@types/node', '@types/pg']
    for (const name of clients) await project.run(`npm install ${name}`, {})
    await writeFile(
      join(project.folder, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          module: 'nodenext',
          target: 'es2024',
          lib: ['es2024', 'esnext.disposable'],
          types: ['node'],
          strict: true,
          noEmit: true,
          skipLibCheck: true,
          allowImportingTsExtensions: true,
        },
        exclude: ['**/node_modules', '*/generated'],
      }),
    )
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const told = await promisify(execFile)(process.execPath, [
      compiler,
      '-p',
      project.folder,
    ]).catch((error: unknown) => error as { stdout: string })
    expect(told.stdout).toBe('')
  })
})
