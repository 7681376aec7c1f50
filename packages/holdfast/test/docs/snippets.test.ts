/**
 * The code that users see. Every TypeScript block of the README, the docs and the examples is
 * type-checked against the library; blocks marked `run` are run against a real server, and what
 * they print is compared with what they say they print.
 */
import { readFileSync } from 'node:fs'
import { createDatabase, sample, withClient } from '@holdfast/testkit'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { execute } from './checks/execute.ts'
import { type Block, blocksOf, isForUsers, isQuickStart, readPages } from './checks/pages.ts'
import { isRecipe } from './checks/recipes.ts'
import { checkRegions, readRegion } from './checks/regions.ts'
import { lastingLines, snippetOf } from './checks/snippets.ts'
import { openWorkshop, type Workshop } from './checks/workshop.ts'

const blocks = readPages().filter(isForUsers).flatMap(blocksOf)

describe('the snippets', () => {
  // Those of the recipes and quick starts are files of projects, with tests of their own.
  const isFile = (path: string): boolean => isRecipe({ path }) || isQuickStart({ path })
  const workshop = openWorkshop(blocks.filter(({ page }) => !isFile(page)))
  afterAll(() => workshop[Symbol.dispose]())

  test('are type-checked', async () => {
    expect(workshop.snippets.length).toBeGreaterThan(20)
    expect(await workshop.typeErrors()).toEqual([])
  })

  test('that are taken from files are still what these files say', () => {
    expect(checkRegions(blocks)).toEqual([])
  })

  test('of the README stand alone, and are all run but for the bug', () => {
    const shown = workshop.snippets.filter(({ block }) => block.page === 'README.md')
    expect(shown.map(({ preamble, run }) => [preamble, run])).toEqual([
      [undefined, false],
      [undefined, true],
      [undefined, true],
    ])
  })

  test('of the README show the one line that is the fix', () => {
    const [bug, fix] = ['unguarded', 'guarded'].map((name) =>
      (readRegion(`examples/upload-quota/src/upload-${name}.ts#upload`) as string).split('\n'),
    ) as [string[], string[]]
    expect(bug).toHaveLength(fix.length)
    const changed = bug.flatMap((line, at) => (line === fix[at] ? [] : [`-${line}`, `+${fix[at]}`]))
    expect(changed).toHaveLength(2)
    const [shown, diff] = blocks.filter(({ page }) => page === 'README.md')
    expect(diff?.code.split('\n')).toEqual(changed)
    expect(shown?.code.split('\n')).toContain(changed[0]?.slice(1))
  })

  describe.concurrent('run', () => {
    // A brief run has every second one; the types of all of them are checked.
    const running = sample(
      workshop.snippets.filter(({ run }) => run),
      2,
    )
    test.each(running.map((snippet) => [`${snippet.block.page}:${snippet.block.line}`, snippet]))(
      '%s',
      async (_, snippet) => {
        const printed = await runOf(workshop, snippet)
        const whole = snippet.block.printed !== undefined
        expect(whole ? lastingLines(printed.join('\n')) : printed).toEqual(snippet.prints)
      },
    )
  })
})

const tableOfUploads = readFileSync(
  new URL('../../../../examples/upload-quota/prisma/schema.sql', import.meta.url),
  'utf8',
)

type Snippet = Workshop['snippets'][number]

async function runOf(workshop: Workshop, snippet: Snippet): Promise<string[]> {
  const { preamble } = snippet
  const installs =
    preamble === undefined ||
    readFileSync(preamble, 'utf8').includes('await migrate(fromPg(pool))\n')
  const template = installs ? inject('installedDatabase') : undefined
  const url = await createDatabase(inject('postgresUrl'), 'docs', template)
  // What a block that stands alone finds in the database is what the page says to install.
  if (preamble === undefined) await withClient(url, (client) => client.query(tableOfUploads))
  return await execute(snippet, workshop.fileOf(snippet), url)
}

