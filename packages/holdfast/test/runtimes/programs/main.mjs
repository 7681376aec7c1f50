/** Runs the smoke test, as a program. */
import process from 'node:process'
import { smoke } from './smoke.mjs'

const { DATABASE_URL, SMOKE_CLIENTS = 'pg,postgres' } = process.env
const { bun, deno, node } = process.versions
/** What runs this; Bun and Deno have a version of Node as well, of which they say to be the like. */
const runtime = bun ? `bun ${bun}` : deno ? `deno ${deno}` : `node ${node}`
const unhandled = []
process.on('unhandledRejection', (error) => unhandled.push(String(error)))
try {
  const seen = await smoke(DATABASE_URL, SMOKE_CLIENTS.split(','))
  process.stdout.write(`${JSON.stringify({ runtime, ...seen, unhandled })}\n`)
} catch (error) {
  // By hand, because with the listener above some runtimes would end as if nothing had happened.
  process.stderr.write(`${error.stack}\n`)
  process.exitCode = 1
}
