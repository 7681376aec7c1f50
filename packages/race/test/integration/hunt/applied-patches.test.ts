/** The diffs that a hunt suggests are applied to the code, and the same races are refuted there. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { fromSource } from '../../support/from-source.ts'
import { runHuntProcess } from '../../support/hunt-process.ts'

const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-patched-'))
afterAll(() => rmSync(folder, { recursive: true }))

const tables = `
  CREATE TABLE coupons (code text PRIMARY KEY, uses int NOT NULL, most int NOT NULL);
  CREATE TABLE wallets (id int PRIMARY KEY, balance int NOT NULL);
  CREATE TABLE letters (id serial PRIMARY KEY, email text NOT NULL);
  CREATE TABLE files (id serial PRIMARY KEY, owner_id int NOT NULL, bytes int NOT NULL)`

const rows = `
  TRUNCATE coupons, wallets, letters, files RESTART IDENTITY;
  INSERT INTO coupons VALUES ('A', 0, 3);
  INSERT INTO wallets VALUES (1, 90)`

/** Everything that a diff cannot do is there: whoever writes looks at how many rows it were. */
const app = `import { eq } from 'drizzle-orm'
import { hold } from './files.ts'
import { db, pool } from './database.ts'
import { wallets } from './tables.ts'

class Refused extends Error {}

async function changed(text: string, values: unknown[]): Promise<void> {
  const { rowCount } = await pool.query(text, values)
  if (rowCount === 0) throw new Refused()
}

const routes = {
  '/coupons': async ({ code }) => {
    const { rows } = await pool.query('SELECT uses, most FROM coupons WHERE code = $1', [code])
    if (!rows[0] || rows[0].uses >= rows[0].most) throw new Refused()
    await changed('UPDATE coupons SET uses = uses + 1 WHERE code = $1', [code])
  },
  '/wallets': ({ id, amount }) =>
    db.transaction(async (tx) => {
      const [wallet] = await tx.select().from(wallets).where(eq(wallets.id, id))
      if (wallet.balance < amount) throw new Refused()
      await tx.update(wallets).set({ balance: wallet.balance - amount }).where(eq(wallets.id, id))
    }),
  '/letters': async ({ email }) => {
    const { rows } = await pool.query('SELECT id FROM letters WHERE email = $1', [email])
    if (rows.length > 0) throw new Refused()
    await changed('INSERT INTO letters (email) VALUES ($1)', [email])
  },
  '/files': async ({ ownerId, bytes }) => {
    if (!(await hold(ownerId, bytes))) throw new Refused()
  },
}

export async function app(request, response) {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  const status = await routes[request.url](JSON.parse(text)).then(
    () => 200,
    (error) => (error instanceof Refused ? 409 : 500),
  )
  response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
}
`

const files = `import { eq, sum } from 'drizzle-orm'
import { db } from './database.ts'
import { files } from './tables.ts'

/** Keeps a file, if there is room for it: 100 for each owner. */
export async function hold(ownerId: number, bytes: number): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select({ used: sum(files.bytes) }).from(files).where(eq(files.ownerId, ownerId))
    if (Number(row?.used ?? 0) + bytes > 100) return false
    await tx.insert(files).values({ ownerId, bytes })
    return true
  })
}
`

const source: Readonly<Record<string, string>> = {
  'package.json': '{ "type": "module" }',
  'app.ts': app,
  'files.ts': files,
  'tables.ts': `import { integer, pgTable, serial } from 'drizzle-orm/pg-core'
export const wallets = pgTable('wallets', { id: integer('id'), balance: integer('balance') })
export const files = pgTable('files', { id: serial('id'), ownerId: integer('owner_id'), bytes: integer('bytes') })
`,
  // Clients of their own: Holdfast is between its client and the code, here from its sources and not from node_modules.
  // Without a queue in memory, as in two processes.
  'database.ts': `import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { createHoldfast } from 'holdfast'
import { fromDrizzle } from 'holdfast/drivers/drizzle'
import pg from 'pg'

const connectionString = process.env['DATABASE_URL']
export const pool = new pg.Pool({ connectionString })
const other = new pg.Pool({ connectionString })
export const db = drizzle(other)
export const hf = createHoldfast(fromDrizzle(db, sql), { wait: 60_000, locks: { queue: false } })
`,
  'suite.ts': `import { createServer } from 'node:http'
import { app } from './app.ts'
import { pool } from './database.ts'

await pool.query(\`${rows}\`)
const server = createServer((request, response) => void app(request, response)).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const requests = {
  '/coupons': { code: 'A' },
  '/wallets': { id: 1, amount: 30 },
  '/letters': { email: 'ann@example.com' },
  '/files': { ownerId: 1, bytes: 30 },
}
for (const [path, body] of Object.entries(requests)) {
  const sent = { method: 'POST', body: JSON.stringify(body) }
  const { status } = await fetch('http://127.0.0.1:' + server.address().port + path, sent)
  if (status !== 200) throw new Error(path + ' answered ' + status)
}
process.exit()
`,
}

interface Found {
  readonly pairs: readonly {
    readonly name: string
    readonly verdict: string
    readonly because?: string
    readonly patch?: { readonly text: string; readonly diff: string }
  }[]
}

async function huntIt(): Promise<Found> {
  const json = join(folder, 'hunt.json')
  const args = ['--app', 'app.ts', '--json', json, '--', 'node', 'suite.ts']
  const { err } = await runHuntProcess(args, environment, undefined, folder)
  try {
    return JSON.parse(readFileSync(json, 'utf8')) as Found
  } catch {
    throw new Error(err)
  }
}

const environment = { DATABASE_URL: url, NODE_OPTIONS: `--import=${fromSource}` }
const names = ['coupons', 'files', 'letters', 'wallets'].map((name) => `POST /${name} × itself`)
const git = (args: readonly string[], input?: string): string =>
  execFileSync('git', args, { cwd: folder, input, encoding: 'utf8' })

let before: Found
beforeAll(async () => {
  for (const [name, text] of Object.entries(source)) writeFileSync(join(folder, name), text)
  const modules = fileURLToPath(new URL('../../../../../node_modules', import.meta.url))
  symlinkSync(modules, join(folder, 'node_modules'))
  await withClient(url, (client) => client.query(tables))
  before = await huntIt()
}, 240_000)

test('each race is proven, with a diff', () => {
  const proven = before.pairs.filter(({ verdict }) => verdict === 'proven')
  expect(proven.map(({ name }) => name).toSorted()).toEqual(names)
  const textOf = (name: string): string | undefined =>
    proven.find((pair) => pair.name.includes(name))?.patch?.text
  expect(textOf('letters')).toContain('Run CREATE UNIQUE INDEX ON letters (email) first')
  expect(textOf('files')).toContain('Lock a name before the read')
})

test('with the diffs, and the index that one of them asks for, the same pairs are refuted', {
  timeout: 240_000,
}, async () => {
  for (const { patch } of before.pairs) if (patch) git(['apply', '-p1'], patch.diff)
  expect(readFileSync(join(folder, 'files.ts'), 'utf8')).toContain(
    `return await hf.guard(lockKey('owner', ownerId), async (tx) => {`,
  )
  await withClient(url, (client) => client.query('CREATE UNIQUE INDEX ON letters (email)'))
  const { pairs } = await huntIt()
  const verdicts = Object.fromEntries(
    pairs.map(({ name, verdict, because }) => [name, because ?? verdict]),
  )
  expect(verdicts).toEqual(Object.fromEntries(names.map((name) => [name, 'refuted'])))
})
