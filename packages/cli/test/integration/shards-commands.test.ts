/** Several primaries, on the command line. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import { fromPg } from 'holdfast/drivers/pg'
import { createMoves } from 'holdfast/shards'
import pg from 'pg'
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
    out: 'Would move 4 buckets from north to south: 0,2,4,6\nNothing was done: add --yes.\n',
  })
  const moved = await shards('move', '--buckets', '0,2-6', '--to', 'south', '--yes')
  expect(moved.code).toBe(0)
  expect(moved.out).toMatch(
    /^Moved 4 buckets from north to south\. Work in them waited \d+ ms\.\n$/,
  )
  expect(moved.err).toMatch(/copying: \d+ of 19 tables, \d+ kB behind\n/)
  expect(moved.err).toMatch(/the target has the buckets\n/)

  expect(await shards('move', '--buckets', '0,2-6', '--to', 'south')).toMatchObject({
    code: 0,
    out: 'They are there already.\n',
  })

  const plan = await shards('rebalance', '--json')
  expect(plan.code).toBe(3)
  expect(JSON.parse(plan.out)).toMatchObject({ plan: [{ from: 'south', to: 'north' }] })
  expect(await shards('rebalance', '--yes')).toMatchObject({
    code: 0,
    err: expect.stringContaining('Move 1 of 1: 4 buckets to north\n') as string,
  })
  expect(await shards('rebalance')).toMatchObject({ code: 0, out: 'Nothing has to move.\n' })
})

test('a move that cannot be is refused, and nothing is left of it', async () => {
  configure({
    north: { url: urls.north, peerUrl: withPassword(server.url('nowhere')) },
    south: urls.south,
  })
  const failed = await shards('move', '--buckets', '8', '--to', 'south', '--yes')
  expect(failed).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      'SHARD_MOVE_REFUSED (south: it cannot connect to the source)',
    ) as string,
  })
  expect(failed.err).toContain('PostgreSQL said: FATAL:  database "nowhere" does not exist')
  expect(await shards('status')).toMatchObject({ code: 0 })
})

test('a move that has stopped is shown, and undone', async () => {
  configure({ north: urls.north, south: { url: urls.south, peerUrl: urls.south } })
  const open = (url: string): pg.Pool => new pg.Pool({ connectionString: url, max: 2 })
  const pools = { north: open(urls.north), south: open(urls.south) }
  const moves = createMoves(
    {
      north: { driver: fromPg(pools.north), connection: urls.north },
      south: { driver: fromPg(pools.south), connection: urls.south },
    },
    {
      onProgress: ({ step }) => {
        if (step === 'published') throw new Error('stopped here')
      },
    },
  )
  await expect(moves.move({ buckets: [8], to: 'south' })).rejects.toThrow('stopped here')
  await Promise.all(Object.values(pools).map((pool) => pool.end()))
  const status = await shards('status')
  expect(status.code).toBe(1)
  const [, id = ''] = /--resume (\S+) --yes/.exec(status.out) ?? []
  const repair = await shards('repair')
  expect(repair.code).toBe(1)
  expect(repair.out).toContain(`--resume ${id} --yes`)
  expect(repair.out).not.toContain('Nothing is wrong')
  expect(await shards('move', '--undo', id)).toMatchObject({ code: 3 })
  expect(await shards('move', '--undo', id, '--yes')).toMatchObject({ code: 0 })
  expect(await shards('move', '--resume', id, '--yes')).toMatchObject({
    code: 0,
    out: 'That move had ended before: undone 1 bucket from north to south.\n',
  })
  expect(await shards('status')).toMatchObject({ code: 0 })
  const left = await withClient(urls.north, (client) =>
    client.query('SELECT FROM pg_replication_slots'),
  )
  expect(left.rowCount).toBe(0)
})

test('S2: a primary that is down is named, and the others are shown', async () => {
  const gone = urls.south.replace(/:\d+\//, ':1/')
  configure({ north: urls.north, south: { url: gone, peerUrl: gone } })
  const { code, out } = await shards('status')
  expect(code).toBe(1)
  expect(out).toMatch(/\nnorth +2048 /)
  expect(out).toContain('south cannot be asked: CONNECTION_UNAVAILABLE')
  const json = await shards('status', '--json')
  expect(JSON.parse(json.out)).toMatchObject({ failures: [{ primary: 'south' }], nobody: [] })
})

test('moves that need a primary that is down say which one, and nothing that is not so', async () => {
  const gone = urls.south.replace(/:\d+\//, ':1/')
  configure({ north: urls.north, south: { url: gone, peerUrl: gone } })
  for (const args of [
    ['move', '--buckets', '0', '--to', 'south', '--yes'],
    ['move', '--buckets', '1', '--to', 'north', '--yes'],
    ['move', '--buckets', '1', '--to', 'north'],
    ['rebalance'],
    ['repair', '--yes'],
  ]) {
    const { code, err } = await shards(...args)
    expect([args, code]).toEqual([args, 1])
    expect(err).toMatch(
      /^holdfast shards: SHARD_PRIMARY_NEEDED \(south: CONNECTION_UNAVAILABLE\): /,
    )
    expect(err).toMatch(/\nReason: connect ECONNREFUSED/)
    expect(err).not.toMatch(/PostgreSQL said|was done|details\./)
  }
})

test('a primary that is not in the configuration is named, and its buckets are not taken for lost', async () => {
  configure({ north: urls.north })
  const status = await shards('status')
  expect(status.code).toBe(1)
  expect(status.out).toMatch(/\nsouth has 2048 buckets \(.*\), and is not in the configuration\.\n/)
  expect(status.out).toContain('  Add south to shards in the configuration file\n')
  const repaired = await shards('repair', '--adopt', '--yes')
  expect(repaired.code).toBe(1)
  expect(repaired.out).toContain('Add south to shards')
  for (const { out } of [status, repaired]) expect(out).not.toMatch(/Nobody has|--adopt/)
  configure(urls)
  expect(await shards('status')).toMatchObject({ code: 0 })
  expect(await shards('repair')).toMatchObject({ code: 0, out: 'Nothing is wrong.\n' })
})

test('S10: a primary that came back from a backup is shown, with what repairs it', async () => {
  configure(urls)
  // As it would be if north was restored to before bucket 10 was moved, and had a row in it.
  await withClient(urls.south, (client) =>
    client.query(
      `UPDATE holdfast.shard_map SET here = true, shard = 'south', version = 2 WHERE bucket = 10`,
    ),
  )
  await withClient(urls.north, (client) =>
    client.query(`INSERT INTO holdfast.horizon VALUES (10, now())`),
  )
  const status = await shards('status')
  expect(status.code).toBe(1)
  expect(status.out).toContain(
    'north came back from before a move: it believes to have 1 bucket (10)',
  )
  expect(status.out).toContain('holdfast shards repair --yes')
  expect(await shards('repair')).toMatchObject({ code: 3 })
  const repaired = await shards('repair', '--yes')
  expect(repaired.out).toBe(
    'north has given up 1 bucket (10).\nDeleted 1 row of buckets that others have.\n',
  )
  expect(await shards('status')).toMatchObject({ code: 0 })
  expect(await shards('repair', '--yes')).toMatchObject({
    code: 0,
    out: 'Nothing had to be repaired.\n',
  })
})

test('what is not understood is said', async () => {
  expect(await shards('move', '--to', 'south')).toMatchObject({ code: 2 })
  for (const flag of ['--undo', '--resume']) {
    expect(await shards('move', flag, 'nosuch', '--yes')).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${flag} takes the id of a move`) as string,
    })
  }
  expect(await shards('move', '--buckets', '4096', '--to', 'south')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--buckets takes numbers from 0 to 4095') as string,
  })
  writeFileSync(join(folder, 'holdfast.config.json'), '{}')
  expect(await shards('status')).toMatchObject({ code: 2 })
})
