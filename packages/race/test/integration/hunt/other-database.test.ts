/** A suite whose database is not the one that the hunt was given: its rows decide nothing, and nothing is run on them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { afterAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { JsonHunt } from '../../../src/hunt.ts'
import { type Ended, runHuntProcess } from '../../support/hunt-process.ts'

const hunted = fileURLToPath(new URL('../../support/hunted/', import.meta.url))
const app = join(hunted, 'app.ts')
const suite = `node --test ${join(hunted, 'suite-node.ts')}`
const { directUrl: url } = await testDatabase()
const { directUrl: other } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-other-database-'))
afterAll(() => rmSync(folder, { recursive: true }))

const json = join(folder, 'hunt.json')
const hunt = (args: readonly string[], command: string, more = {}): Promise<Ended> =>
  runHuntProcess(['--app', app, '--json', json, ...args, '--', 'sh', '-c', command], {
    DATABASE_URL: url,
    ...more,
  })
const report = (): JsonHunt => JSON.parse(readFileSync(json, 'utf8')) as JsonHunt
/** Calls are looked at, and no pair. */
const nothing = ['--only', 'nothing of it']
const nameOf = (one: string): string => new URL(one).pathname.slice(1)

test('the address of a suite that has its own is asked for, and the other rows stay alone', async () => {
  await withClient(url, (client) =>
    client.query(`CREATE TABLE coupons (code text PRIMARY KEY, uses int, most int);
      INSERT INTO coupons VALUES ('A', 1, 6)`),
  )
  const { code, err, out } = await hunt(['--only', '/coupons'], suite, { OWN_URL: other })
  expect(code).toBe(4)
  expect(out).not.toContain('refuted')
  expect(err).toContain(`the suite uses database ${nameOf(other)} at `)
  expect(err).toContain(`the hunt has the rows of database ${nameOf(url)}`)
  expect(err).toContain('with --url')
  // What the message asks for is enough.
  const told = await hunt(['--url', other, '--only', '/coupons'], suite, { OWN_URL: other })
  expect(told.out).toContain('✗ POST /coupons × itself')
})

test('calls of a worker with a database of its own are in no pair', async () => {
  const { out } = await hunt(nothing, `${suite}; OWN_URL=${other} ${suite}`)
  const unusable = report().calls.map((call) => call.unusable)
  expect(unusable.slice(0, 2)).toEqual([undefined, undefined])
  for (const because of unusable.slice(2)) expect(because).toMatch(/recorded with database/)
  expect(out).toContain('in one worker')
  // The control: two processes with one database.
  await hunt(nothing, `${suite}; ${suite}`)
  expect(report().calls.map((call) => call.unusable)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test('a suite without a database is told of, and is not taken for one that has no races', async () => {
  const mocked = join(folder, 'mocked.mjs')
  writeFileSync(
    mocked,
    `import { createServer } from 'node:http'
     const server = createServer((request, response) => response.writeHead(409).end()).listen(0, async () => {
       await fetch('http://127.0.0.1:' + server.address().port + '/coupons', { method: 'POST', body: '{"code":"none"}' })
       server.close()
     })`,
  )
  const { code, out } = await hunt([], `node ${mocked}`)
  expect(code).toBe(4)
  expect(out.replaceAll(/\s+/g, ' ')).toContain(
    'the suite connected to no database in the recording',
  )
  expect((await hunt(nothing, suite)).out).not.toContain('connected to no database')
})
