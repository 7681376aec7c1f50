/** A suite that logs in for each test: pairs are found all the same, and nothing of who it was is written into tests. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { JsonHunt, JsonPair } from '../../../src/hunt.ts'
import { type Ended, runHuntProcess, runNode } from '../../support/hunt-process.ts'

const path = (from: string): string => fileURLToPath(new URL(from, import.meta.url))
const hunted = path('../../support/hunted/')
const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-logins-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function hunt(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Ended & { pair(name: string): JsonPair | undefined }> {
  const json = join(folder, 'hunt.json')
  const app = ['--app', join(hunted, 'login-app.ts'), '--json', json]
  const suite = ['node', join(hunted, 'suite-login.ts')]
  const ended = await runHuntProcess([...app, ...args, '--', ...suite], {
    DATABASE_URL: url,
    TMPDIR: folder,
    ...environment,
  })
  const { pairs } = JSON.parse(readFileSync(json, 'utf8')) as JsonHunt
  return { ...ended, pair: (name) => pairs.find((pair) => pair.name === name) }
}

let ended: Awaited<ReturnType<typeof hunt>>
beforeAll(async () => {
  ended = await hunt(['--write-tests', folder, '--runner', 'node'])
})

test('two that were sent by different logins are sent by one of them', () => {
  expect(ended.pair('POST /spend × POST /earn')).toMatchObject({
    verdict: 'proven',
    from: [expect.stringMatching(/both sent by the same$/)],
  })
})

test('a login that is not in a header is told, with the rows that are missing', async () => {
  const { pair } = await hunt([], { TOKEN_IN: 'body' })
  const { verdict, because } = pair('POST /spend × POST /earn') ?? {}
  expect(verdict).toBe('undecided')
  expect(because).toMatch(
    /^no rows were found from which both are accepted: POST \/\w+ \(\d\) was refused with 401 from the rows before POST \/\w+ \(\d\)\. Missing there, or others, of the rows that it began with: .*1 row of public\.sessions/,
  )
})

const file = join(folder, 'post-spend-x-itself.test.mjs')
const secrets = ['ann.miller', 'bob.smith', 'WorthKeepingSecret', 'ses-ann', 'reset-4711']

test('a written test has nothing in it that looks like a secret, and says so', () => {
  const text = readFileSync(file, 'utf8')
  for (const one of secrets) expect(text).not.toContain(one)
  expect(text).toContain('2026-01-02')
  expect(text).toMatch(/Placeholders stand for the values of .*public\.users\.password_hash/)
  expect(ended.err).toMatch(
    /wrote .*; placeholders stand for the values of .*public\.users\.email.*, which look like secrets/,
  )
})

test('and fails on the race as it stands, and passes without it', async () => {
  const text = readFileSync(file, 'utf8')
    .replace(`'@holdfast/race'`, `'${path('../../../src/index.ts')}'`)
    .replace(`'@holdfast/race/hunt'`, `'${path('../../../src/hunt.ts')}'`)
  const copy = join(folder, 'copy.test.mjs')
  writeFileSync(copy, text)
  const run = (more: NodeJS.ProcessEnv = {}): Promise<Ended> =>
    runNode(['--test', copy], { DATABASE_URL: url, ...more })
  expect((await run()).out).toContain('race in POST /spend × itself')
  expect(await run({ SPENDING: 'fixed' })).toMatchObject({ code: 0 })
})
