/** A suite that passes, far from every limit: what is proven, what is refuted, and what a lesser hunt misses. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { call as callOfSuites, hunt } from '../../../src/hunt.ts'
import { wholeHunt } from '../../../src/hunt/hunt-calls.ts'
import type { HuntedPair, HuntReport } from '../../../src/hunt/model.ts'
import type { SuiteContext } from '../../../src/hunt/record/open-recording.ts'
import { runHunt } from '../../../src/hunt/run-hunt.ts'
import { record } from '../../../src/record.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'

instrument(pg)

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE coupons (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
      CREATE TABLE cards (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
      CREATE TABLE teams (id int PRIMARY KEY, members int NOT NULL, most int NOT NULL);
      CREATE TABLE people (id int PRIMARY KEY);
      CREATE TABLE members (team int REFERENCES teams, person int REFERENCES people, PRIMARY KEY (team, person));
      CREATE TABLE purses (owner int PRIMARY KEY, points int NOT NULL);
      INSERT INTO purses VALUES (1, 1000), (2, 0);
      INSERT INTO coupons VALUES ('A', 0, 6);
      INSERT INTO cards VALUES ('A', 0, 6);
      INSERT INTO teams VALUES (1, 0, 2);
      INSERT INTO people SELECT generate_series(1, 4)`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

class Refused extends Error {
  readonly status = 409
}

/** Racy at its limit only: what is written is not what was read. */
async function redeem(code: string): Promise<object> {
  const { rows } = await pool.query('SELECT uses, most FROM coupons WHERE code = $1', [code])
  if (!rows[0] || rows[0].uses >= rows[0].most) throw new Refused()
  await pool.query('UPDATE coupons SET uses = uses + 1 WHERE code = $1', [code])
  return { redeemed: code }
}

/** Looks alike, and is safe. */
async function useCard(code: string): Promise<object> {
  const { rows } = await pool.query('SELECT code FROM cards WHERE code = $1', [code])
  if (!rows[0]) throw new Refused()
  const update = 'UPDATE cards SET uses = uses + 1 WHERE code = $1 AND uses < most'
  const { rowCount } = await pool.query(update, [code])
  if (rowCount === 0) throw new Refused()
  return { used: code }
}

/** Racy at its limit, and never for one person twice. */
async function join(team: number, person: number): Promise<object> {
  const { rows } = await pool.query('SELECT members, most FROM teams WHERE id = $1', [team])
  if (!rows[0] || rows[0].members >= rows[0].most) throw new Refused()
  const insert = 'INSERT INTO members (team, person) VALUES ($1, $2) ON CONFLICT DO NOTHING'
  const { rowCount } = await pool.query(insert, [team, person])
  if (rowCount === 0) throw new Refused()
  await pool.query('UPDATE teams SET members = members + 1 WHERE id = $1', [team])
  return { joined: team }
}

const secretOf = 'Bearer my-very-own-token'

function app(request: IncomingMessage, response: ServerResponse): void {
  async function answer(): Promise<object> {
    if (request.headers.authorization !== secretOf) throw new Refused()
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const body = JSON.parse(text)
    if (request.url === '/coupons') return redeem(body.code)
    if (request.url === '/cards') return useCard(body.code)
    return join(body.team, body.person)
  }
  const end = (status: number, body: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  answer().then(
    (body) => end(200, body),
    (error: unknown) => end(error instanceof Refused ? error.status : 500, {}),
  )
}

async function suite({ fetch }: SuiteContext): Promise<void> {
  const requests = [
    ['/coupons', { code: 'A' }],
    ['/cards', { code: 'A' }],
    ['/teams', { team: 1, person: 1 }],
  ] as const
  for (const [path, body] of requests) {
    const headers = { authorization: secretOf }
    const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(response.status).toBe(200)
  }
}

const verdicts = ({ pairs }: HuntReport): Record<string, string> =>
  Object.fromEntries(pairs.map(({ name, verdict }) => [name, verdict]))
const pairNamed = ({ pairs }: HuntReport, name: string): HuntedPair | undefined =>
  pairs.find((pair) => pair.name === name)

const rowsOf = (): Promise<unknown> =>
  withClient(url, async (client) => {
    const { rows } = await client.query(
      'SELECT (SELECT jsonb_agg(c) FROM coupons c) AS coupons, (SELECT jsonb_agg(m) FROM members m) AS members',
    )
    return rows
  })

test('requests of a suite: the race at the limit is proven, the look-alike is refuted', async () => {
  const before = await rowsOf()
  const phases = new Set<string>()
  const report = await hunt({ url, app, suite, onProgress: ({ phase }) => phases.add(phase) })
  expect(verdicts(report)).toEqual({
    'POST /coupons × itself': 'proven',
    'POST /cards × itself': 'refuted',
    'POST /teams × itself': 'proven',
  })
  const coupons = pairNamed(report, 'POST /coupons × itself')
  expect(coupons?.sentence).toMatch(/coupons A: uses is 7; after every serial order it is 6/)
  expect(coupons?.from).toEqual(['the rows after it ran 5 times'])
  expect(coupons?.token).toMatch(/^r1\./)
  expect(coupons?.places?.map(({ file }) => file)).toContainEqual(
    expect.stringMatching(/hunt\.test\.ts$/),
  )
  // One person cannot join twice: another one was found.
  expect(pairNamed(report, 'POST /teams × itself')?.from).toEqual([
    expect.stringMatching(/other values of body\.person/),
  ])
  expect(phases).toEqual(new Set(['record', 'look', 'prove']))
  expect(await rowsOf()).toEqual(before)
  expect(
    JSON.stringify(report, (_, value) => (typeof value === 'bigint' ? '' : value)),
  ).not.toContain(secretOf)
})

test('the control: without the search for edges the same races are missed', async () => {
  const parts = { ...wholeHunt({ explore, record }), edges: async () => [] }
  const report = await runHunt(parts, { url, app, suite })
  expect(verdicts(report)).toMatchObject({ 'POST /coupons × itself': 'refuted' })
})

test('a call that has made its table is not refuted by what it does once it is there', async () => {
  const note = async (text: string): Promise<object> => {
    await pool.query('CREATE TABLE IF NOT EXISTS notes (text text PRIMARY KEY)')
    await pool.query('INSERT INTO notes VALUES ($1) ON CONFLICT DO NOTHING', [text])
    return { noted: text }
  }
  const suite = ({ call }: SuiteContext): Promise<object> => call('note', note, 'A')
  const made = await hunt({ url, suite })
  expect(pairNamed(made, 'note × itself')).toMatchObject({
    verdict: 'undecided',
    because: 'the tables were others before note than after it, and rows alone are put back',
  })
  // The control: from now on it makes nothing.
  const again = await hunt({ url, suite })
  expect(pairNamed(again, 'note × itself')?.verdict).toBe('refuted')
  await pool.query('DROP TABLE notes')
})

test('without the time to look for limits nothing is refuted', async () => {
  const now = performance.now.bind(performance)
  let later = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + later)
  const edges = async (): Promise<[]> => {
    later = 500_000
    return []
  }
  const parts = { ...wholeHunt({ explore, record }), edges }
  const report = await runHunt(parts, { url, app, suite, budget: { ms: 600_000 } })
  clock.mockRestore()
  expect(pairNamed(report, 'POST /coupons × itself')).toMatchObject({
    verdict: 'undecided',
    because: 'the time was over before its limits were found',
  })
})

