/**
 * A server in a process of its own that books the one seat: `/<client>/<with a lock or without>`. It knows nothing of
 * the explorer; it does with `traceparent` what OpenTelemetry's instrumentations do, or does not.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import postgres from 'postgres'

type Ask = (text: string) => Promise<readonly unknown[]>

const url = process.env['DATABASE_URL'] ?? ''
const pool = new pg.Pool({ connectionString: url })
const sql = postgres(url)

async function book(ask: Ask, lock: boolean): Promise<number> {
  if (lock) await ask('SELECT FROM seats WHERE id = 1 FOR UPDATE')
  const found = await ask('SELECT FROM bookings WHERE seat = 1')
  if (found.length > 0) return 409
  await ask('INSERT INTO bookings (seat) VALUES (1)')
  return 201
}

async function inTransaction(client: pg.ClientBase, mark: string, lock: boolean): Promise<number> {
  const ask: Ask = async (text) => (await client.query(`${text}${mark}`)).rows
  await ask('BEGIN')
  const status = await book(ask, lock)
  await ask('COMMIT')
  return status
}

async function onPool(mark: string, lock: boolean): Promise<number> {
  const client = await pool.connect()
  try {
    return await inTransaction(client, mark, lock)
  } finally {
    client.release()
  }
}

const ways: Readonly<Record<string, (trace: string, lock: boolean) => Promise<number>>> = {
  pg: (trace, lock) => onPool(` /*traceparent='${trace}'*/`, lock),
  // BEGIN and COMMIT are its own, and have no mark.
  'postgres.js': (trace, lock) =>
    sql.begin((tx) =>
      book((text) => tx.unsafe(`${text} /*db_driver='x',traceparent='${trace}'*/`), lock),
    ),
  async application_name(trace, lock) {
    const client = new pg.Client({ connectionString: url, application_name: trace })
    await client.connect()
    const status = await inTransaction(client, '', lock)
    await client.end()
    return status
  },
  unmarked: (_, lock) => onPool('', lock),
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, way = '', lock] = (request.url ?? '').split('/')
  const answer = ways[way]?.(String(request.headers['traceparent']), lock === 'lock')
  response.statusCode = (await answer?.catch(() => 500)) ?? 404
  response.end()
}

const server = createServer((request, response) => void serve(request, response))
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.once('disconnect', () => process.exit(0))