describe('the checks go red', () => {
  const block = (code: string, flags: string[] = ['run']): Block => ({
    page: 'docs/made-up.md',
    line: 40,
    language: 'ts',
    flags,
    notes: new Map(),
    code,
  })

  test('for a mistake in the types, naming page and line', async () => {
    using workshop = openWorkshop([
      block('const key = lockKey("a", 1)\nawait hf.guard(key)'),
      { ...block('await hf.guard(lockKey("a", 1), async (tx) => tx.query("SELECT 1"))'), line: 90 },
      { ...block('import { lockKey } from "holdfast"\nlockKey({})'), line: 120 },
      { ...block('hf.noSuchRoom'), line: 150 },
    ])
    expect(await workshop.typeErrors()).toEqual([
      expect.stringMatching(/^docs\/made-up\.md:121 error TS/),
      expect.stringMatching(/^docs\/made-up\.md:150 error TS/),
      expect.stringMatching(/^docs\/made-up\.md:41 error TS/),
    ])
  })

  test.each(['README.md', 'docs/recipes/wallet.md', 'docs/start/pg.md'])(
    'for a name that a block of %s does not declare, and for a preamble above it',
    async (page) => {
      const bare = { ...block('await hf.guard(lockKey("a", 1), async () => userId)'), page }
      using workshop = openWorkshop([bare])
      const errors = await workshop.typeErrors()
      for (const name of ['hf', 'lockKey', 'userId']) {
        expect(errors).toContainEqual(
          expect.stringMatching(`^${page}:40 error TS2304: Cannot find name '${name}'`),
        )
      }
      const helped = { ...bare, notes: new Map([['preamble', 'pg']]) }
      expect(() => snippetOf(helped, '.')).toThrow(/has to stand alone/)
    },
  )

  test('for a block that throws or prints something else', async () => {
    using workshop = openWorkshop([
      block('await hf.guard(lockKey("a", 1), async () => { throw new Error("no") })'),
      { ...block('console.log(1 + 1) // → 3'), line: 50 },
      { ...block('console.log(1 + 1) // → 2'), line: 60 },
    ])
    const [throws, lies, tells] = workshop.snippets as [Snippet, Snippet, Snippet]
    await expect(runOf(workshop, throws)).rejects.toThrow(/Error: no/)
    expect(await runOf(workshop, lies)).not.toEqual(lies.prints)
    expect(await runOf(workshop, tells)).toEqual(tells.prints)
  })

  test.each([
    ['an output that nobody compares', block('console.log(2) // → 2', []), /mark the block as run/],
    ['a flag that means nothing', block('', ['runs']), /unknown flag/],
    [
      'a preamble that does not exist',
      { ...block(''), notes: new Map([['preamble', 'gone']]) },
      /names no preamble/,
    ],
  ])('for %s', (_, made, message) => {
    expect(() => snippetOf(made, '.')).toThrow(message)
  })

  test('for a region that has changed or is gone', () => {
    const from = (region: string, code: string): Block => ({
      ...block(code),
      notes: new Map([['region', region]]),
    })
    const region = 'examples/upload-quota/src/upload-guarded.ts#upload'
    const code = readRegion(region) as string
    expect(checkRegions([from(region, code)])).toEqual([])
    expect(checkRegions([from(region, `${code} `)])).toHaveLength(1)
    expect(checkRegions([from(`${region}s`, code)])).toHaveLength(1)
    expect(checkRegions([from('gone.ts#upload', code)])).toHaveLength(1)
  })

  test('for an output that is another than the block below says', async () => {
    const [told, , lied] = blocksOf({
      path: 'docs/made-up.md',
      text: [1, 2]
        .map(
          (n) =>
            `\`\`\`ts run\nconsole.log(1, '${n} ms')\n\`\`\`\n\n<!-- printed: above -->\n\`\`\`text\n${n} 9.5 ms\n\`\`\`\n`,
        )
        .join('\n'),
    }) as [Block, Block, Block]
    using workshop = openWorkshop([told, lied])
    const [right, wrong] = workshop.snippets as [Snippet, Snippet]
    expect(lastingLines((await runOf(workshop, right)).join('\n'))).toEqual(right.prints)
    expect(lastingLines((await runOf(workshop, wrong)).join('\n'))).not.toEqual(wrong.prints)
  })

  test('for a block that is not closed, and notes belong to the block below them', () => {
    const page = (text: string) => ({ path: 'docs/made-up.md', text })
    expect(() => blocksOf(page('```ts\nlockKey()'))).toThrow(/never ends/)
    const [noted, bare] = blocksOf(
      page('<!-- preamble: a -->\n```ts run\n1\n```\n\n<!-- preamble: b -->\n\n```ts\n2\n```'),
    )
    expect(noted).toMatchObject({ line: 3, flags: ['run'], notes: new Map([['preamble', 'a']]) })
    expect(bare).toMatchObject({ line: 9, notes: new Map() })
  })
})
