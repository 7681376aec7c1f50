/** `--write-tests`: what is written runs as it stands, fails on the race, passes without it, and outlives a new column. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { type Ended, runHuntProcess, runNode } from '../../support/hunt-process.ts'

const path = (from: string): string => fileURLToPath(new URL(from, import.meta.url))
const hunted = path('../../support/hunted/')
const app = join(hunted, 'app.ts')
const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-written-'))
afterAll(() => rmSync(folder, { recursive: true }))

const environment = { DATABASE_URL: url, TMPDIR: folder, WITH_BANK: '1' }
const file = join(folder, 'post-coupons-x-itself.test.mjs')
let ended: Ended
let text: string
beforeAll(async () => {
  const suite = ['node', '--test', join(hunted, 'suite-node.ts')]
  const args = ['--app', app, '--write-tests', folder, '--runner', 'node']
  ended = await runHuntProcess([...args, '--', ...suite], environment)
  text = readFileSync(file, 'utf8')
})

/** Nothing is built here: our packages are their sources. */
function fromSource(of: string): string {
  return of
    .replace(`'@holdfast/race'`, `'${path('../../../src/index.ts')}'`)
    .replace(`'@holdfast/race/hunt'`, `'${path('../../../src/hunt.ts')}'`)
}

/** Without the bank that was there in the hunt. */
async function runTest(
  of: string = text,
  more: NodeJS.ProcessEnv = {},
): Promise<Pick<Ended, 'code' | 'out'>> {
  const copy = join(folder, 'copy.test.mjs')
  writeFileSync(copy, fromSource(of))
  const { code, out } = await runNode(['--test', copy], { DATABASE_URL: url, ...more })
  return { code, out }
}

const fixed = { COUPONS: 'fixed' }

test('one file for each race, and what was there stays', async () => {
  expect(ended.err).toContain(`hunt: wrote ${file}`)
  expect(readdirSync(folder).filter((name) => name.endsWith('.mjs'))).toHaveLength(1)
  expect(text).toContain(`'public.coupons': {`)
  expect(text).not.toContain(url)
  expect(text).not.toContain('public.race_')
})

test('it fails on the race, with the timeline', async () => {
  const { code, out } = await runTest()
  expect(code).toBe(1)
  expect(out).toContain('race in POST /coupons × itself')
  expect(out).toContain('SELECT uses, most FROM coupons')
})

test('the bank is not there, and answers as it has', async () => {
  expect(text).toMatch(/environment: \{ BANK_URL: 'http:\/\/127\.0\.0\.1:\d+' \}/)
  const { out } = await runTest(text.replace(/heard: \[[\s\S]*?\n {4}\],/, 'heard: [],'))
  expect(out).toContain('is failed by itself from the rows of this test')
})

test('it passes without the race, and puts the rows back', async () => {
  const rows = (): Promise<unknown> =>
    withClient(url, async (client) => (await client.query('TABLE coupons')).rows)
  const before = await rows()
  expect(await runTest(text, fixed)).toMatchObject({ code: 0 })
  expect(await rows()).toEqual(before)
})

test('vitest runs it too', { timeout: 120_000 }, async () => {
  // As deep as the folder of the tests: they name the application from there.
  const root = mkdtempSync(join(tmpdir(), 'race-written-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  const modules = path('../../../../../node_modules/')
  const runner = `'${modules}vitest/dist/index.js'`
  writeFileSync(join(root, 'copy.test.ts'), fromSource(text).replace(`'node:test'`, runner))
  writeFileSync(join(root, 'vitest.config.mjs'), 'export default {}')
  const run = (more: NodeJS.ProcessEnv): Promise<Ended> =>
    runNode([`${modules}vitest/vitest.mjs`, 'run', '--root', root], { DATABASE_URL: url, ...more })
  expect((await run({})).err).toContain('race in POST /coupons × itself')
  expect((await run(fixed)).code).toBe(0)
})

describe('after a migration', () => {
  const migrate = (sql: string): Promise<unknown> => withClient(url, (client) => client.query(sql))

  test('a new column with a default is filled', async () => {
    await migrate(`ALTER TABLE coupons ADD COLUMN note text NOT NULL DEFAULT 'x'`)
    expect((await runTest()).out).toContain('race in POST /coupons × itself')
    expect((await runTest(text, fixed)).code).toBe(0)
  })

  test('a column that is gone is told, and nothing is passed over', async () => {
    await migrate('ALTER TABLE cards RENAME COLUMN most TO ceiling')
    const { code, out } = await runTest(text, fixed)
    expect(code).toBe(1)
    expect(out).toContain('name a column most of public.cards, which is not there')
    await migrate('ALTER TABLE cards RENAME COLUMN ceiling TO most')
  })
})

test('the control: a call that is refused anyway is no test that passes', async () => {
  const { code, out } = await runTest(text.replaceAll(`"code":"A"`, `"code":"B"`), fixed)
  expect(code).toBe(1)
  expect(out).toContain('POST /coupons is refused by itself from the rows of this test')
})
