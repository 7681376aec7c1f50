/**
 * A test file as somebody would write it: an Express server with Prisma, two customers who check out over HTTP. Run as a
 * process of its own by ../scenarios/race-over-http.ts; prints what came out, and how long after the start of the process.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { PrismaPg } from '@prisma/adapter-pg'
import express from 'express'
import pg from 'pg'
import { explore, instrument } from '../../packages/race/src/index.ts'
import { checkout, checkoutSeed, patient, type Taking } from './checkout.ts'
import { PrismaClient } from './prisma/generated/client.ts'

const [url, taking] = process.argv.slice(2) as [string, Taking]

instrument(pg)
const pool = new pg.Pool({ connectionString: url })
const prisma = new PrismaClient({ adapter: new PrismaPg(pool), ...patient })
const app = express()
app.post('/checkout/:customer', async (request, response) => {
  const answer = await checkout(prisma, request.params.customer, taking)
  response.status(answer === 'ordered' ? 201 : 409).json({ answer })
})
const server = app.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo

const buy = (customer: string) => async (): Promise<object> => {
  const response = await fetch(`http://127.0.0.1:${port}/checkout/${customer}`, { method: 'POST' })
  return { status: response.status, body: await response.json() }
}
const { verdict, coverage, trouble, notes } = await explore({
  name: taking,
  url,
  seed: ({ query }) => query(checkoutSeed),
  flows: { ann: buy('ann'), bob: buy('bob') },
  onProgress: () => undefined,
})
const why = [trouble?.message, ...notes.map(({ message }) => message)].filter(Boolean).join(' ')
process.stdout.write(
  `${JSON.stringify({ verdict, classes: coverage.classes, why, seconds: performance.now() / 1_000 })}\n`,
)
server.closeAllConnections()
server.close()
await prisma.$disconnect()
await pool.end()
