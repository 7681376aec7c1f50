import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import type { SessionDriver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { initShards, shardedDriver } from '../../../src/shards/index.ts'
import { testDatabase } from '../../support/database.ts'
import { fresh } from '../../support/ledger-fixture.ts'

/** Databases stand for servers here: it is about what they are told, not about where they are. */
const pools: pg.Pool[] = []
afterAll(async () => {
  for (const pool of pools) await pool.end()
})

async function primary(): Promise<SessionDriver<pg.PoolClient>> {
  const { directUrl } = await testDatabase()
  const pool = new pg.Pool({ connectionString: directUrl, max: 2 })
  pools.push(pool)
  await migrate(fromPg(pool))
  return fromPg(pool)
}

type Primaries = Record<string, SessionDriver<pg.PoolClient>>

function consume(primaries: Primaries, key = fresh()): Promise<unknown> {
  const hf = createHoldfast(shardedDriver(primaries, { wait: '100 ms' }))
  const quota = hf.quota({ name: 'calls', limit: 5, per: 'lifetime' })
  return quota.consume(key, 1, { operationId: fresh() })
}

async function bucketsOf({ alone }: SessionDriver<pg.PoolClient>): Promise<number> {
  const [row] = await alone.query({
    text: 'SELECT count(*)::text AS count FROM holdfast.shard_map WHERE here',
    values: [],
  })
  return Number(row?.['count'])
}

test('set up once for all; half-way and again is the same; who comes later gets nothing yet', async () => {
  const [a, b, c] = [await primary(), await primary(), await primary()]
  await expect(consume({ a, b })).rejects.toMatchObject({ code: 'SHARD_MAP_MISSING' })
  const cluster = await initShards({ a, b })
  expect(await initShards({ a, b })).toBe(cluster)
  expect([await bucketsOf(a), await bucketsOf(b)]).toEqual([2_048, 2_048])
  // Whatever is wished for now: what was given away stays so.
  expect(await initShards({ a, b, c }, { ownerOf: () => 'c' })).toBe(cluster)
  expect([await bucketsOf(a), await bucketsOf(b), await bucketsOf(c)]).toEqual([2_048, 2_048, 0])
  for (let at = 0; at < 20; at += 1) {
    expect(await consume({ a, b, c })).toMatchObject({ ok: true })
  }
  await expect(initShards({ a })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  await expect(initShards({})).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  expect(() => shardedDriver({})).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

async function credit(
  driver: SessionDriver<pg.PoolClient>,
  keys: readonly string[],
): Promise<void> {
  const wallet = createHoldfast(driver).credits({ name: 'wallet' })
  for (const key of keys) await wallet.grant(key, 100, { operationId: key })
}

test('S9: a server with data becomes a primary, and keeps the buckets that have them', async () => {
  const [a, b] = [await primary(), await primary()]
  const keys = Array.from({ length: 20 }, (_, at) => `user-${at}`)
  await credit(a, keys)
  await initShards({ a, b })
  const wallet = createHoldfast(shardedDriver({ a, b })).credits({ name: 'wallet' })
  for (const key of keys) {
    expect(await wallet.balance(key)).toMatchObject({ available: 100 })
    expect(await wallet.grant(key, 100, { operationId: key })).toMatchObject({ replayed: true })
  }
  expect((await bucketsOf(b)) + (await bucketsOf(a))).toBe(4_096)
  expect(await bucketsOf(b)).toBeGreaterThan(2_000)
})

test("S9: data in a bucket that is to be another primary's are refused, and nothing is set up", async () => {
  const [a, b] = [await primary(), await primary()]
  const refused = { code: 'SHARD_INIT_REFUSED' }
  await credit(a, ['ann'])
  await expect(initShards({ a, b }, { ownerOf: () => 'b' })).rejects.toMatchObject(refused)
  await credit(b, ['ann'])
  await expect(initShards({ a, b })).rejects.toMatchObject(refused)
  await expect(consume({ a, b })).rejects.toMatchObject({ code: 'SHARD_MAP_MISSING' })
  // The server itself would not have done it either.
  await expect(
    a.alone.query({
      text: `SELECT holdfast.init_shards(gen_random_uuid(), 'a', array_fill('b'::text, '{4096}'), '{a,b}')::text`,
      values: [],
    }),
  ).rejects.toMatchObject({ code: 'HF003' })
})

test('a primary under another name, or of another cluster, is refused', async () => {
  const [a, b, other] = [await primary(), await primary(), await primary()]
  await initShards({ a, b })
  await initShards({ b: other })
  const invalid = { code: 'SHARD_MAP_INVALID' }
  await expect(consume({ a: b, b: a })).rejects.toMatchObject(invalid)
  await expect(consume({ a, b: other })).rejects.toMatchObject(invalid)
  await expect(initShards({ a, b: other })).rejects.toMatchObject(invalid)
  expect(await consume({ a, b })).toMatchObject({ ok: true })
})

test('a primary that cannot be reached does not stop what the others have', async () => {
  const [a, b] = [await primary(), await primary()]
  await initShards({ a, b }, { ownerOf: () => 'a' })
  const gone = new pg.Pool({ connectionString: 'postgres://127.0.0.1:1/none', max: 1 })
  pools.push(gone)
  expect(await consume({ a, b: fromPg(gone) })).toMatchObject({ ok: true })
  // Nor one that takes the connection and says nothing.
  const silent = createServer(() => undefined)
  await once(silent.listen(0, '127.0.0.1'), 'listening')
  const { port } = silent.address() as AddressInfo
  const deaf = new pg.Pool({ connectionString: `postgres://127.0.0.1:${port}/none`, max: 1 })
  const sockets = new Set<Socket>()
  silent.on('connection', (socket) => sockets.add(socket))
  expect(await consume({ a, b: fromPg(deaf) })).toMatchObject({ ok: true })
  for (const socket of sockets) socket.destroy()
  silent.close()
  await deaf.end()
})
