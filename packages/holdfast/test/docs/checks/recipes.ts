/**
 * The recipes: every block of code is a file of a small project, named in its first line. A page shows several versions of
 * its first file: the bug, and fixes of it. The test of the page has to fail with the bug and to pass with each fix. Where
 * another file is there several times, once for each client, each of them makes a version of the last fix.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Block, blocksOf, type Page, proseLines, root } from './pages.ts'
import { typeCheck } from './workshop.ts'

const fromSource = new URL('../../support/from-source.ts', import.meta.url).href
const client = join(root, 'docs/recipes/generated/prisma/client.ts')
const limitMs = 90_000

/** One version of the code of a page. */
export interface Version {
  /** Page, line and name: `docs/recipes/wallet.md:31 spend.ts`. */
  readonly title: string
  readonly page: string
  /** The driver that the block imports, for tabs: `kysely`. */
  readonly client: string | undefined
  readonly isBug: boolean
  readonly folder: string
  /** Tests of the page that are about this version. */
  readonly tests: readonly string[]
  /** What its section says to run in the database first. */
  readonly sql: readonly string[]
}

export interface RecipeBook extends Disposable {
  readonly versions: readonly Version[]
  /** The blocks of the landing page, each a program. */
  readonly programs: readonly { readonly title: string; readonly file: string }[]
  /** What `tsc` has to say about all of them, at their place in the page. */
  typeErrors(): Promise<string[]>
}

export function isRecipe({ path }: Pick<Page, 'path'>): boolean {
  return path.startsWith('docs/recipes/')
}

/** The landing page of the site: its blocks stand alone. */
export const landingPath = 'website/index.md'

/** Writes each version with all that its page shows besides into a folder of its own, which git ignores. */
export function openRecipes(pages: readonly Page[]): RecipeBook {
  mkdirSync(join(root, 'generated'), { recursive: true })
  const folder = mkdtempSync(join(root, 'generated', 'recipes-'))
  const setUp = filesOf(pages.filter(({ path }) => path === 'docs/recipes/README.md'))
  const places = new Map<string, Block>()
  const versions = pages
    .filter((page) => isRecipe(page) && page.path !== 'docs/recipes/README.md')
    .flatMap((page) => versionsOf(page, setUp, folder, places))
  const landing = join(folder, 'landing')
  const programs = pages
    .filter(({ path }) => path === landingPath)
    .flatMap(blocksOf)
    .filter(({ language }) => language === 'ts')
    .map((block) => {
      const name = `line-${block.line}.ts`
      write(landing, { name, block }, places)
      return { title: `${block.page}:${block.line}`, file: join(landing, name) }
    })
  if (programs.length > 0) writeClient(landing)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../tsconfig.json',
      compilerOptions: { noPropertyAccessFromIndexSignature: false },
      include: ['**/*.ts'],
      exclude: [],
    }),
  )
  return {
    versions,
    programs,
    typeErrors: async () => located(await typeCheck(folder), places),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  }
}

interface File {
  readonly name: string
  readonly block: Block
}

function filesOf(pages: readonly Page[]): File[] {
  return pages.flatMap(blocksOf).flatMap((block) => {
    if (block.language !== 'ts') return []
    const [, name] = /^\/\/ ([\w-]+(?:\.test)?\.ts)\n/.exec(block.code) ?? []
    if (name === undefined) throw new Error(`${block.page}:${block.line} does not name its file`)
    return [{ name, block }]
  })
}

function versionsOf(
  page: Page,
  setUp: readonly File[],
  folder: string,
  places: Map<string, Block>,
): Version[] {
  const files = filesOf([page])
  const main = files[0]?.name
  if (main === undefined) throw new Error(`${page.path} has no code`)
  const shown = files.filter(({ name }) => name === main)
  const besides = new Map(
    [...Map.groupBy(files, ({ name }) => name)].filter(([name]) => name !== main),
  )
  const others = [...besides.values()].flatMap(([, ...later]) => later)
  const firsts = [...besides.values()].flatMap(([first]) => first ?? [])
  const tests = firsts.filter(({ name }) => name.endsWith('.test.ts'))
  const isAbout = (test: File, { name }: File): boolean => test.block.code.includes(`'./${name}'`)
  const statements = blocksOf(page).filter(({ language }) => language === 'sql')
  const last = shown.at(-1) as File
  return [...shown, ...others].map((file, at): Version => {
    const own = join(folder, `${basename(page.path, '.md')}-${at}`)
    const written = new Map([...setUp, ...firsts, last, file].map((one) => [one.name, one]))
    for (const one of written.values()) write(own, one, places)
    writeClient(own)
    const about = tests.filter((test) => isAbout(test, file))
    return {
      title: `${page.path}:${file.block.line} ${file.name}`,
      page: page.path,
      client: /'holdfast\/drivers\/([\w-]+)'/.exec(file.block.code)?.[1],
      isBug: file.block.notes.get('recipe') === 'bug',
      folder: own,
      tests: (file === last || about.length === 0 ? tests : about).map(({ name }) => name),
      sql: statements
        .filter((statement) => sectionOf(page, statement) === sectionOf(page, file.block))
        .map(({ code }) => code),
    }
  })
}

function write(folder: string, { name, block }: File, places: Map<string, Block>): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), `${block.code}\n`)
  places.set(`${basename(folder)}/${name}`, block)
}

/** Where the generated client of a project would be. */
function writeClient(folder: string): void {
  const file = join(folder, 'generated/prisma/client.ts')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `export * from '${relative(dirname(file), client).replaceAll('\\', '/')}'\n`)
}

/** How many headings of the second level are above a block. */
function sectionOf(page: Page, { line }: Block): number {
  return proseLines(page)
    .slice(0, line)
    .filter((text) => text.startsWith('## ')).length
}

/** `wallet-0/spend.ts(3,7): error …` becomes `docs/recipes/wallet.md:33 error …`. */
function located(output: string, places: ReadonlyMap<string, Block>): string[] {
  const errors = output.split('\n').flatMap((line) => {
    const [, file = '', row, message] = /^(\S+?)\((\d+),\d+\): (.*)$/.exec(line) ?? []
    if (message === undefined) return []
    const block = places.get(file)
    if (block === undefined) return [line]
    return [`${block.page}:${block.line + Number(row) - 1} ${message}`]
  })
  return [...new Set(errors)]
}

/** Whether the test passes, and what it says. */
export async function runTest(file: string, databaseUrl: string): Promise<Ran> {
  return await run(['--test-force-exit', file], databaseUrl)
}

/** Runs a block to its end, and does not wait for what it leaves open. */
export async function runProgram(file: string, databaseUrl: string): Promise<Ran> {
  const program = `await import(${JSON.stringify(pathToFileURL(file).href)}); process.exit()`
  return await run(['--input-type=module', '--eval', program], databaseUrl)
}

interface Ran {
  readonly passes: boolean
  readonly output: string
}

async function run(command: readonly string[], databaseUrl: string): Promise<Ran> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--import', fromSource, ...command],
      {
        env: { ...env, DATABASE_URL: databaseUrl, NODE_ENV: 'test' },
        timeout: limitMs,
        killSignal: 'SIGKILL',
      },
    )
    return { passes: true, output: stdout }
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return { passes: false, output: stdout + stderr }
  }
}

/** The tables that the recipes take for granted. */
export const tables: string = fileURLToPath(
  new URL('../../../../../docs/recipes/prisma/schema.sql', import.meta.url),
)
