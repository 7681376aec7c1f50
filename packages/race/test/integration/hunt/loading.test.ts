/** What the command records of Fastify's own requests, and what it loads: as Node does, and by the lines of the sources. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { JsonHunt } from '../../../src/hunt.ts'
import { type Ended, runHuntProcess } from '../../support/hunt-process.ts'

const root = fileURLToPath(new URL('../../../../../', import.meta.url))
const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-loading-'))
afterAll(() => rmSync(folder, { recursive: true }))

const source = `import Fastify from 'fastify'
import pg from 'pg'

interface Claim {
  readonly user: string
}

export const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const app = Fastify()
app.post('/seats/:seat/claim', async (request, reply) => {
  const { seat } = request.params as { seat: string }
  const { user } = request.body as Claim
  const { rows } = await pool.query('SELECT owner FROM seats WHERE id = $1', [seat])
  if (rows[0]?.owner !== null) return reply.code(409).send({ error: 'taken' })
  await pool.query('UPDATE seats SET owner = $1 WHERE id = $2', [user, seat])
  return { ok: true }
})
`
const suiteOf = (app: string): string => `import { test } from 'node:test'
import assert from 'node:assert'
import { app, pool } from '${app}'
test('a seat is taken once', async () => {
  await pool.query('UPDATE seats SET owner = NULL')
  const claim = { method: 'POST', url: '/seats/a1/claim', payload: { user: 'ann' } }
  assert.equal((await app.inject(claim)).statusCode, 200)
  const { statusCode } = await new Promise((resolve) => app.inject(claim, (_, one) => resolve(one)))
  assert.equal(statusCode, 409)
  await app.close()
  await pool.end()
})
`

beforeAll(async () => {
  await withClient(url, (client) =>
    client.query(
      `CREATE TABLE seats (id text PRIMARY KEY, owner text); INSERT INTO seats VALUES ('a1', NULL)`,
    ),
  )
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(join(folder, 'src'))
  writeFileSync(join(folder, 'src/app.ts'), source)
  writeFileSync(join(folder, 'sources.test.mjs'), suiteOf('./src/app.ts'))
  writeFileSync(join(folder, 'built.test.mjs'), suiteOf('./dist/app.js'))
})

const json = join(folder, 'hunt.json')
const kept = join(folder, 'recording')
function run(app: string, ...args: readonly string[]): Promise<Ended> {
  rmSync(json, { force: true })
  const all = ['--app', app, '--json', json, ...args]
  return runHuntProcess(all, { DATABASE_URL: url }, undefined, folder)
}
const hunt = (app: string, suite: string): Promise<Ended> =>
  run(app, '--keep', kept, '--', 'node', '--test', suite)
const report = (): JsonHunt => JSON.parse(readFileSync(json, 'utf8')) as JsonHunt

test('inject() of Fastify, with a promise and with a callback, is a call', async () => {
  const { code, err } = await hunt('src/app.ts', 'sources.test.mjs')
  expect(err).toContain('hunt: 2 calls recorded')
  const { calls, pairs } = report()
  expect(calls.map(({ name, said }) => [name, said])).toEqual([
    ['POST /seats/a1/claim', 'accepted'],
    ['POST /seats/a1/claim', 'refused'],
  ])
  expect(pairs).toMatchObject([{ verdict: 'proven' }])
  expect(code).toBe(1)
})

test('a race in what a build has made is told by the lines of its sources', async () => {
  await build({
    entryPoints: [join(folder, 'src/app.ts')],
    outdir: join(folder, 'dist'),
    sourcemap: true,
    // Its lines are not those of the source.
    banner: { js: '//\n//\n//' },
  })
  const { out } = await hunt('dist/app.js', 'built.test.mjs')
  expect(out).toContain('src/app.ts:13, src/app.ts:15')
  expect(out).not.toContain('dist/app.js:')
})

test.each([
  ['an import without its ending', `export { app } from './src/app'`],
  ['an alias', `export { app } from '@/app'`],
  ['an enum', `export enum Kind { A }`],
  ['a decorator', `@(() => {}) export class A {}`],
  [
    'a type that is imported as a value',
    `import { FastifyInstance } from 'fastify'; export const app = (x: FastifyInstance) => x`,
  ],
])('%s, which Node does not take: the message says what helps', async (_, text) => {
  writeFileSync(join(folder, 'needs-compiler.ts'), text)
  const { err, code } = await run('needs-compiler.ts', '--from', kept)
  expect(err).toMatch(
    /Node cannot load needs-compiler\.ts as it is: .*--app dist\/app\.js.*NODE_OPTIONS='--import tsx'/,
  )
  expect(code).toBe(4)
})

test('the control: what the file itself throws is told as it is', async () => {
  writeFileSync(join(folder, 'throws.ts'), `JSON.parse('{')`)
  expect((await run('throws.ts', '--from', kept)).err).not.toContain('tsx')
})
