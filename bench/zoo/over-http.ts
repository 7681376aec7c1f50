/** The same flows behind an HTTP server of this process, whose clients are its own. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import pg from 'pg'
import { instrument } from '../../packages/race/src/run/connection/instrument.ts'
import { sqlstateOf } from '../../packages/race/src/run/answer/error-layers.ts'
import { loadClient, type ClientName, type OpenDb } from './clients.ts'
import type { Play } from './model.ts'

/** Errors that a service answers as a refusal; any other one is its fault. */
const refusals = new Set(['40001', '40P01', '23505', '23503', '23P01'])

/** One pool or client of the server's, as a service has it: all flows share it. */
async function openShared(client: ClientName, url: string): Promise<OpenDb> {
  instrument(pg)
  const pool = new pg.Pool({ connectionString: url })
  const db = await (await loadClient[client]())({ pool, url })
  return {
    ...db,
    async end() {
      await db.end()
      await pool.end()
    },
  }
}

export interface HttpStage extends AsyncDisposable {
  /** What a flow does: one request. */
  ask(who: string): Promise<unknown>
}

export async function startHttpStage(
  client: ClientName,
  url: string,
  serve: (db: OpenDb, who: string) => ReturnType<Play>,
): Promise<HttpStage> {
  const db = await openShared(client, url)
  const server = createServer((request, response) => {
    void serve(db, request.url?.slice(1) ?? '').then(
      (answer) => response.end(JSON.stringify(answer ?? null)),
      (error: unknown) => {
        const code = sqlstateOf(error) ?? ''
        // What two get wrong in the server's own catalogue is nothing that a service can refuse.
        const isCatalogue = /"pg_\w+_index"/.test(inspect(error))
        response.statusCode = refusals.has(code) && !isCatalogue ? 409 : 500
        response.end(JSON.stringify({ error: code === '' ? String(error) : code }))
      },
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    async ask(who) {
      const response = await fetch(`${origin}/${who}`)
      const body: unknown = await response.json()
      return response.ok ? body : { status: response.status, body }
    },
    [Symbol.asyncDispose]: async () => {
      await ended(server)
      await db.end()
    },
  }
}

async function ended(server: Server): Promise<void> {
  server.closeAllConnections()
  const closed = once(server, 'close')
  server.close()
  await closed
}
