/**
 * One source for every runtime: the promises of Holdfast on a database that is empty, by each client. Prints one line of
 * JSON: by client, what each check saw.
 */
import assert from 'node:assert/strict'
import { createHoldfast } from 'holdfast'
import { migrate } from 'holdfast/schema'
import * as checks from './checks.mjs'
import { clients } from './clients.mjs'

const tables = `
  CREATE TABLE counter (name text PRIMARY KEY, n int NOT NULL);
  CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    body text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    claim_token uuid,
    lease_until timestamptz
  );`

async function opened(name, url) {
  const client = await clients[name](url, 4)
  return { ...client, hf: createHoldfast(client.driver) }
}

async function closed({ hf, close }) {
  await hf.close()
  await close()
}

/** Every check, by one client. */
async function byClient(name, url) {
  const [one, two, looker] = [
    await opened(name, url),
    await opened(name, url),
    await opened('pg', url),
  ]
  const look = (text, values) => looker.run(looker.root, text, values)
  const seed = async () => {
    const row = crypto.randomUUID()
    await look('INSERT INTO counter VALUES ($1, 0)', [row])
    return row
  }
  const seen = {}
  try {
    for (const [title, check] of Object.entries(checks)) {
      try {
        seen[title] = await check({ one, two, look, seed })
      } catch (error) {
        throw new Error(`${name}, ${title}: ${error.message}`, { cause: error })
      }
    }
  } finally {
    await Promise.all([one, two, looker].map(closed))
  }
  return seen
}

/** Installs the schema twice, and then everything by each client. */
export async function smoke(url, names) {
  const { driver, run, root, close } = await clients.pg(url, 2)
  const { applied } = await migrate(driver)
  const again = await migrate(driver)
  assert.equal(again.applied.length, 0)
  await run(root, tables)
  await close()
  const seen = {}
  for (const name of names) seen[name] = await byClient(name, url)
  return { applied: applied.length, seen }
}
