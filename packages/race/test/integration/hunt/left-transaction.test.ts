/** A handler that leaves its transaction open on an error: the next call gets that connection, and the reason says so. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { hunt, type HuntReport, instrument } from '../../../src/hunt.ts'

instrument(pg)

let url: string
let pool: pg.Pool
let rollsBack = false
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`CREATE TABLE bookings (room text PRIMARY KEY CHECK (length(room) < 5))`),
  )
  pool = new pg.Pool({ connectionString: url })
})
afterAll(() => pool.end())

async function app(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { room } = JSON.parse(text)
    const { rows } = await client.query('SELECT FROM bookings WHERE room = $1', [room])
    if (rows.length > 0) {
      await client.query('ROLLBACK')
      response.writeHead(409).end()
      return
    }
    await client.query('INSERT INTO bookings VALUES ($1)', [room])
    await client.query('COMMIT')
    response.writeHead(201).end()
  } catch {
    if (rollsBack) await client.query('ROLLBACK')
    response.writeHead(500).end()
  } finally {
    client.release()
  }
}

const book = (): Promise<HuntReport> =>
  hunt({
    url,
    app,
    suite: async ({ fetch }) => {
      // The hunt varies it to what the constraint refuses.
      const sent = { method: 'POST', body: '{"room":"r1"}' }
      for (const status of [201, 409]) expect((await fetch('/bookings', sent)).status).toBe(status)
    },
  })

test('the reason names the transaction that was left open', async () => {
  const { pairs } = await book()
  expect(pairs).toMatchObject([
    {
      verdict: 'undecided',
      because: expect.stringMatching(/transaction that a call .* left open/),
    },
  ])
})

test('the control: a handler that rolls back is decided', async () => {
  rollsBack = true
  await pool.end()
  pool = new pg.Pool({ connectionString: url })
  const { pairs } = await book()
  expect(pairs[0]?.because ?? '').not.toContain('left open')
  expect(pairs).toMatchObject([{ verdict: 'proven' }])
})
