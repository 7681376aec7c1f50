/** Several primaries, on the command line. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Result, runCommand } from '../support/run-command.ts'

let server: PostgresServer
let folder: string
let urls: Record<'north' | 'south', string>

/** With a password in every URL, which the server does not ask for and nobody must print. */
const password = 'secret-word'

function withPassword(url: string): string {
  return url.replace('postgres@', `postgres:${password}@`)
}

function configure(shards: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(folder, 'holdfast.config.json'), JSON.stringify({ shards }))
}

async function shards(...args: string[]): Promise<Result> {
  const result = await runCommand(['shards', ...args], {}, folder)
  expect(`${result.out}${result.err}`).not.toContain(password)
  return result
}

beforeAll(async () => {
  server = await startPostgres({
    settings: { wal_level: 'logical', wal_retrieve_retry_interval: '100ms' },
  })
  folder = mkdtempSync(join(tmpdir(), 'holdfast-shards-'))
  urls = {
    north: withPassword(await server.createDatabase('north')),
    south: withPassword(await server.createDatabase('south')),
  }
  for (const url of Object.values(urls)) {
    await runCommand(['migrate'], { DATABASE_URL: url })
  }
  configure({ north: urls.north, south: { url: urls.south, peerUrl: urls.south } })
})

afterAll(async () => {
  await server.stop('immediate')
  rmSync(folder, { recursive: true, force: true })
})

test('from two databases to a cluster whose buckets move', async () => {
  expect(urls.north).toContain(password)
  expect(await shards('status')).toMatchObject({
    code: 1,
    err: expect.stringContaining('SHARD_MAP_MISSING') as string,
  })
  expect(await shards('init')).toMatchObject({
    code: 3,
    out: 'Would make north, south one cluster.\nNothing was done: add --yes.\n',
  })
  expect(await shards('init', '--yes')).toMatchObject({ code: 0 })
  const { out } = await shards('status')
  expect(out).toMatch(
    /^PRIMARY +BUCKETS +LEAVING +OPEN MOVES\nnorth +2048 +0 +0\nsouth +2048 +0 +0\n$/,
  )

  expect(await shards('move', '--buckets', '0,2-6', '--to', 'south')).toMatchObject({
    code: 3,
    out: 'Would move 6 buckets to south.\nNothing was done: add --yes.\n',
  })
  const moved = await shards('move', '--buckets', '0,2-6', '--to', 'south', '--yes')
  expect(moved.code).toBe(0)
  expect(moved.out).toMatch(
    /^Moved 4 buckets from north to south\. Work in them waited \d+ ms\.\n$/,
  )
  expect(moved.err).toMatch(/copying: \d+ of 18 tables, \d+ kB behind\n/)
  expect(moved.err).toMatch(/the target has the buckets\n/)

  const plan = await shards('rebalance', '--json')
  expect(plan.code).toBe(3)
  expect(JSON.parse(plan.out)).toMatchObject({ plan: [{ from: 'south', to: 'north' }] })
  expect(await shards('rebalance', '--yes')).toMatchObject({
    code: 0,
    err: expect.stringContaining('Move 1 of 1: 4 buckets to north\n') as string,
  })
  expect(await shards('rebalance')).toMatchObject({ code: 0, out: 'Nothing has to move.\n' })
})

test('a move that has stopped is shown, and undone', async () => {
  configure({
    north: { url: urls.north, peerUrl: withPassword(server.url('nowhere')) },
    south: urls.south,
  })
  const failed = await shards('move', '--buckets', '8', '--to', 'south', '--yes')
  expect(failed).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      'SHARD_MOVE_STALLED (south: it cannot connect to the source)',
    ) as string,
  })
  expect(failed.err).toContain('PostgreSQL said: FATAL:  database "nowhere" does not exist')
  const status = await shards('status')
  expect(status.code).toBe(1)
  const [, id = ''] = /--resume (\S+) --yes/.exec(status.out) ?? []
  expect(await shards('move', '--undo', id)).toMatchObject({ code: 3 })
  expect(await shards('move', '--undo', id, '--yes')).toMatchObject({ code: 0 })
  expect(await shards('status')).toMatchObject({ code: 0 })
  const left = await withClient(urls.north, (client) =>
    client.query('SELECT FROM pg_replication_slots'),
  )
  expect(left.rowCount).toBe(0)
})

test('what is not understood is said', async () => {
  expect(await shards('move', '--to', 'south')).toMatchObject({ code: 2 })
  expect(await shards('move', '--buckets', '4096', '--to', 'south')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--buckets takes numbers from 0 to 4095') as string,
  })
  writeFileSync(join(folder, 'holdfast.config.json'), '{}')
  expect(await shards('status')).toMatchObject({ code: 2 })
})
