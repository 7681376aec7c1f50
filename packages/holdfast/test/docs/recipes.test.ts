/** The code of the recipes: type-checked, and their tests run on the bug, which they find, and on every fix. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createDatabase, withClient } from '@holdfast/testkit'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { type Page, readPages } from './checks/pages.ts'
import {
  isRecipe,
  landingPath,
  openRecipes,
  runProgram,
  runTest,
  tables,
  type Version,
} from './checks/recipes.ts'
import { runTabs, stories, tabsOf, type Told } from './checks/tabs.ts'

const pages = readPages().filter(isRecipe)
const landing = readPages().filter(({ path }) => path === landingPath)
const isBrief = process.env['HOLDFAST_BRIEF'] === '1'

async function databaseFor({ sql }: Pick<Version, 'sql'>): Promise<string> {
  const url = await createDatabase(inject('postgresUrl'), 'recipe', inject('installedDatabase'))
  await withClient(url, async (client) => {
    for (const text of [readFileSync(tables, 'utf8'), ...sql]) await client.query(text)
  })
  return url
}

describe('the recipes', () => {
  const book = openRecipes([...pages, ...landing])
  afterAll(() => book[Symbol.dispose]())
  /** In a brief run the bug and the first fix of two of the pages, and each other client once: all go the same way. */
  const brief = new Set([
    ...['wallet', 'booking'].flatMap((name) =>
      book.versions.filter(({ page }) => page.endsWith(`/${name}.md`)).slice(0, 2),
    ),
    ...Object.entries({
      coupons: 'pg',
      deploy: 'drizzle',
      stock: 'kysely',
      transfer: 'typeorm',
    }).flatMap(([name, client]) =>
      book.versions.filter((one) => one.page.endsWith(`/${name}.md`) && one.client === client),
    ),
  ])
  const chosen = isBrief ? [...brief] : book.versions

  test('are type-checked', async () => {
    expect(book.versions.length).toBeGreaterThan(30)
    expect(await book.typeErrors()).toEqual([])
  })

  test('have a bug, a fix, and a test each', () => {
    for (const { path } of pages.filter((page) => !page.path.endsWith('README.md'))) {
      const versions = book.versions.filter(({ page }) => page === path)
      expect([path, versions.map(({ isBug }) => isBug).filter(Boolean)]).toEqual([path, [true]])
      expect([path, versions.length]).not.toEqual([path, 1])
      expect([path, versions[0]?.tests.length]).toEqual([path, 1])
    }
  })

  test('have their fix for each client, if the client is in its code', () => {
    const clients = Map.groupBy(book.versions, ({ page }) => page)
    const tabbed = [...clients].map(([page, versions]) => {
      const names = versions.flatMap(({ client }) => client ?? [])
      return [basename(page, '.md'), names] as const
    })
    const withTabs = tabbed.filter(([, names]) => names.length > 0)
    expect(withTabs).toHaveLength(12)
    for (const tab of withTabs)
      expect(tab).toEqual([tab[0], ['pg', 'drizzle', 'kysely', 'typeorm']])
  })

  describe('do the same with each client, also if a row is missing or the call comes again:', () => {
    test('each page with tabs is told', () => {
      const tabbed = book.versions.flatMap(({ page, client }) => (client ? [page] : []))
      const names = [...new Set(tabbed.map((page) => basename(page, '.md')))]
      expect(Object.keys(stories).toSorted()).toEqual(names.toSorted())
    })
    test.each(isBrief ? ['transfer', 'webhooks'] : Object.keys(stories))('%s', async (name) => {
      const done = await runTabs(name, tabsOf(book, name), await databaseFor({ sql: [] }))
      expect(Object.keys(done)).toEqual(['prisma', 'pg', 'drizzle', 'kysely', 'typeorm'])
      expect(unlike(name, done)).toEqual([])
    })
  })

  test('of the landing page run, one for each client', async () => {
    expect(book.programs).toHaveLength(6)
    const url = await databaseFor({ sql: [] })
    for (const { title, file } of isBrief ? book.programs.slice(0, 1) : book.programs) {
      expect([title, await runProgram(file, url)]).toEqual([title, { passes: true, output: '' }])
    }
  })

  describe('run', () => {
    test.each(chosen.map((version) => [version.title, version] as const))(
      '%s',
      { timeout: 180_000 },
      async (_, version) => {
        const url = await databaseFor(version)
        for (const name of version.tests) {
          const { passes, output } = await runTest(join(version.folder, name), url)
          if (version.isBug) expect(output).toMatch(/✗ (?:race|deadlock) in /)
          else expect(passes ? 'passes' : output).toBe('passes')
        }
      },
    )
  })
})

/** Answers that are not those of the story, and tables that are not those of the first tab. */
function unlike(name: string, done: Readonly<Record<string, Told>>): string[] {
  const [first] = Object.values(done)
  return Object.entries(done).flatMap(([client, told]) =>
    Object.entries(told).flatMap(([title, { answers, rows }]) => {
      const expected = stories[name]?.courses[title]?.[1].map((answer) => answer ?? null)
      const given = JSON.stringify(answers)
      return [
        ...(given === JSON.stringify(expected) ? [] : [`${client}, ${title}: ${given}`]),
        ...(rows === first?.[title]?.rows ? [] : [`${client}, ${title}: ${rows}`]),
      ]
    }),
  )
}

describe('the checks go red', () => {
  const setUp = pages.find(({ path }) => path.endsWith('README.md')) as Page
  const made = (text: string): Page => ({ path: 'docs/recipes/made-up.md', text })

  test('for a block that does not name its file', () => {
    expect(() => openRecipes([setUp, made('```ts\nconst a = 1\n```')])).toThrow(/name its file/)
  })

  test('for a tab that takes no row for a changed row', async () => {
    const page = pages.find(({ path }) => path.endsWith('/webhooks.md')) as Page
    const check = /    if \(rowCount !== 1\) throw .*\n/
    expect(page.text).toMatch(check)
    using book = openRecipes([setUp, { ...page, text: page.text.replace(check, '') }])
    const tabs = tabsOf(book, 'webhooks').slice(0, 2)
    const done = await runTabs('webhooks', tabs, await databaseFor({ sql: [] }))
    expect(unlike('webhooks', done)).toEqual([
      'pg, before the purchase is stored, and again: [null,null,null]',
      expect.stringMatching(/^pg, .*"paid":0/),
    ])
  })

  test('for a rule whose lock names something else', async () => {
    const page = pages.find(({ path }) => path.endsWith('/coupons.md')) as Page
    const lock = ", lockKey('coupon-user', user)"
    expect(page.text).toContain(lock)
    using book = openRecipes([setUp, { ...page, text: page.text.replace(lock, '') }])
    const { folder, sql } = book.versions.at(-1) as Version
    const ran = await runTest(join(folder, 'redeem-one.test.ts'), await databaseFor({ sql }))
    expect(ran.output).toMatch(/✗ race in /)
  })

  test('for a name that nobody has declared, at its place in the page', async () => {
    using book = openRecipes([setUp, made('# A\n\n```ts\n// a.ts\nconsole.log(prisma)\n```')])
    expect(await book.typeErrors()).toEqual([
      expect.stringMatching(/^docs\/recipes\/made-up\.md:5 error TS2304/),
    ])
  })
})
