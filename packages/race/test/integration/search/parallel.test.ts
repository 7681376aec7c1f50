/** Several explorations at once: each is right, or is told who is in its way. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import { connectControl } from '../../../src/run/connection/control.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'
import { takeDatabase } from '../../../src/run/connection/turn.ts'

instrument(pg)

async function counters(): Promise<string> {
  const { directUrl } = await testDatabase()
  await withClient(directUrl, (client) =>
    client.query(
      'CREATE TABLE counters (id int PRIMARY KEY, n int); INSERT INTO counters VALUES (1, 0)',
    ),
  )
  return directUrl
}

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = await counters()
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

const script = fileURLToPath(new URL('../../support/explore-process.ts', import.meta.url))

async function exploreElsewhere(database: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [script, database, '1'])
  return stdout
}

test('two processes, in one database and in two of one server', async () => {
  const other = await counters()
  const verdicts = await Promise.all([url, url, other].map(exploreElsewhere))
  expect(verdicts).toEqual(Array.from({ length: 3 }, () => 'race race-free'))
})

test('two in one process, whose flows share a pool', async () => {
  const careless = async (): Promise<void> => {
    const { rows } = await pool.query('SELECT n FROM counters WHERE id = 1')
    await pool.query('UPDATE counters SET n = $1 WHERE id = 1', [rows[0].n + 1])
  }
  const careful = () => pool.query('UPDATE counters SET n = n + 1 WHERE id = 1')
  const look = (flow: () => Promise<unknown>) =>
    explore({
      url,
      seed: ({ query }) => query('UPDATE counters SET n = 0'),
      flows: { a: flow, b: flow },
      onProgress: () => undefined,
    })
  const reports = await Promise.all([look(careless), look(careful), look(careless)])
  expect(reports.map(({ verdict }) => verdict)).toEqual(['race', 'race-free', 'race'])
})

test('who waits for too long is told for whom', async () => {
  const [one, other] = [await connectControl(url), await connectControl(url)]
  await takeDatabase(one)
  await expect(takeDatabase(other, 100)).rejects.toThrow(
    /^Another exploration has had this database for more than 0\.1 s: holdfast-race \(pid \d+: .*\)\. Give each test file/,
  )
  await one.close()
  await takeDatabase(other, 1000)
  await other.close()
})