test('functions of a suite by call(), and an application that is a fetch handler', async () => {
  const fetchApp = {
    async fetch(request: Request): Promise<Response> {
      const { code } = (await request.json()) as { code: string }
      try {
        return Response.json(await useCard(code))
      } catch {
        return Response.json({}, { status: 409 })
      }
    },
  }
  const report = await hunt({
    url,
    app: fetchApp,
    async suite({ call, fetch }) {
      await call('redeem', redeem, 'A')
      await fetch('/cards/A', { method: 'POST', body: JSON.stringify({ code: 'A' }) })
      // The one that is imported is the same.
      await expect(callOfSuites('redeem', redeem, 'B')).rejects.toThrow(Refused)
    },
  })
  expect(report.calls).toMatchObject([
    { number: 1, name: 'redeem', said: 'accepted', statements: 2 },
    { number: 2, name: 'POST /cards/A', said: 'accepted', statements: 2 },
    { number: 3, name: 'redeem', said: 'refused', statements: 1 },
  ])
  expect(verdicts(report)).toEqual({
    'redeem × itself': 'proven',
    'POST /cards/A × itself': 'refuted',
  })
  expect(report.apart).toBe(1)
})

test('what has no time left is said to be not looked at', async () => {
  const report = await hunt({ url, app, suite, budget: { ms: 1 } })
  expect(report.calls.map(({ unusable }) => unusable)).toEqual(
    Array.from({ length: 3 }, () => 'the time was over'),
  )
  expect(report.pairs).toEqual([])
})

test('a call whose limits could not be looked for in time is not refuted', async () => {
  const whole = wholeHunt({ explore, record })
  const edges: typeof whole.edges = async (_, __, { isOver }) => {
    await vi.waitUntil(isOver, { timeout: 60_000 })
    return []
  }
  const one: typeof suite = ({ fetch }) =>
    suite({
      fetch: (to, init) => (to === '/coupons' ? fetch(to, init) : answered()),
    } as SuiteContext)
  const answered = async (): Promise<Response> => new Response()
  const report = await runHunt(
    { ...whole, edges },
    { url, app, suite: one, budget: { ms: 12_000 } },
  )
  expect(report.pairs).toMatchObject([{ name: 'POST /coupons × itself', verdict: 'undecided' }])
})

test('a value that is refused wherever it comes first is no edge: the amount is looked at', async () => {
  async function spend(owner: number, points: number): Promise<object> {
    const { rows } = await pool.query('SELECT points FROM purses WHERE owner = $1', [owner])
    if (rows[0].points < points) throw new Refused()
    const update = 'UPDATE purses SET points = points - $2 WHERE owner = $1'
    await pool.query(update, [owner, points])
    return { spent: points }
  }
  const report = await hunt({ url, suite: ({ call }) => call('spend', spend, 1, 30) })
  expect(report.pairs).toMatchObject([{ name: 'spend × itself', verdict: 'proven' }])
  expect(report.pairs[0]?.from).toEqual([expect.stringMatching(/with .* 960$/)])
})
