import { once } from 'node:events'
import { connect } from 'node:net'
import { PrismaPg } from '@prisma/adapter-pg'
import { waitUntil, withClient } from '@holdfast/testkit'
import { Client, Pool } from 'pg'
import postgres from 'postgres'
import { beforeAll, describe, expect, test } from 'vitest'
import { PrismaClient } from '../../../../holdfast/test/conformance/prisma/generated/client.ts'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { sslRequestMessage } from '../../../src/wire/startup.ts'
import { script } from '../../support/script.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query('CREATE TABLE t (n int)'))
})

describe('clients that lose patience are named, and no race is made of it', () => {
  /** Plays one flow, and keeps it waiting for some time before its second statement. */
  async function keepWaiting(flow: Flow) {
    await using runner = await createRunner({ url, flows: { alice: flow } })
    return await runner.run((decision, steps) => {
      const start = performance.now()
      while (steps.length === 2 && performance.now() - start < 150);
      return script(['alice'], '')(decision, steps)
    })
  }

  test('Prisma: the time limit of a transaction', async () => {
    const run = await keepWaiting(async ({ pool }) => {
      const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
      await prisma.$transaction(
        async (tx) => {
          for (let time = 0; time < 5; time += 1) await tx.$queryRawUnsafe('SELECT n FROM t')
        },
        { timeout: 50 },
      )
    })
    expect(run.trouble).toMatchObject({ kind: 'client-timeout', flow: 0 })
    expect(run.trouble?.message).toContain('P2028')
  })

  test('node-postgres: query_timeout', async () => {
    const run = await keepWaiting(async (context) => {
      const client = new Client({ connectionString: context.url, query_timeout: 50 })
      client.on('error', () => {})
      await client.connect()
      try {
        for (let time = 0; time < 5; time += 1) await client.query('SELECT n FROM t')
      } finally {
        await client.end()
      }
    })
    expect(run.trouble).toMatchObject({ kind: 'client-timeout', flow: 0 })
  })

  test('node-postgres: a pool that gives no connection in time', async () => {
    const run = await keepWaiting(async (context) => {
      const pool = new Pool({
        connectionString: context.url,
        max: 1,
        connectionTimeoutMillis: 100,
      })
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await pool.query('SELECT 1')
      } finally {
        await client.query('ROLLBACK')
        client.release()
        await pool.end()
      }
    })
    expect(run.trouble).toMatchObject({ kind: 'pool-too-small', flow: 0 })
  })
})

describe('the listener', () => {
  async function withAddress<T>(body: (context: FlowContext) => Promise<T>): Promise<T> {
    let result: T | undefined
    await using runner = await createRunner({
      url,
      flows: {
        alice: async (context) => {
          result = await body(context)
        },
      },
    })
    const run = await runner.run(script(['alice'], ''))
    expect(run.outcomes).toMatchObject([{ kind: 'returned' }])
    return result as T
  }

  test('says no to encryption, and goes on', async () => {
    const reply = await withAddress(async (context) => {
      const socket = connect(Number(new URL(context.url).port), '127.0.0.1')
      socket.write(sslRequestMessage)
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      return bytes.toString()
    })
    expect(reply).toBe('N')
    await withAddress(async (context) => {
      const sql = postgres(context.url, { ssl: 'prefer' })
      await sql`SELECT n FROM t`
      await sql.end()
    })
  })

  test('lets a client cancel what it is doing', async () => {
    const code = await withAddress(async (context) => {
      const sql = postgres(context.url)
      const sleeping = sql`SELECT pg_sleep(60)`
      const failed = sleeping.catch((error: { code: string }) => error.code)
      await withClient(url, (observer) =>
        waitUntil('the statement sleeps', async () => {
          const { rowCount } = await observer.query(
            `SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`,
          )
          return rowCount === 1 ? true : undefined
        }),
      )
      sleeping.cancel()
      const found = await failed
      await sql.end()
      return found
    })
    expect(code).toBe('57014')
  })
})
