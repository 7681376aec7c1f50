/** What suites of all runners do: tables, a server, two requests. */
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'

const tables = `
  DROP TABLE IF EXISTS coupons, cards;
  CREATE TABLE coupons (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
  CREATE TABLE cards (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
  INSERT INTO coupons VALUES ('A', 0, 6);
  INSERT INTO cards VALUES ('A', 0, 6);
  CREATE OR REPLACE FUNCTION use_card(card text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM 1 FROM cards WHERE code = card FOR UPDATE;
      UPDATE cards SET uses = uses + 1 WHERE code = card AND uses < most;
      RETURN FOUND;
    END $$`

/** The statuses of two requests; `then` is done while there is a database. */
export async function runSuite(then?: () => Promise<unknown>): Promise<readonly number[]> {
  const bank = createServer((_, response) => response.end('charged'))
  if (process.env['WITH_BANK'] !== undefined) process.env['BANK_URL'] = await listen(bank)
  const { app, pool } = await import('./app.ts')
  await pool.query(tables)
  const server = createServer((request, response) => void app(request, response))
  const origin = await listen(server)
  const statuses: number[] = []
  for (const path of ['/coupons', '/cards']) {
    const sent = { method: 'POST', body: JSON.stringify({ code: 'A' }) }
    statuses.push((await fetch(origin + path, sent)).status)
  }
  await then?.()
  server.close()
  bank.close()
  await pool.end()
  return statuses
}

/** Who may look into the folder of the recording, as `ls` counts it. */
export function folderMode(): string {
  const socket = process.env['HOLDFAST_HUNT_SOCKET'] ?? ''
  return (statSync(dirname(socket)).mode & 0o777).toString(8)
}

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
