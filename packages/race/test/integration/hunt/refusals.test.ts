/** Handlers that say no with the status 200: their limits are found, and a refutation says what it takes for granted. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { hunt, type HuntedPair, type HuntReport, huntTests, instrument } from '../../../src/hunt.ts'
import { wholeHunt } from '../../../src/hunt/hunt-calls.ts'
import type { SuiteContext } from '../../../src/hunt/record/open-recording.ts'
import { runHunt } from '../../../src/hunt/run-hunt.ts'
import { record } from '../../../src/record.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE codes (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
      CREATE TABLE tries (id serial PRIMARY KEY, code text NOT NULL);
      CREATE TABLE likes (code text PRIMARY KEY, n int NOT NULL);
      INSERT INTO likes VALUES ('A', 0);
      INSERT INTO codes VALUES ('A', 0, 6)`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

/** Racy at its limit. */
async function use(code: string): Promise<boolean> {
  const { rows } = await pool.query('SELECT uses, most FROM codes WHERE code = $1', [code])
  if (rows[0].uses >= rows[0].most) return false
  await pool.query('UPDATE codes SET uses = uses + 1 WHERE code = $1', [code])
  return true
}

/** Not racy. */
async function useOnce(code: string): Promise<boolean> {
  const update = 'UPDATE codes SET uses = uses + 1 WHERE code = $1 AND uses < most'
  return (await pool.query(update, [code])).rowCount === 1
}

const answers: Readonly<Record<string, (code: string) => Promise<unknown>>> = {
  '/ok': async (code) => ({ ok: await use(code) }),
  '/error': async (code) => ((await use(code)) ? { used: code } : { error: 'used up' }),
  '/word': async (code) => ({ is: (await use(code)) ? 'used' : 'over' }),
  '/safe': async (code) => ((await useOnce(code)) ? { used: code } : { error: 'used up' }),
  // A refusal that leaves something behind.
  '/audited': async (code) => {
    if (await use(code)) return { used: code }
    await pool.query('INSERT INTO tries (code) VALUES ($1)', [code])
    return { error: 'used up' }
  },
  '/like': async (code) => {
    await pool.query('UPDATE likes SET n = n + 1 WHERE code = $1', [code])
    return { liked: code }
  },
}

async function app(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const body = await answers[request.url ?? '']?.(JSON.parse(text).code)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const suiteOf =
  (path: string) =>
  async ({ fetch }: SuiteContext): Promise<void> => {
    const { status } = await fetch(path, { method: 'POST', body: '{"code":"A"}' })
    expect(status).toBe(200)
  }
const huntIn = (path: string, refused?: readonly string[]): Promise<HuntReport> =>
  hunt({ url, app, suite: suiteOf(path), ...(refused && { refused }) })
const only = ({ pairs }: HuntReport): HuntedPair | undefined => pairs[0]

test.each([
  ['/ok', undefined],
  ['/error', 'error'],
  ['/word', 'is=over'],
])('%s: the limit is found, and the race is proven there', async (path, learned) => {
  const report = await huntIn(path)
  expect(only(report)).toMatchObject({
    verdict: 'proven',
    from: ['the rows after it ran 5 times'],
  })
  const notes = report.notes.join()
  if (learned === undefined) expect(notes).toBe('')
  else expect(notes).toContain(`POST ${path}: answers with ${learned} were taken for refusals`)
  // A test of it knows that too.
  const [test_] = huntTests(report, { app: 'app.ts' })
  expect(test_?.text.includes(`refused: ['${learned}']`)).toBe(learned !== undefined)
})

test('one that is not racy is refuted where its limit is, and nothing is assumed', async () => {
  const report = await huntIn('/safe')
  expect(only(report)).toMatchObject({ verdict: 'refuted' })
  expect(only(report)?.from).toContain('the rows after it ran 5 times')
  expect(only(report)?.assumed).toBeUndefined()
})

test('where a refusal leaves something behind, the place at which answers change is an edge all the same', async () => {
  const report = await huntIn('/audited')
  expect(only(report)).toMatchObject({ verdict: 'proven' })
  expect(report.notes.join()).not.toContain('were taken for refusals')
})

test('what the user says is a refusal is one', async () => {
  const report = await huntIn('/audited', ['error'])
  expect(only(report)).toMatchObject({ verdict: 'proven', from: ['the rows after it ran 5 times'] })
  await expect(huntIn('/ok', ['=x'])).rejects.toThrow(/a path into the answer/)
})

test('a call without a limit is refuted on an assumption, which is said', async () => {
  const report = await huntIn('/like')
  expect(only(report)).toMatchObject({
    verdict: 'refuted',
    assumed:
      'POST /like was never refused (30 calls in a row were accepted), and all its answers were taken for successes',
  })
  expect(report.notes).toEqual([
    expect.stringMatching(/^no limit was found of POST \/like: .*--refused 'ok=false'/),
  ])
})

test('the control: a search that meets no refusal cannot say refuted without saying so', async () => {
  const parts = { ...wholeHunt({ explore, record }), edges: async () => [] }
  const report = await runHunt(parts, { url, app, suite: suiteOf('/ok') })
  expect(only(report)).toMatchObject({
    verdict: 'refuted',
    assumed: expect.stringContaining('POST /ok was never refused'),
  })
})
