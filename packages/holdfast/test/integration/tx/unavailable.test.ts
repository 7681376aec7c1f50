/** A server to which no connection can be had: nothing has run, so nothing is counted. */
import 'reflect-metadata'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { DataSource } from 'typeorm'
import { expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { createHoldfast } from '../../../src/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()

const limits = { max: 2, connectionTimeoutMillis: 200 }

function poolOn(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, ...limits })
  pool.on('error', () => undefined)
  onTestFinished(() => void pool.end())
  return pool
}

const clients: Record<string, (url: string) => Promise<Driver<unknown>>> = {
  pg: async (url) => fromPg(poolOn(url)) as Driver<unknown>,
  async kysely(url) {
    const dialect = new PostgresDialect({ pool: poolOn(url) })
    return fromKysely(new Kysely<unknown>({ dialect })) as Driver<unknown>
  },
  drizzle: async (url) => fromDrizzle(drizzle(poolOn(url)), sql) as Driver<unknown>,
  async typeorm(url) {
    const source = new DataSource({
      type: 'postgres',
      url,
      logging: false,
      extra: { ...limits, connectionTimeoutMillis: 2_000 },
    })
    await source.initialize()
    onTestFinished(() => void source.destroy())
    return fromTypeOrm(source) as Driver<unknown>
  },
}

test.each(Object.entries(clients))(
  '%s: a server that accepts connections and says nothing',
  async (_, open) => {
    const wire = await breakableWire(fixture.database.directUrl)
    onTestFinished(async () => await wire[Symbol.asyncDispose]())
    const hf = createHoldfast(await open(wire.url))
    wire.hold()
    wire.cut()
    const reasons: string[] = []
    const running = hf.transaction(async () => expect.unreachable(), {
      retry: { attempts: 1, budget: '60 s' },
      onRetry({ reason, error }) {
        reasons.push(reason)
        if (reasons.length === 2) throw error
      },
    })
    await expect(running).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    expect(reasons).toEqual(['CONNECTION_UNAVAILABLE', 'CONNECTION_UNAVAILABLE'])
  },
)

test('attempts are counted from the first connection on', async () => {
  const target = new URL(fixture.database.directUrl)
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect({ host: target.hostname, port: Number(target.port) })
    for (const socket of [near, far]) sockets.add(socket.on('error', () => undefined))
    near.pipe(far).pipe(near)
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const [attempts, retries]: [number[], string[]] = [[], []]
  const url = new URL(target)
  url.port = String(port)
  const running = createHoldfast(fromPg(poolOn(url.href))).transaction(
    async (tx, { attempt }) => {
      attempts.push(attempt)
      await tx.query("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
    },
    {
      retry: { attempts: 2, budget: '60 s' },
      onRetry({ attempt, reason }) {
        retries.push(`${attempt}: ${reason}`)
        if (retries.length === 3) server.listen(port, '127.0.0.1')
      },
    },
  )
  await expect(running).rejects.toMatchObject({
    code: 'TX_SERIALIZATION',
    details: { attempts: 2 },
  })
  expect(attempts).toEqual([1, 2])
  expect(new Set(retries)).toEqual(new Set(['1: CONNECTION_UNAVAILABLE', '1: 40001']))
})
