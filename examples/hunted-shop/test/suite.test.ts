/** The shop's own suite, as shops have them, on both of its clients: it passes, and nothing in it is at the same time as anything else. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import type { PrismaClient } from '../prisma/generated/client.ts'
import { racy, safe } from '../src/answers.ts'
import { openPrisma } from '../src/prisma/client.ts'
import { createShop } from '../src/shop.ts'
import { fillShop, requests } from '../src/suite.ts'

describe.each(['pg and Drizzle', 'Prisma'])('on %s', (client) => {
  let pool: pg.Pool
  let prisma: PrismaClient | undefined
  let server: Server
  let charged: string[]
  let payments: Server
  beforeAll(async () => {
    charged = []
    payments = createServer((request, response) => {
      charged.push(request.url ?? '')
      response.end()
    })
    const listen = async (one: Server): Promise<string> => {
      await new Promise<void>((resolve) => {
        one.listen(0, '127.0.0.1', resolve)
      })
      return `http://127.0.0.1:${(one.address() as AddressInfo).port}`
    }
    const { directUrl } = await testDatabase()
    pool = new pg.Pool({ connectionString: directUrl })
    prisma = client === 'Prisma' ? openPrisma(directUrl) : undefined
    const schema = readFileSync(new URL('../schema.sql', import.meta.url), 'utf8')
    await pool.query(schema + fillShop(20))
    server = createServer(createShop({ pool, prisma, payments: await listen(payments) }))
    await listen(server)
  })
  afterAll(async () => {
    server.close()
    payments.close()
    await prisma?.$disconnect()
    await pool.end()
  })

  test.each(requests)('POST %s with %j is answered %i', async (path, body, status) => {
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    })
    expect(response.status).toBe(status)
  })

  test('each bill and each order was charged once', () => {
    expect(charged).toEqual(['/charge?amount=40', '/charge?amount=40'])
  })
})

test('every endpoint that is planted is in the suite', () => {
  const asked = new Set(requests.map(([path]) => `POST ${path}`))
  expect([...racy, ...safe].flat().filter((name) => !asked.has(name))).toEqual([])
})
