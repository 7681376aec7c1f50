/** U12, the rest of it: what the doctor and `why` say, and which primary it is. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../support/run-command.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

let url: string
let folder: string
beforeAll(async () => {
  url = (await testDatabase('installed')).directUrl
  folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

test('U12: the doctor without USAGE says that the schema was not looked at', async () => {
  const as = new URL(url)
  as.username = `small_${as.pathname.slice(6)}`
  await withClient(url, (client) => client.query(`CREATE ROLE "${as.username}" LOGIN`))
  const { out } = await runCommand(['doctor', '--json'], { DATABASE_URL: as.href }, folder)
  const { findings } = JSON.parse(out) as { findings: { group: string; fix: string }[] }
  const ofSchema = findings.filter(({ group }) => group === 'schema')
  expect(ofSchema).not.toEqual([])
})

test('U12: why proposes to end the session of an idle transaction, not to cancel its statement', async () => {
  const holder = new pg.Client({ connectionString: url, application_name: 'holder' })
  const waiter = new pg.Client({ connectionString: url, application_name: 'waiter' })
  await Promise.all([holder.connect(), waiter.connect()])
  await holder.query('CREATE TABLE t (id int)')
  await holder.query('BEGIN; LOCK TABLE t')
  const pid = Number((await waiter.query('SELECT pg_backend_pid() AS pid')).rows[0]?.pid)
  const waiting = waiter.query('SELECT FROM t')
  await expect
    .poll(async () => (await runCommand(['why', String(pid)], { DATABASE_URL: url }, folder)).out)
    .toMatch(/To end its session, [^]*holdfast cancel \d+ --terminate --seen/)
  const { out } = await runCommand(['why', String(pid), '--json'], { DATABASE_URL: url }, folder)
  expect((JSON.parse(out) as { command: string }).command).toContain('--terminate')
  await holder.query('ROLLBACK')
  await waiting
  await Promise.all([holder.end(), waiter.end()])
})

test('a server that accepts a connection and says nothing is waited for, and that is told', async () => {
  const server = createServer((socket) => void setTimeout(() => socket.destroy(), 3_000))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { code, err } = await runCommand(
    ['leases'],
    { DATABASE_URL: `postgres://u:s3cret@127.0.0.1:${port}/x` },
    folder,
  )
  server.close()
  expect(code).toBe(1)
  expect(err).toMatch(/^Waiting for the database to answer, for at most 15 s\.\nholdfast leases: /)
  expect(err).not.toContain('s3cret')
})

describe('shards', () => {
  const config = (shards: object): void =>
    writeFileSync(join(folder, 'holdfast.config.json'), JSON.stringify({ shards }))

  test.each([
    ['init --yes'],
    ['status'],
    ['rebalance'],
    ['repair --yes'],
    ['move --buckets 1 --to south'],
  ])('%s names the primary that cannot be reached', async (line) => {
    config({ north: url, south: 'postgres://u:s3cret@127.0.0.1:1/x' })
    for (const more of [[], ['--json']]) {
      const began = performance.now()
      const { code, out, err } = await runCommand(
        ['shards', ...line.split(' '), ...more],
        {},
        folder,
      )
      expect(code).toBe(1)
      expect(performance.now() - began).toBeLessThan(2_000)
      expect(`${out}${err}`).toContain('south')
      expect(`${out}${err}`).not.toContain('s3cret')
    }
  })

  test('init names the primary whose URL is none', async () => {
    config({ north: url, south: 'mysql://u:s3cret@localhost/x' })
    const { code, out, err } = await runCommand(['shards', 'init', '--yes', '--json'], {}, folder)
    expect([code, out]).toEqual([1, ''])
    expect(JSON.parse(err)).toMatchObject({
      error: { code: 'DATABASE_URL_INVALID', message: expect.stringContaining('shards.south') },
    })
  })
})

describe('.env', () => {
  const inFolder = async (
    name: string,
    text: string,
    environment: Record<string, string> = {},
  ): Promise<string> => {
    const own = mkdtempSync(join(folder, name))
    writeFileSync(join(own, '.env'), text)
    const { out, err } = await runCommand(['leases', '--json'], environment, own)
    return `${out}${err}`
  }

  test('says which database and schema it is', async () => {
    expect(await inFolder('env', `DATABASE_URL="${url}"\n`)).toBe('{"leases":[]}\n')
    const other = await inFolder('env', `DATABASE_URL="${url}"\nHOLDFAST_SCHEMA=elsewhere\n`)
    expect(other).toContain('SCHEMA_MISSING')
  })

  test('comes after the environment', async () => {
    const wrong = 'DATABASE_URL=mysql://u:s3cret@localhost/x\n'
    expect(await inFolder('env', wrong, { DATABASE_URL: url })).toBe('{"leases":[]}\n')
    expect(await inFolder('env', wrong)).toContain(
      'DATABASE_URL of .env is not a URL of PostgreSQL',
    )
  })
})
